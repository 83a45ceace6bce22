package badgerstore_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// Whatever is asked of a store in memory and of one on the disk, in any order, sensible or not,
// both answer the same, over reopenings of the one on the disk, and Verify finds nothing.
// PAWL_RANDOM is how many histories are tried, by default 20.
func TestRandomCallsOfTwoStores(t *testing.T) {
	t.Parallel()
	n := 20
	if text := os.Getenv("PAWL_RANDOM"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for seed := range n {
		a := &alike{T: t, Rand: rand.New(rand.NewPCG(1, uint64(seed))), dir: memoryDir(t), heads: map[string][]pair[checkpoint.Head]{}}
		a.disk = openUnsynced(t, a.dir)
		a.stores = pair[archiving]{new(memory.Store), a.disk}
		for step := range 300 {
			if what := a.step(); what != "" {
				t.Fatalf("history %d, step %d: %s", seed, step, what)
			}
		}
		a.verify()
		if err := a.disk.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

type archiving interface {
	checkpoint.Store
	checkpoint.Archiver
}

// A pair is of the store in memory and the one on the disk.
type pair[V any] [2]V

// An alike is two stores that are asked the same.
type alike struct {
	*testing.T
	*rand.Rand
	dir    string
	disk   *badgerstore.Store
	stores pair[archiving]
	leases []pair[checkpoint.Lease]
	heads  map[string][]pair[checkpoint.Head] // by run, the newest last
}

var (
	alikeRuns  = []string{"a", "b", "a/b", "é", "x y", "A", strings.Repeat("z", 256), "", "a\nb", "never"}
	alikePosts = []string{"p", "p1", "p/2", strings.Repeat("k", 256), "", "\xff", strings.Repeat("k", 70_000)}
	alikeBases = [][]byte{[]byte(`{"m":1}`), []byte("raw\x00\n"), bytes.Repeat([]byte("abcdefgh"), 20_000), forkstoreBase(1)}
)

func one[V any](a *alike, all ...V) V { return all[a.IntN(len(all))] }

// lease is one that was given lately, or nobody's.
func (a *alike) lease() pair[checkpoint.Lease] {
	if n := len(a.leases); n > 0 && a.IntN(20) > 0 {
		return a.leases[max(0, n-1-a.IntN(6))]
	}
	l := checkpoint.Lease{Run: one(a, alikeRuns...), Epoch: a.Uint64N(3), Owner: one(a, "", "nobody")}
	return pair[checkpoint.Lease]{l, l}
}

// head is where the run stands, or stood once, or never.
func (a *alike) head(run string) pair[checkpoint.Head] {
	switch all := a.heads[run]; {
	case len(all) == 0 || a.IntN(30) == 0:
		return pair[checkpoint.Head]{}
	case a.IntN(20) == 0:
		return one(a, all...)
	default:
		return all[len(all)-1]
	}
}

func (a *alike) entry() checkpoint.Entry {
	e := checkpoint.Entry{Step: a.IntN(3), Path: one(a, "", "a/b", "é\"\n"), Kind: one(a, checkpoint.Done, checkpoint.Superstep, checkpoint.Completed,
		checkpoint.TurnBegun, checkpoint.Waiting, checkpoint.Noted, checkpoint.Resumed, checkpoint.Failed, checkpoint.Migrated, checkpoint.Rewound)}
	if a.IntN(30) == 0 {
		e.Kind = one(a, checkpoint.Opened, checkpoint.Trimmed, 0, 200)
	}
	e.Data = json.RawMessage(one(a, ``, `{}`, ` "x" `, `{"graph":"g2","to":"y","turn":3,"digest":"z"}`))
	if a.IntN(60) == 0 {
		e.Data = json.RawMessage(one(a, `nope`, `[`, `{"graph":7}`))
	}
	if a.IntN(40) == 0 {
		e.Delta = fmt.Appendf(nil, "%q", noise(a.IntN(700<<10)))
	}
	if a.IntN(4) == 0 {
		e.Post = one(a, alikePosts...)
	}
	return e
}

func (a *alike) opening(origin *checkpoint.Origin) checkpoint.Entry {
	data, err := json.Marshal(checkpoint.Opening{Graph: one(a, "g", "h", ""), Correlation: one(a, "", "c\u2028"), Origin: origin,
		Labels: one(a, nil, map[string]string{"k": "v", "": ""}, map[string]string{"k": "w\x00"})})
	if err != nil {
		a.Fatal(err)
	}
	return checkpoint.Entry{Kind: checkpoint.Opened, Data: data}
}

// both asks both stores, and says in what their answers differ.
func (a *alike) both(what string, ask func(i int, s archiving) string) string {
	var told pair[string]
	for i, s := range a.stores {
		told[i] = ask(i, s)
	}
	if told[0] == told[1] {
		return ""
	}
	return fmt.Sprintf("%.300s\nin memory:   %.1000s\non the disk: %.1000s", what, told[0], told[1])
}

// moves is both for what leads a run to another head.
func (a *alike) moves(run, what string, ask func(i int, s archiving) (checkpoint.Head, error)) string {
	var to pair[checkpoint.Head]
	ok := true
	differ := a.both(what, func(i int, s archiving) string {
		var err error
		to[i], err = ask(i, s)
		ok = ok && err == nil
		return fmt.Sprint(to[i].Seq, sort(err))
	})
	if ok {
		a.heads[run] = append(a.heads[run], to)
	}
	return differ
}

// step asks for one thing.
func (a *alike) step() (differ string) {
	ctx, run := a.Context(), one(a, alikeRuns...)
	l := a.lease()
	switch a.IntN(20) {
	case 0, 1:
		owner, ok := one(a, "o", "other", ""), true
		var got pair[checkpoint.Lease]
		differ = a.both(fmt.Sprintf("Acquire(%q, %q)", run, owner), func(i int, s archiving) string {
			var err error
			got[i], err = s.Acquire(ctx, run, owner)
			ok = ok && err == nil
			return sort(err)
		})
		if ok {
			a.leases = append(a.leases, got)
		}
	case 2:
		differ = a.both(fmt.Sprintf("Release(%q)", l[0].Run), func(i int, s archiving) string { return sort(s.Release(ctx, l[i])) })
		if a.IntN(8) > 0 { // and else it is used again
			a.leases = slices.DeleteFunc(a.leases, func(old pair[checkpoint.Lease]) bool { return old == l })
		}
	case 3, 4, 5, 6, 7:
		at := a.head(l[0].Run)
		var entries []checkpoint.Entry
		if at[0].Seq == 0 && a.IntN(6) > 0 {
			entries = append(entries, a.opening(nil))
		}
		for range a.IntN(4) {
			entries = append(entries, a.entry())
		}
		kinds := ""
		for _, e := range entries {
			kinds += fmt.Sprintf("%s of %.60q draining %.10q, ", e.Kind, e.Data, e.Post)
		}
		differ = a.moves(l[0].Run, fmt.Sprintf("Append(%q, %d, %s)", l[0].Run, at[0].Seq, kinds), func(i int, s archiving) (checkpoint.Head, error) {
			return s.Append(ctx, l[i], at[i], entries)
		})
	case 8:
		from, to := one(a, 0, a.Uint64N(10), ^uint64(0)), one(a, 0, a.Uint64N(14), ^uint64(0))
		differ = a.both(fmt.Sprintf("Read(%q, %d, %d)", run, from, to), func(_ int, s archiving) (told string) {
			for e, err := range s.Read(ctx, run, from, to) {
				told += fmt.Sprintf("%d %s %q %q %d %d %s\n", e.Seq, e.Kind, e.Path, e.Post, e.Step, len(e.Delta), sort(err))
			}
			return told
		})
	case 9:
		differ = a.both(fmt.Sprintf("Stat(%q)", run), func(_ int, s archiving) string { return tell(s.Stat(ctx, run)) })
	case 10:
		f := checkpoint.Filter{Limit: a.IntN(4), After: one(a, "", run), Graph: one(a, "", "", "g"), Labels: one(a, nil, nil, map[string]string{"k": "v"}),
			Status: one(a, nil, []checkpoint.Status{checkpoint.StatusRunning, checkpoint.StatusPending})}
		differ = a.both(fmt.Sprintf("List(%+v)", f), func(_ int, s archiving) (told string) {
			page, err := s.List(ctx, f)
			for _, info := range page {
				told += tell(info, nil)
			}
			return told + sort(err)
		})
	case 11, 12:
		p := checkpoint.Post{ID: one(a, alikePosts...), Kind: one(a, "answer", ""), Data: json.RawMessage(one(a, ``, `1`, `{"a":"b"}`, `x`))}
		differ = a.both(fmt.Sprintf("Post(%q, %.100v)", run, p), func(_ int, s archiving) string {
			told := sort(s.Post(ctx, run, p))
			all, err := s.Posts(ctx, run)
			for _, p := range all {
				told += fmt.Sprintf(" %q %q %q", p.ID, p.Kind, p.Data)
			}
			return told + sort(err)
		})
	case 13:
		at, up, data := a.head(l[0].Run), a.Uint64N(12), one(a, nil, []byte("x"), alikeBases[3])
		if a.IntN(8) == 0 {
			at[0].Seq++
			at[1].Seq++
		}
		differ = a.both(fmt.Sprintf("PutSnapshot(%q, %d), Snapshot up to %d", l[0].Run, at[0].Seq, up), func(i int, s archiving) string {
			told := sort(s.PutSnapshot(ctx, l[i], checkpoint.Snapshot{Head: at[i], Data: data}))
			snap, err := s.Snapshot(ctx, l[i].Run, up)
			return fmt.Sprint(told, snap.Head.Seq, len(snap.Data), sort(err))
		})
	case 14:
		differ = a.fork()
	case 15, 16:
		at, base := a.head(l[0].Run), one(a, alikeBases...)
		t := checkpoint.Trimming{First: one(a, at[0].Seq+1, a.Uint64N(at[0].Seq+3)), Base: checkpoint.BaseDigest(base)}
		bases := [][]byte{base}
		if a.IntN(3) == 0 {
			pinned := one(a, alikeBases...)
			t.Pins, bases = []checkpoint.Pin{{Seq: a.Uint64N(4), Base: checkpoint.BaseDigest(pinned)}}, append(bases, pinned)
		}
		data, err := json.Marshal(t)
		if err != nil {
			a.Fatal(err)
		}
		if a.IntN(6) == 0 {
			bases = bases[1:]
		}
		e := checkpoint.Entry{Kind: checkpoint.Trimmed, Data: data, Post: one(a, "", "p")}
		differ = a.moves(l[0].Run, fmt.Sprintf("Trim(%q, %d, %s)", l[0].Run, at[0].Seq, data), func(i int, s archiving) (checkpoint.Head, error) {
			return s.Trim(ctx, l[i], at[i], e, bases...)
		})
	case 17:
		differ = a.both(fmt.Sprintf("Delete(%q)", run), func(_ int, s archiving) string { return sort(s.Delete(ctx, run)) })
		a.found(run)
	case 18:
		differ = a.swap(run)
	case 19:
		if a.IntN(4) == 0 {
			a.reopen()
		}
	}
	return differ
}

// fork makes some runs of a base and a shelf, or tries to.
func (a *alike) fork() string {
	f := checkpoint.Fork{Base: one(a, alikeBases...), Shelf: one(a, nil, nil, alikeBases[0], alikeBases[3])}
	o := &checkpoint.Origin{Run: "x", Seq: 3, Base: checkpoint.BaseDigest(f.Base), Turn: a.IntN(3)}
	if f.Shelf != nil && a.IntN(9) > 0 {
		o.Shelf = checkpoint.BaseDigest(f.Shelf)
	}
	var runs []string
	for range 1 + a.IntN(3) {
		entries := []checkpoint.Entry{a.opening(o), a.entry()}[:1+a.IntN(2)]
		runs = append(runs, one(a, alikeRuns...))
		f.Runs = append(f.Runs, checkpoint.ForkedRun{Run: runs[len(runs)-1], Entries: entries})
	}
	differ := a.both(fmt.Sprintf("Fork(%.40q)", runs), func(_ int, s archiving) (told string) {
		told = sort(s.Fork(a.Context(), f))
		for _, run := range runs {
			told += "\n" + tell(s.Stat(a.Context(), run))
			base, err := s.Base(a.Context(), run, checkpoint.BaseDigest(f.Base))
			told += fmt.Sprint(" ", len(base), sort(err))
		}
		return told
	})
	a.found(runs...)
	return differ
}

// swap moves a run by its export from one store to the other.
func (a *alike) swap(run string) string {
	var files pair[bytes.Buffer]
	differ := a.both(fmt.Sprintf("Export(%q), Delete, Import", run), func(i int, s archiving) string {
		return sort(checkpoint.Export(a.Context(), s, run, &files[i]))
	})
	if differ != "" || files[0].Len() == 0 {
		return differ
	}
	differ = a.both(fmt.Sprintf("Delete(%q), Import of the other's", run), func(i int, s archiving) string {
		if err := s.Delete(a.Context(), run); err != nil {
			return sort(err)
		}
		return tell(checkpoint.Import(a.Context(), s, bytes.NewReader(files[1-i].Bytes()), checkpoint.ImportOptions{}))
	})
	a.found(run)
	return differ
}

// found notes where runs stand that may have come or gone.
func (a *alike) found(runs ...string) {
	for _, run := range runs {
		var at pair[checkpoint.Head]
		for i, s := range a.stores {
			if info, err := s.Stat(a.Context(), run); err == nil {
				at[i] = info.Head
			}
		}
		if a.heads[run] = append(a.heads[run], at); at[0].Seq == 0 {
			delete(a.heads, run)
		}
	}
}

// reopen closes the store on the disk, which ends all leases, and opens it again.
func (a *alike) reopen() {
	a.Helper()
	if err := a.disk.Close(); err != nil {
		a.Fatal(err)
	}
	a.disk = openUnsynced(a.T, a.dir)
	a.stores[1] = a.disk
	for _, l := range a.leases {
		if err := a.stores[0].Release(a.Context(), l[0]); err != nil {
			a.Fatal(err)
		}
	}
	a.leases = nil
	a.verify()
}

func (a *alike) verify() {
	a.Helper()
	for f, err := range a.disk.Verify(a.Context(), nil) {
		a.Errorf("Verify finds %+v, %v", f, err)
	}
}

// tell says what is known of a run that two stores can have in common.
func tell(i checkpoint.Info, err error) string {
	origin, _ := json.Marshal(i.Origin)
	return fmt.Sprintf("%.20q %s %q %q %v %q turn %d, %d to %d, base %.8s pins %v origin %s owner %q: %s\n", i.Run, i.Status, i.Graph, i.Digest, i.Labels,
		i.Correlation, i.Turn, i.First, i.Head.Seq, i.Base, i.Pins, origin, i.Owner, sort(err))
}

// sort says what a caller can tell an error by.
func sort(err error) string {
	if err == nil {
		return "no error"
	}
	sorts := []error{checkpoint.ErrNotFound, checkpoint.ErrRunID, checkpoint.ErrPostID, checkpoint.ErrExists, checkpoint.ErrBusy, checkpoint.ErrConflict,
		checkpoint.ErrFenced, checkpoint.ErrCommitUnknown, checkpoint.ErrCorrupt, checkpoint.ErrClosed, checkpoint.ErrTooLarge}
	if i := slices.IndexFunc(sorts, func(s error) bool { return errors.Is(err, s) }); i >= 0 {
		return sorts[i].Error()
	}
	if bad, ok := errors.AsType[*checkpoint.ArgumentError](err); ok {
		return bad.Error()
	}
	if trimmed, ok := errors.AsType[*checkpoint.TrimmedError](err); ok {
		return trimmed.Error()
	}
	return "another error"
}
