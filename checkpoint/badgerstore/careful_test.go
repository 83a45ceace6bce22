package badgerstore_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A mad cipher panics in the call of that name, and else is another one.
type madCipher struct {
	checkpoint.Cipher
	panics string
}

func (c *madCipher) Key() string {
	c.rave("Key")
	return c.Cipher.Key()
}

func (c *madCipher) Seal(dst, plain, place []byte) ([]byte, error) {
	c.rave("Seal")
	return c.Cipher.Seal(dst, plain, place)
}

func (c *madCipher) Open(dst, sealed, place []byte) ([]byte, error) {
	c.rave("Open")
	return c.Cipher.Open(dst, sealed, place)
}

func (c *madCipher) rave(call string) {
	if c.panics == call {
		panic("the key service is mad")
	}
}

// panicked holds that err tells of a panic in that call of a cipher, and where it was.
func panicked(t *testing.T, name, call string, err error) {
	t.Helper()
	var e *checkpoint.CipherError
	if !errors.As(err, &e) || e.Call != call || !bytes.Contains(e.Stack, []byte("rave")) {
		t.Errorf("%s = %v, want a CipherError that tells of %s, with its stack", name, err, call)
	} else if !strings.Contains(err.Error(), "the key service is mad") {
		t.Errorf("%s = %q, which does not say what the panic was", name, err)
	}
}

// A cipher that panics fails the call that needed it, whoever's goroutine that is: the process
// lives, nothing has changed, and the store goes on.
func TestPanicOfACipher(t *testing.T) {
	t.Parallel()
	o := sealedBy(t, keyOf(t, "k1", 1))
	cipher := &madCipher{Cipher: o.Cipher}
	o.Cipher = cipher
	s := openWith(t, t.TempDir(), o)
	s.ForgetIdle()
	confide(t, s, "run")
	var file bytes.Buffer
	if err := checkpoint.Export(t.Context(), s, "run fork", &file); err != nil {
		t.Fatal(err)
	}
	want, held := exports(t, s), acquire(t, s, 1)[0]
	info, err := s.Stat(t.Context(), "run fork")
	if err != nil {
		t.Fatal(err)
	}
	seals := map[string]func(context.Context) error{
		"Append": func(ctx context.Context) error {
			return second(s.Append(ctx, held, checkpoint.Head{}, oneEntry))
		},
		"Post": func(ctx context.Context) error {
			return s.Post(ctx, "run", checkpoint.Post{ID: "new", Kind: "answer"})
		},
		"Fork": func(ctx context.Context) error {
			return s.Fork(ctx, forkstoreFork(forkstoreBase(1), 1, "a fork"))
		},
		"Import": func(ctx context.Context) error {
			file := bytes.NewReader(bytes.ReplaceAll(file.Bytes(), []byte("run fork"), []byte("run gold")))
			return second(checkpoint.Import(ctx, s, file, checkpoint.ImportOptions{}))
		},
	}
	opens := map[string]func(context.Context) error{
		"Stat":     func(ctx context.Context) error { return second(s.Stat(ctx, "run")) },
		"List":     func(ctx context.Context) error { return second(s.List(ctx, checkpoint.Filter{})) },
		"Acquire":  func(ctx context.Context) error { return second(s.Acquire(ctx, "run", "owner")) },
		"Posts":    func(ctx context.Context) error { return second(s.Posts(ctx, "run")) },
		"Snapshot": func(ctx context.Context) error { return second(s.Snapshot(ctx, "run", 0)) },
		"Base":     func(ctx context.Context) error { return second(s.Base(ctx, info.Run, info.Base)) },
		"Export":   func(ctx context.Context) error { return checkpoint.Export(ctx, s, "run", new(bytes.Buffer)) },
		"Verify":   func(context.Context) error { return verifyAll(t, s) },
		"Read": func(ctx context.Context) error {
			for _, err := range s.Read(ctx, "run", 1, 0) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	for call, operations := range map[string]map[string]func(context.Context) error{"Seal": seals, "Open": opens} {
		for _, name := range slices.Sorted(maps.Keys(operations)) {
			if name == "Import" {
				continue // a sum in the file guards its ids, so that it is refused before
			}
			cipher.panics = call
			panicked(t, name, call, operations[name](t.Context()))
			cipher.panics = ""
		}
	}
	if got := exports(t, s); !maps.Equal(got, want) {
		t.Error("the store holds something else")
	}
	for _, name := range []string{"Append", "Post", "Fork"} {
		if err := seals[name](t.Context()); err != nil {
			t.Errorf("%s, with a cipher that is well again: %v", name, err)
		}
	}
}

// A cipher that panics fails an Open, of a store that is being made too. What it was to open is as
// it was.
func TestPanicOfACipherDuringOpen(t *testing.T) {
	t.Parallel()
	one, two := keyOf(t, "k1", 1), keyOf(t, "k2", 2)
	for _, call := range []string{"Key", "Seal", "Open"} {
		dir, o := t.TempDir(), sealedBy(t, one)
		right := o.Cipher
		if call != "Open" {
			o.Cipher = &madCipher{right, call}
			panicked(t, "Open of a new store", call, second(badgerstore.Open(t.Context(), dir, o)))
			o.Cipher = right
		}
		s := openWith(t, dir, o)
		stock(t, s, 1<<12)
		want, err := contents(t, s)
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		o.Cipher = &madCipher{sealedBy(t, two, one).Cipher, call}
		panicked(t, "Open", call, second(badgerstore.Open(t.Context(), dir, o)))
		o.Cipher = right // nothing was sealed with the new key
		got, err := contents(t, openWith(t, dir, o))
		if err != nil {
			t.Fatal(err)
		}
		sameLibrary(t, got, want)
	}
}

// A leaving cipher ends the goroutine that calls it.
type leavingCipher struct {
	checkpoint.Cipher
	leaves string
}

func (c *leavingCipher) Key() string {
	c.leave("Key")
	return c.Cipher.Key()
}

func (c *leavingCipher) Seal(dst, plain, place []byte) ([]byte, error) {
	c.leave("Seal")
	return c.Cipher.Seal(dst, plain, place)
}

func (c *leavingCipher) Open(dst, sealed, place []byte) ([]byte, error) {
	c.leave("Open")
	return c.Cipher.Open(dst, sealed, place)
}

func (c *leavingCipher) leave(call string) {
	if c.leaves == call {
		runtime.Goexit()
	}
}

// A cipher that ends its goroutine fails an Open, of a store that is being made too, at once. What
// it was to open is as it was, and is not locked.
func TestCipherThatLeavesAnOpen(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"Key", "Seal", "Open"} {
		dir, o := t.TempDir(), sealedBy(t, keyOf(t, "k1", 1))
		right, next := o.Cipher, sealedBy(t, keyOf(t, "k2", 2), keyOf(t, "k1", 1)).Cipher
		leaves := func(c checkpoint.Cipher, what string) {
			var e *checkpoint.CipherError
			o.Cipher = &leavingCipher{c, call}
			if _, err := badgerstore.Open(t.Context(), dir, o); !errors.As(err, &e) || !strings.Contains(err.Error(), "Goexit") {
				t.Errorf("Open of %s, left in %s = %v, want a CipherError that says so", what, call, err)
			}
			o.Cipher = right // nothing was sealed with a new key
		}
		if call != "Open" {
			leaves(right, "a new store")
		}
		s := openWith(t, dir, o)
		stock(t, s, 1<<12)
		want, err := contents(t, s)
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		leaves(next, "a store")
		got, err := contents(t, openWith(t, dir, o))
		if err != nil {
			t.Fatal(err)
		}
		sameLibrary(t, got, want)
	}
}

// A wordy cipher makes what it seals longer by so much.
type wordyCipher struct {
	checkpoint.Cipher
	more int
}

func (c *wordyCipher) Seal(dst, plain, place []byte) ([]byte, error) {
	return append(dst, append(make([]byte, c.more), plain...)...), nil
}

func (c *wordyCipher) Open(dst, sealed, place []byte) ([]byte, error) {
	return append(dst, sealed[c.more:]...), nil
}

// What a cipher makes so much longer that it could not be read again is refused when it is written.
func TestCipherThatAddsTooMuch(t *testing.T) {
	t.Parallel()
	o := sealedBy(t, keyOf(t, "k1", 1))
	cipher := &wordyCipher{Cipher: o.Cipher, more: 64 << 10}
	o.Cipher = cipher
	s := openWith(t, t.TempDir(), o)
	l := acquire(t, s, 1)[0]
	head, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)
	if err != nil {
		t.Fatal(err)
	}
	cipher.more++
	var e *checkpoint.CipherError
	if _, err := s.Append(t.Context(), l, head, oneEntry); !errors.As(err, &e) || e.Call != "Seal" {
		t.Errorf("Append = %v, want a CipherError", err)
	}
	cipher.more--
	if info, err := s.Stat(t.Context(), l.Run); err != nil || info.Head != head {
		t.Errorf("Stat = %+v, %v, want head %v", info, err, head)
	}
}

