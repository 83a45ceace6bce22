// Approval is a service that pays refunds. A large one waits for a manager, for days if need be;
// the service may be stopped and started as often as you like meanwhile.
//
//	go run ./examples/approval -secret correct-horse-battery -follow-up http://localhost:9000/refunds
//
// It serves:
//
//	POST /refunds       {"order": "A-17", "cents": 90000, "reason": "broken"} asks for a refund
//	GET  /refunds/A-17  tells where it stands, and what it waits for
//	POST /triggers      approves, denies, or calls a payment off; signed with the secret
//
// A trigger is signed with HMAC-SHA256 over the seconds since 1970, a dot, and the body:
//
//	body='{"id":"t-1","kind":"approval_resolution","key":"A-17","decision":"approved","actor":{"id":"mia","authority":"human"}}'
//	now=$(date +%s)
//	sum=$(printf '%s.%s' "$now" "$body" | openssl dgst -sha256 -hmac correct-horse-battery | sed 's/.* //')
//	curl -H "Pawl-Timestamp: $now" -H "Pawl-Signature: sha256=$sum" -d "$body" http://localhost:8080/triggers
//
// A trigger counts once for its id, so whoever doesn't know whether it came sends it again. A
// denial has the decision "denied", and may have a "reason". To call off what was approved, send
// the kind "user_reply" for the key "call-off A-17", with a "payload" that is a text in JSON and
// says why.
//
// # What happens to a refund
//
// Up to 100.00 nobody is asked. Above that a person approves or denies within three days. If nobody
// does, whoever is on duty may, programs included, for a day more; then it is denied. What was
// approved is held for a day, in which it can be called off, and is then paid. When the refund is
// over, the follow-up is posted to the URL of -follow-up, again and again until somebody takes it,
// at most a thousand times, with the same Idempotency-Key.
//
// # Flags
//
//	-listen ADDRESS  where it serves; by default localhost:8080
//	-dir DIR         where its data is: the store, and payments.jsonl, the books of the treasury; by
//	                 default approval-data in the working directory
//	-secret TEXT     what triggers are signed with, of 16 bytes or more; by default APPROVAL_SECRET of
//	                 the environment
//	-follow-up URL   who is told what came of refunds; without it nobody is
//	-redeliver D     how long after a follow-up that failed the next is tried; by default 1m
//	-manager D       how long a person may take to decide; by default 72h
//	-duty D          how long anybody may take after that; by default 24h
//	-hold D          how long what was approved can be called off; by default 24h
//
// The exit status is 0 after a signal or -help, and 1 if a flag is wrong or the service could not
// begin or go on. A second signal kills it, which does no harm.
//
// # Where the waits are
//
// The waits are those of package continuation. They live in the logs of the runs: this program
// keeps nothing of them, and has no other store.
package main
