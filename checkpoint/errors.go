package checkpoint

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound: there is no such run, snapshot, graph or base.
	ErrNotFound = errors.New("checkpoint: not found")
	// ErrRunID: a run id is empty, too long, not UTF-8, or holds control characters.
	ErrRunID = errors.New("checkpoint: bad run id")
	// ErrPostID: the id of a post is empty, too long, not UTF-8, or holds control characters.
	ErrPostID = errors.New("checkpoint: bad post id")
	// ErrExists: a run of this id exists.
	ErrExists = errors.New("checkpoint: run exists")
	// ErrBusy: somebody holds the lease. See [BusyError].
	ErrBusy = errors.New("checkpoint: run is busy")
	// ErrConflict: the head is not the one expected, or something else is kept under the same id or
	// digest. Nothing was changed.
	ErrConflict = errors.New("checkpoint: conflict")
	// ErrFenced: the lease is no longer the run's. Nothing was changed.
	ErrFenced = errors.New("checkpoint: lease is no longer held")
	// ErrCommitUnknown: whether the append happened can't be known. Read to find out.
	ErrCommitUnknown = errors.New("checkpoint: outcome of the append is unknown")
	// ErrCorrupt: stored data is damaged, missing or foreign. See [CorruptError].
	ErrCorrupt = errors.New("checkpoint: stored data is damaged")
	// ErrVersion: stored data is of a version that this program does not know.
	ErrVersion = errors.New("checkpoint: unknown format version")
	// ErrKey: stored data is sealed with a key that was not given, or is not the one of that id.
	ErrKey = errors.New("checkpoint: key is missing or wrong")
	// ErrPlaintext: a store was given a Cipher, and what it is to read is not sealed.
	ErrPlaintext = errors.New("checkpoint: stored data is not encrypted")
	// ErrFull: there is no room left on the device. Nothing was changed.
	ErrFull = errors.New("checkpoint: store is full")
	// ErrLocked: another process has the store open, or this one by another Store; or another open
	// store, as a copy of it, has its witness.
	ErrLocked = errors.New("checkpoint: store is locked")
	// ErrClosed: the store was closed, or has stopped after a failed write.
	ErrClosed = errors.New("checkpoint: store is closed")
	// ErrTooLarge: what is to be kept is larger than the store can make atomic, or no numbers are
	// left for its entries.
	ErrTooLarge = errors.New("checkpoint: too large")
	// ErrUnsupported: this store does not have the verb.
	ErrUnsupported = errors.New("checkpoint: not supported by this store")
	// ErrTrimmed: what was asked for lies before the first entry that is kept. See [TrimmedError].
	ErrTrimmed = errors.New("checkpoint: run was trimmed")
	// ErrCursor: a text is no cursor, or names nothing.
	ErrCursor = errors.New("checkpoint: bad cursor")
)

// A CipherError says that a [Cipher] did what it may not, as to panic. The call that needed it has
// changed nothing.
type CipherError struct {
	Call   string // Key, Seal or Open; all of them if it is not known which
	Reason string
	Stack  []byte // of a panic
}

func (e *CipherError) Error() string {
	return fmt.Sprintf("checkpoint: %s of the Cipher %s", e.Call, e.Reason)
}

// A BusyError says who holds the lease: who is at work on the run or, if [Amends] says so of the
// owner, who has it for a moment. errors.Is finds [ErrBusy].
type BusyError struct {
	Run, Owner string
}

func (e *BusyError) Error() string {
	if Amends(e.Owner) {
		return fmt.Sprintf("checkpoint: run %q is busy: held by %s, who changes it and gives it back at once: try again", e.Run, e.Owner)
	}
	return fmt.Sprintf("checkpoint: run %q is busy: held by %s: wait until it rests, or cancel it", e.Run, e.Owner)
}

func (e *BusyError) Unwrap() error { return ErrBusy }

// A CorruptError says where damage was found. errors.Is finds [ErrCorrupt].
type CorruptError struct {
	Run    string // "" if it can't be told which
	Seq    uint64 // of the first entry that can't be trusted; 0 if it is not in the log
	Reason string
}

func (e *CorruptError) Error() string {
	if e.Run == "" {
		return "checkpoint: what is stored is damaged: " + e.Reason
	}
	if e.Seq == 0 {
		return fmt.Sprintf("checkpoint: run %q is damaged: %s", e.Run, e.Reason)
	}
	return fmt.Sprintf("checkpoint: run %q is damaged at entry %d: %s", e.Run, e.Seq, e.Reason)
}

func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// Corrupt returns the error of a run in whose stored data err was found, at the entry of sequence
// number seq, or 0 if it was not in the log. That is a [CorruptError], or, for what this program or
// these keys can't read, an error that wraps [ErrVersion], [ErrKey] or [ErrPlaintext], behind which
// [Runs] goes on. Any other error, and one that already says so of the run, is returned as it is.
func Corrupt(run string, seq uint64, err error) error {
	var known *CorruptError
	var before *unreadError
	switch {
	case errors.As(err, &known), errors.As(err, &before) && before.run == run:
		return err
	case errors.Is(err, ErrCorrupt):
		return &CorruptError{Run: run, Seq: seq, Reason: err.Error()}
	case errors.Is(err, ErrVersion), errors.Is(err, ErrKey), errors.Is(err, ErrPlaintext):
		return &unreadError{run, seq, err}
	}
	return err
}

// An unreadError is the error of a run that may be sound, and that this program or these keys can't
// read.
type unreadError struct {
	run string // "" if it can't be told which
	seq uint64 // 0 if it is not about the log
	err error
}

func (e *unreadError) Error() string {
	if e.run == "" {
		return fmt.Sprintf("checkpoint: what is stored can't be read: %v", e.err)
	}
	if e.seq == 0 {
		return fmt.Sprintf("checkpoint: run %q: %v", e.run, e.err)
	}
	return fmt.Sprintf("checkpoint: run %q, entry %d: %v", e.run, e.seq, e.err)
}

func (e *unreadError) Unwrap() error { return e.err }

// A damage is an error that says what is wrong with stored data; it wraps ErrCorrupt.
type damage string

func (d damage) Error() string { return string(d) }

func (d damage) Unwrap() error { return ErrCorrupt }

// Damage returns an error that says what is wrong with stored data, for [Corrupt] to say
// where. It wraps ErrCorrupt.
func Damage(reason string) error { return damage(reason) }

// A notFound names the run that does not exist. Stores are asked for runs that don't whenever one
// begins, so its text is made when somebody reads it.
type notFound string

func (n notFound) Error() string { return fmt.Sprintf("%v: run %q", ErrNotFound, string(n)) }

func (n notFound) Unwrap() error { return ErrNotFound }

// NotFound returns the error of a store in which there is no such run. It wraps ErrNotFound.
func NotFound(run string) error { return notFound(run) }

// Claimed returns the error of an Append that claims the id of a message which waits. It wraps
// ErrConflict.
func Claimed(run, post string) error {
	return fmt.Errorf("%w: run %q: a message waits under the id %q, which an entry claims", ErrConflict, run, post)
}