// A mute cipher returns nothing where it is to seal, and no error.
type muteCipher struct {
	checkpoint.Cipher
	returns func(dst []byte) []byte // nil: it seals
}

func (c *muteCipher) Seal(dst, plain, place []byte) ([]byte, error) {
	if c.returns != nil {
		return c.returns(dst), nil
	}
	return c.Cipher.Seal(dst, plain, place)
}

// What a cipher has sealed as nothing could not be opened again: it is refused when it is written,
// and nothing is.
func TestCipherThatReturnsNothing(t *testing.T) {
	t.Parallel()
	for name, nothing := range map[string]func(dst []byte) []byte{
		"nil":   func([]byte) []byte { return nil },
		"empty": func(dst []byte) []byte { return append([]byte{}, dst...) },
	} {
		o := sealedBy(t, keyOf(t, "k1", 1))
		cipher := &muteCipher{Cipher: o.Cipher}
		o.Cipher = cipher
		s := openWith(t, t.TempDir(), o)
		l := acquire(t, s, 1)[0]
		head, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)
		if err != nil {
			t.Fatal(err)
		}
		cipher.returns = nothing
		refused := map[string]error{
			"Append":   second(s.Append(t.Context(), l, head, oneEntry)),
			"Post":     s.Post(t.Context(), l.Run, checkpoint.Post{ID: "new", Kind: "answer"}),
			"Snapshot": s.PutSnapshot(t.Context(), l, checkpoint.Snapshot{Head: head, Data: []byte("a machine")}),
			"Open":     second(badgerstore.Open(t.Context(), t.TempDir(), o)),
		}
		for call, err := range refused {
			if e := (*checkpoint.CipherError)(nil); !errors.As(err, &e) || e.Call != "Seal" {
				t.Errorf("%s with a cipher that returns %s = %v, want a CipherError of Seal", call, name, err)
			}
		}
		cipher.returns = nil
		if info, err := s.Stat(t.Context(), l.Run); err != nil || info.Head != head {
			t.Errorf("Stat = %+v, %v, want head %v", info, err, head)
		}
		if err := verifyAll(t, s); err != nil {
			t.Error(err)
		}
		if _, err := s.Append(t.Context(), l, head, oneEntry); err != nil {
			t.Errorf("Append, with a cipher that seals again: %v", err)
		}
	}
}
