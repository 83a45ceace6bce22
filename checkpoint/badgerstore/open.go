package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/internal/misuse"
)

// Open opens the store in dir, or makes one if dir is empty or does not exist; directories above it
// that are missing are made too, for the user alone (0700), so a path with a slip in it is a new
// store. ErrLocked if another process has it open, or its witness, ErrVersion if its format is one
// that this version does not know, ErrCorrupt if something in it is damaged or missing, ErrFull if
// the device has too little room, ErrKey if it is encrypted and Options.Cipher is not given or does
// not have its key, ErrPlaintext if it is not encrypted and there is a Cipher. If a call of the
// system fails, as a sync does with syscall.EIO, errors.Is finds its error. What holds anything
// else is refused with a *checkpoint.ArgumentError and left as it is: a file, and what would be
// below one, a directory of other files, a database of Badger that no store has made, or of which
// nobody can tell since all that the store has beside it is missing. A relative dir, or
// Options.Witness, is what it names when Open is called, wherever the program goes then.
//
// If ctx ends Open returns its error, at the latest a second later. What then still opens, since a
// disk does not answer, is closed in the background, and the directory is locked until it is:
// another Open is ErrLocked and says so.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	return open(ctx, dir, o, true)
}

// OpenUnsynced opens the store in dir like [Open], but what it then appends survives only
// the death of the process, not of the machine. It is for tests, and for work that can be
// done again.
func OpenUnsynced(ctx context.Context, dir string, o Options) (*Store, error) {
	return open(ctx, dir, o, false)
}

func open(ctx context.Context, dir string, o Options, synced bool) (*Store, error) {
	switch {
	case ctx == nil:
		return nil, &checkpoint.ArgumentError{Call: "badgerstore.Open", Argument: "context",
			Reason: misuse.NoContext}
	case dir == "":
		return nil, refuseDir("is empty: name the one that the store is in, or is to be in")
	case strings.ContainsRune(dir, 0): // which the system would refuse, and its witness's path holds it too
		return nil, refuseDir(strconv.Quote(dir) + " holds a NUL, as no path does: name a directory")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	dir, o, err := absolute(dir, o)
	if err != nil {
		return nil, err
	}
	type opened struct {
		s   *Store
		err error
	}
	done, abandoned := make(chan opened), make(chan struct{})
	go func() { // waited for, or left when ctx has ended
		r := opened{err: errLeft}
		defer func() {
			select {
			case done <- r:
			case <-abandoned:
				if r.err == nil {
					_ = r.s.Close()
				}
			}
		}()
		r.s, r.err = openNow(ctx, dir, o.withDefaults(dir), synced)
	}()
	var late <-chan time.Time
	for ended := ctx.Done(); ; {
		select {
		case r := <-done:
			return r.s, remedied(typed(r.err))
		case <-ended:
			ended, late = nil, time.After(abandonAfter)
		case <-late:
			close(abandoned)
			err := ctx.Err()
			if cause := context.Cause(ctx); cause != err {
				err = fmt.Errorf("%w: %w", err, cause)
			}
			return nil, fmt.Errorf("checkpoint: opening the store: the disk does not answer: %w", err)
		}
	}
}

// absolute makes the paths absolute, for the program may change its directory.
func absolute(dir string, o Options) (string, Options, error) {
	dir, err := filepath.Abs(dir)
	if err == nil && o.Witness != "" {
		o.Witness, err = filepath.Abs(o.Witness)
	}
	if err != nil {
		err = fmt.Errorf("checkpoint: opening the store: %w", err)
	}
	return dir, o, err
}

// A damageError says what is damaged, and all that there is to do about it, so remedied adds
// nothing. errors.Is finds ErrCorrupt.
type damageError struct{ reason, way string }

func (e *damageError) Error() string {
	return checkpoint.ErrCorrupt.Error() + ": " + e.reason + ": " + e.way
}

func (e *damageError) Unwrap() error { return checkpoint.ErrCorrupt }

// remedied adds to the error of damage what to do, if it does not say so.
func remedied(err error) error {
	var known *damageError
	if !errors.Is(err, checkpoint.ErrCorrupt) || errors.As(err, &known) {
		return err
	}
	return fmt.Errorf("%w: restore the store from a backup", err)
}

// abandonAfter is how long Open waits, when its ctx has ended, for what it is doing.
const abandonAfter = time.Second

// errLeft says that the goroutine that opens a store has ended before it was open. Nobody but a
// cipher, which is the caller's, does that.
var errLeft = &checkpoint.CipherError{Call: "Key, Seal or Open",
	Reason: "ended the goroutine that opens the store, as runtime.Goexit does: let it return an error"}
