// Handover shows a record that is passed from one program to another, and back. The two share no
// code: scout is a program of pawl's, clerk knows the format alone and imports nothing of pawl.
//
//	go run ./examples/handover/scout -dir site survey site.jsonl    # runs, until it has a question
//	go run ./examples/handover/clerk -answer "trench B" -name ann site.jsonl answered.jsonl
//	go run ./examples/handover/scout -dir site merge answered.jsonl # verifies, merges, and goes on
//
// What is passed is in the format of package record: lines of canonical JSON, each a version, whose
// hashes hold each other. The clerk verifies them with its own hands, answers the question,
// overrides a decision that people may override, and writes a record that names scout's as its
// parent. Scout has learned something meanwhile; the merge keeps both.
//
// A survey can be repeated while its question is open, and a merge always. To answer anew what was
// merged, take another -name. If two have answered differently the merge tells the conflict, and
// -strategy says who is right.
package handover
