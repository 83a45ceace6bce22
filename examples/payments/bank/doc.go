// Package bank is a payment service that exists to be paid with: over HTTP, in memory, and as
// unreliable as it is told to be. It counts what it did, so that a test can ask it.
//
// A [Bank] holds money for a payment, charges what it holds, gives it back, transfers money to
// somebody and sends messages. Every operation but the transfer takes an idempotency key: the same
// key again is the same reply, and nothing is done. A transfer has no key, as in many a real bank:
// whoever sends it twice has paid twice. It has a reference, by which it is found in the books.
//
// A [Fault] makes it lose a request or a reply, refuse, be out of service, or be slow. A
// [Statement] says what it did, by key. A [Client] speaks to it.
package bank
