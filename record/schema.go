package record

import _ "embed"

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) that records conform to. It says less than
// [Record.Check]: nothing of ids that are there twice, of numbers that canonical JSON can't hold,
// and of hashes that don't fit.
func Schema() []byte { return append([]byte(nil), schema...) }
