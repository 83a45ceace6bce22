// The payments program pays somebody by way of a bank that can be told to fail, as a run of a graph
// that can be killed at any moment: nobody pays twice, and where nobody knows whether a transfer
// was made, it says so and waits for a person.
//
//	go run ./examples/payments -serve 127.0.0.1:8470 &
//	go run ./examples/payments 120.00 ada grace
//
// It reserves the money, charges it, transfers it, and tells the customer. Large sums are charged
// when a person has approved that. If something fails for good, or is rejected, what was taken is
// given back, and the customer is told.
//
// # Two kinds of effects
//
// The bank takes an idempotency key with everything but a transfer. What takes a key is declared
// [dag.Replayable]. An attempt or a process that does not know what became of it asks again under
// the key that [dag.Key] gives it, which is always the same, and the bank does it once. A transfer
// has no key, so it is not made again by itself: if it is cut off it is in doubt. Try it:
//
//	go run ./examples/payments -fault transfer:lose-reply 120.00 ada grace
//	go run ./examples/payments -open
//	go run ./examples/payments -statement
//	go run ./examples/payments -resolve happened:NUMBER
//
// NUMBER is that of the transfer in the statement, such as T-3. -open prints the commands to type,
// with the -store and the -run of each payment.
//
// What is in doubt has not failed, so it is not refunded: that would be paid twice in another way.
//
// # Reading it
//
// state.go is what is known of a payment, graph.go in which order it is learned; desk.go and
// transfer.go are the nodes, and approve.go says what a person has to approve. session.go runs the
// graph over a store in a directory, opened.go lists what is in doubt, and the files beside them
// are the command line. Package bank is the other side.
//
// # Flags
//
//	-store DIR       where runs are kept; by default pawl/payments in the user's cache directory
//	-run ID          the payment; by default a new one, or, to go on with one, the newest that is
//	                 not completed; with the same payment again it goes on where it stands
//	-service URL     the bank; by default http://127.0.0.1:8470
//	-by NAME         who approves, rejects or resolves
//	-json            print one JSON object
//	-fault O:KIND    before that, tell the bank what goes wrong with its next request for an
//	                 operation (reserve, charge, transfer, refund, notify): lose-request, lose-reply,
//	                 refuse, unavailable, or slow:D
//	-resume          go on with a payment
//	-approve         approve a large sum, and go on
//	-reject          reject it, and go on
//	-resolve WHAT    say what came of a transfer in doubt, happened:NUMBER or not-happened:REASON,
//	                 and go on: without -run of the only payment in doubt; the books of the bank
//	                 have to agree
//	-open            list what waits for a person or is in doubt; nothing runs
//	-statement       print what the bank has done
//	-serve ADDRESS   be the bank, in memory, until a signal
//
// # Exit status
//
//	0  the payment has come to its end, made or given back, or a listing was printed
//	1  the payment failed and can be resumed, the bank or the store refused, or -open has left out a
//	   payment that can't be read
//	2  wrong usage; nothing was printed on standard output
//	3  the payment waits for a person, or was cancelled, and can be resumed
package main
