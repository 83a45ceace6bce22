// Approval is a service that pays refunds. A large one waits for a manager, for days if need be; the
// service may be stopped and started as often as you like meanwhile.
//
//	go run ./examples/approval -secret correct-horse-battery -follow-up http://localhost:9000/refunds
//
// It serves:
//
//	POST /refunds       {"order": "A-17", "cents": 90000, "reason": "broken"} asks for a refund
//	GET  /refunds/A-17  tells where it stands, and what it waits for
//	POST /triggers      approves, denies, or calls a payment off; signed with the secret
//
// # What happens to a refund
//
// Up to 100.00 nobody is asked. Above that a person approves or denies within three days; if nobody
// does, whoever is on duty may, for a day more, programs included; then it is denied. What was approved
// is held for a day, in which it can be called off, and is paid then. When it is over, the follow-up
// is posted to the URL of -follow-up, again and again until somebody takes it, with the same
// Idempotency-Key.
//
// The waits are those of package continuation. They live in the logs of the runs: this program keeps
// nothing of them, and has no other store.
package main
