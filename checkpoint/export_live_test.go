package checkpoint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// superDamaged is a store whose log has one byte changed.
type superDamaged struct {
	*memory.Store
	at int
}

func (s superDamaged) Envelopes(ctx context.Context, run string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		n := 0
		for data, err := range s.Store.Envelopes(ctx, run) {
			if at := s.at - n; err == nil && at >= 0 && at < len(data) {
				data[at] ^= 1
			}
			n += len(data)
			if !yield(data, err) {
				return
			}
		}
	}
}

// A log that is damaged is not exported: the error says so, and what was written is refused.
func TestExportRefusesDamage(t *testing.T) {
	s := superRun(t, "run")
	total := 0
	for data := range s.Envelopes(t.Context(), "run") {
		total += len(data)
	}
	for at := 0; at < total; at += 7 {
		var file bytes.Buffer
		err := checkpoint.Export(t.Context(), superDamaged{s, at}, "run", &file)
		if !errors.Is(err, checkpoint.ErrCorrupt) && !errors.Is(err, checkpoint.ErrVersion) {
			t.Errorf("byte %d: Export = %v", at, err)
		}
		if _, err := checkpoint.Import(t.Context(), new(memory.Store), &file, checkpoint.ImportOptions{}); err == nil {
			t.Errorf("byte %d: what was written before the damage is imported", at)
		}
	}
	err := checkpoint.Export(t.Context(), s, "no run", io.Discard)
	if !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("Export of no run = %v", err)
	}
	if err := checkpoint.Export(t.Context(), s, "run", brokenWriter{}); !errors.Is(err, errBroken) {
		t.Errorf("Export to a broken writer = %v", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

// A run that is appended to meanwhile is exported as it stood at one moment.
func TestExportOfALiveRun(t *testing.T) {
	s := new(memory.Store)
	l, err := s.Acquire(t.Context(), "run", "test")
	if err != nil {
		t.Fatal(err)
	}
	head, err := s.Append(t.Context(), l, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Opened, Data: json.RawMessage(`{}`)}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for n := range 2000 {
			e := []checkpoint.Entry{{Kind: checkpoint.Done, Path: "p", Step: n + 1}}
			if n%20 == 0 {
				p := checkpoint.Post{ID: fmt.Sprintf("%08d", n), Kind: "answer"}
				if err := s.Post(t.Context(), "run", p); err != nil {
					ended <- err
					return
				}
				e[0].Post = p.ID
			}
			var err error
			if head, err = s.Append(t.Context(), l, head, e); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	for live := true; live; {
		select {
		case err := <-ended:
			if live = false; err != nil {
				t.Fatal(err)
			}
		default:
		}
		to := new(memory.Store)
		info := superImport(t, to, superExport(t, s, "run"))
		got := superLog(t, to, "run", true)
		if want := superLog(t, s, "run", true); !strings.HasPrefix(want, got) || info.Head.Seq == 0 {
			t.Fatal("the import is no beginning of the log")
		}
		posts, err := to.Posts(t.Context(), "run")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range posts {
			if strings.Contains(got, "Post:"+p.ID+" ") {
				t.Errorf("message %s is exported and drained", p.ID)
			}
		}
	}
}

// A looked store has something happen to it when a run is first looked at.
type looked struct {
	*memory.Store
	happens func()
}

func (s *looked) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	if happens := s.happens; happens != nil {
		s.happens = nil
		happens()
	}
	return s.Store.Stat(ctx, run)
}

// A message that the run drains just when it is exported is in its log, and none that waits: the
// import would hear it a second time.
func TestExportOfAMessageThatIsDrained(t *testing.T) {
	t.Parallel()
	s := &looked{Store: new(memory.Store)}
	ctx := t.Context()
	l, err := s.Acquire(ctx, "run", "test")
	if err != nil {
		t.Fatal(err)
	}
	head, err := s.Append(ctx, l, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Opened, Data: json.RawMessage(`{}`)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"drained", "waits"} {
		if err := s.Post(ctx, "run", checkpoint.Post{ID: id, Kind: "answer"}); err != nil {
			t.Fatal(err)
		}
	}
	s.happens = func() {
		if _, err := s.Append(ctx, l, head, []checkpoint.Entry{{Kind: checkpoint.Answered, Post: "drained"}}); err != nil {
			t.Error(err)
		}
	}
	to := new(memory.Store)
	if info := superImport(t, to, superExport(t, s, "run")); info.Head.Seq != 2 {
		t.Errorf("the import ends at entry %d, want 2", info.Head.Seq)
	}
	if posts, err := to.Posts(ctx, "run"); err != nil || len(posts) != 1 || posts[0].ID != "waits" {
		t.Errorf("Posts of the import = %v, %v, want the one that waits", posts, err)
	}
}

// A message waits though an earlier one of its id is drained. One that is drained behind the moment
// in which those that wait are looked for does not.
func TestExportOfAMessageThatIsPostedAgain(t *testing.T) {
	t.Parallel()
	s := new(meddledPosts)
	s.Store = new(memory.Store)
	ctx := t.Context()
	l, err := s.Acquire(ctx, "run", "test")
	if err != nil {
		t.Fatal(err)
	}
	var head checkpoint.Head
	add := func(e checkpoint.Entry) {
		if head, err = s.Append(ctx, l, head, []checkpoint.Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	post := func(id string) {
		if err := s.Post(ctx, "run", checkpoint.Post{ID: id, Kind: "note"}); err != nil {
			t.Fatal(err)
		}
	}
	add(checkpoint.Entry{Kind: checkpoint.Opened, Data: json.RawMessage(`{}`)})
	post("again")
	add(checkpoint.Entry{Kind: checkpoint.Noted, Post: "again"})
	post("again")
	post("drained")
	s.meddle = func() { add(checkpoint.Entry{Kind: checkpoint.Noted, Post: "drained"}) }
	for name, from := range map[string]checkpoint.Store{"an Archiver": s, "a plain store": superPlain{s}} {
		to := new(memory.Store)
		superImport(t, to, superExport(t, from, "run"))
		if posts, err := to.Posts(ctx, "run"); err != nil || len(posts) != 1 || posts[0].ID != "again" {
			t.Errorf("from %s Posts of the import = %v, %v, want the one that was posted again", name, posts, err)
		}
		post("drained")
	}
}

// A message that the run drains just when it is exported, in an append that a trim drops, is
// nowhere in the log that there is then: Export is ErrTrimmed, and does not take the message for
// one that waits.
func TestExportOfAMessageThatIsDrainedAndTrimmed(t *testing.T) {
	t.Parallel()
	s := new(meddledPosts)
	s.Store = new(memory.Store)
	ctx := t.Context()
	l, err := s.Acquire(ctx, "run", "test")
	if err != nil {
		t.Fatal(err)
	}
	head, err := s.Append(ctx, l, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Opened, Data: json.RawMessage(`{}`)}})
	if err == nil {
		err = s.Post(ctx, "run", checkpoint.Post{ID: "drained", Kind: "answer"})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.meddle = func() {
		head, err := s.Append(ctx, l, head, []checkpoint.Entry{{Kind: checkpoint.Answered, Post: "drained"}})
		if err != nil {
			t.Fatal(err)
		}
		data := fmt.Appendf(nil, `{"first":%d,"base":%q}`, head.Seq+1, checkpoint.BaseDigest([]byte("{}")))
		if _, err := s.Trim(ctx, l, head, checkpoint.Entry{Kind: checkpoint.Trimmed, Data: data}, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if err := checkpoint.Export(ctx, s, "run", io.Discard); !errors.Is(err, checkpoint.ErrTrimmed) {
		t.Errorf("Export = %v, want ErrTrimmed", err)
	}
	s.meddle = func() {}
	to := new(memory.Store)
	superImport(t, to, superExport(t, s, "run"))
	if posts, err := to.Posts(ctx, "run"); err != nil || len(posts) > 0 {
		t.Errorf("Posts of the import = %v, %v, want none", posts, err)
	}
}

// A meddled store has something happen to it just before a log is handed out.
type meddled struct {
	*memory.Store
	meddle func()
}

// A meddledPosts store has it happen just behind the messages.
type meddledPosts struct{ meddled }

func (s *meddledPosts) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	posts, err := s.Store.Posts(ctx, run)
	s.meddle()
	return posts, err
}

func (s *meddledPosts) Envelopes(ctx context.Context, run string) iter.Seq2[[]byte, error] {
	return s.Store.Envelopes(ctx, run)
}

func (s *meddled) Envelopes(ctx context.Context, run string) iter.Seq2[[]byte, error] {
	s.meddle()
	return s.Store.Envelopes(ctx, run)
}

// A run that is deleted while it is exported, or verified, is ErrNotFound, and no damage, whatever
// run is made under its id meanwhile.
func TestDeletedWhileItIsRead(t *testing.T) {
	fill := func(t *testing.T, s *memory.Store, appends int) (checkpoint.Lease, checkpoint.Head) {
		t.Helper()
		<-time.After(time.Second) // of the bubble's clock: no two runs are of one instant
		l, err := s.Acquire(t.Context(), "run", "owner")
		if err != nil {
			t.Fatal(err)
		}
		var head checkpoint.Head
		for n := range appends {
			if head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{{Kind: checkpoint.Done, Step: n}}); err != nil {
				t.Fatal(err)
			}
		}
		return l, head
	}
	for name, again := range map[string]func(t *testing.T, s *memory.Store){
		"deleted":             func(*testing.T, *memory.Store) {},
		"another, shorter":    func(t *testing.T, s *memory.Store) { fill(t, s, 2) },
		"another, as long":    func(t *testing.T, s *memory.Store) { fill(t, s, 5) },
		"another, longer":     func(t *testing.T, s *memory.Store) { fill(t, s, 9) },
		"another that begins": func(t *testing.T, s *memory.Store) { fill(t, s, 0) },
		"another, trimmed": func(t *testing.T, s *memory.Store) {
			l, head := fill(t, s, 5)
			data := fmt.Appendf(nil, `{"first":3,"base":%q}`, checkpoint.BaseDigest([]byte("{}")))
			if _, err := s.Trim(t.Context(), l, head, checkpoint.Entry{Kind: checkpoint.Trimmed, Data: data}, []byte("{}")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for call, read := range map[string]func(s checkpoint.Store) error{
			"Export": func(s checkpoint.Store) error { return checkpoint.Export(t.Context(), s, "run", io.Discard) },
			"Export, behind the messages": func(s checkpoint.Store) error {
				return checkpoint.Export(t.Context(), &meddledPosts{*s.(*meddled)}, "run", io.Discard)
			},
			"Verify": func(s checkpoint.Store) (err error) {
				for f, ended := range checkpoint.Verify(t.Context(), s, "run") {
					if err = ended; err == nil {
						t.Errorf("%s: Verify finds %+v", name, f)
					}
				}
				return err
			},
		} {
			t.Run(call+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := new(memory.Store)
					l, _ := fill(t, s, 5)
					if err := s.Release(t.Context(), l); err != nil {
						t.Fatal(err)
					}
					err := read(&meddled{s, func() {
						if err := s.Delete(t.Context(), "run"); err != nil {
							t.Fatal(err)
						}
						again(t, s)
					}})
					if !errors.Is(err, checkpoint.ErrNotFound) || errors.Is(err, checkpoint.ErrCorrupt) {
						t.Errorf("%s = %v, want ErrNotFound", call, err)
					}
				})
			})
		}
	}
}

// An append of many megabytes is one line, in both directions.
func TestExportOfALargeAppend(t *testing.T) {
	s := superRun(t, "run")
	l, _ := s.Acquire(t.Context(), "run", "test")
	info, _ := s.Stat(t.Context(), "run")
	big, _ := json.Marshal(strings.Repeat("pawl", 3<<20))
	entries := []checkpoint.Entry{{Kind: checkpoint.Done, Delta: big}, {Kind: checkpoint.Done, Outer: big[:len(big)/2], Path: "x"}}
	entries[1].Outer = append(bytes.Clone(big[:len(big)/2]), '"')
	if _, err := s.Append(t.Context(), l, info.Head, entries); err != nil {
		t.Fatal(err)
	}
	file := superExport(t, s, "run")
	to := superBadger(t)
	superImport(t, to, file)
	if !bytes.Equal(superExport(t, to, "run"), file) {
		t.Error("the export of the import is another file")
	}
	plain := superPlain{new(memory.Store)}
	superImport(t, plain, file)
	n := 0
	for e, err := range plain.Read(t.Context(), "run", info.Head.Seq+1, 0) {
		if err != nil || !bytes.Equal(e.Delta, entries[n].Delta) || !bytes.Equal(e.Outer, entries[n].Outer) {
			t.Errorf("entry %d is another one: %v", e.Seq, err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("there are %d more entries, want 2", n)
	}
}

// A log that ends before the store says so is not exported: the error names the entry that is
// missing.
func TestExportRefusesALogThatEndsEarly(t *testing.T) {
	for kept := range 5 {
		cut := forkstoreDamaged{Store: forkstoreRuns(t), envelopes: func(a [][]byte) [][]byte { return a[:kept] }}
		var file bytes.Buffer
		err := checkpoint.Export(t.Context(), cut, "whole", &file)
		var damaged *checkpoint.CorruptError
		if !errors.As(err, &damaged) || damaged.Run != "whole" || !strings.Contains(damaged.Reason, "missing") {
			t.Errorf("with %d of 5 appends Export = %v", kept, err)
		}
		if _, err := checkpoint.Import(t.Context(), new(memory.Store), &file, checkpoint.ImportOptions{}); err == nil {
			t.Errorf("what was written of %d of 5 appends is imported", kept)
		}
	}
}

// Of a log that begins too late the error names the oldest entry that the store has to have,
// whatever else is wrong.
func TestExportNamesAMissingBeginning(t *testing.T) {
	cut := func(a [][]byte) [][]byte { return a[1:] }
	cutAndHurt := func(a [][]byte) [][]byte {
		a[3][len(a[3])-3] ^= 1
		return a[1:]
	}
	hurt := func(a [][]byte) [][]byte {
		a[0][len(a[0])-3] ^= 1
		return a
	}
	for _, c := range []struct {
		run       string
		envelopes func([][]byte) [][]byte
		want      uint64
	}{
		{"whole", cut, 1}, {"whole", cutAndHurt, 1}, {"whole", hurt, 1}, {"trimmed", cut, 6}, {"trimmed", cutAndHurt, 6}, {"trimmed", hurt, 6},
	} {
		s := forkstoreDamaged{Store: forkstoreRuns(t), envelopes: c.envelopes}
		err := checkpoint.Export(t.Context(), s, c.run, io.Discard)
		var damaged *checkpoint.CorruptError
		if !errors.As(err, &damaged) || damaged.Seq != c.want {
			t.Errorf("Export of run %q = %v, want damage at entry %d", c.run, err, c.want)
		}
	}
}

// A graph that several entries name stands in the file once, as Import wants it.
func TestExportHoldsAGraphOnce(t *testing.T) {
	digest, graph := superGraph()
	var s memory.Store
	if err := s.PutGraph(t.Context(), digest, graph); err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(t.Context(), "run", "test")
	if err != nil {
		t.Fatal(err)
	}
	opening, err := json.Marshal(checkpoint.Opening{Graph: "archivist", Digest: digest})
	if err != nil {
		t.Fatal(err)
	}
	migration, err := json.Marshal(checkpoint.Migration{Graph: "archivist", From: digest, To: digest})
	if err != nil {
		t.Fatal(err)
	}
	var head checkpoint.Head
	for _, e := range []checkpoint.Entry{{Kind: checkpoint.Opened, Data: opening}, {Kind: checkpoint.Migrated, Data: migration}} {
		if head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	file := superExport(t, &s, "run")
	if n := bytes.Count(file, graph); n != 1 {
		t.Errorf("the graph stands in the file %d times, want once", n)
	}
	if info := superImport(t, new(memory.Store), file); info.Head != head {
		t.Errorf("what is imported ends at %+v, want %+v", info.Head, head)
	}
}

// A draining store has whoever is at work on a run take a message when it is asked for those that
// wait.
type draining struct {
	*memory.Store
	drain func()
}

func (s draining) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	s.drain()
	return s.Store.Posts(ctx, run)
}

// A message that is taken while its run is exported is in the file: as one that waits, or by the
// entry that took it.
func TestExportOfARunThatTakesAMessage(t *testing.T) {
	s := superRun(t, "run")
	if err := s.Post(t.Context(), "run", checkpoint.Post{ID: "m", Kind: "turn", Data: json.RawMessage("{}")}); err != nil {
		t.Fatal(err)
	}
	drain := func() {
		info, err := s.Stat(t.Context(), "run")
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Acquire(t.Context(), "run", "who is at work")
		if err != nil {
			t.Fatal(err)
		}
		entry := checkpoint.Entry{Kind: checkpoint.Noted, Post: "m", Data: json.RawMessage(`{"note":"taken","value":1}`)}
		if _, err := s.Append(t.Context(), l, info.Head, []checkpoint.Entry{entry}); err != nil {
			t.Fatal(err)
		}
		if err := s.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	file := superExport(t, draining{s, drain}, "run")
	to := new(memory.Store)
	superImport(t, to, file)
	posts, err := to.Posts(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, p := range posts {
		if p.ID == "m" {
			found++
		}
	}
	for e, err := range to.Read(t.Context(), "run", 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Post == "m" {
			found++
		}
	}
	if found != 1 {
		t.Errorf("the message is there %d times", found)
	}
}
