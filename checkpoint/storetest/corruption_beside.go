package storetest

import (
	"bytes"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
)

// A snapshot that is not the one that was put is ErrCorrupt: one of which a bit is another, one of
// another run, or an older one. The log needs none, and is whole.
func damagedSnapshotIsFound(t *trial, s checkpoint.Store) {
	at := func(run string, seq uint64) Place { return Place{Part: checkpoint.PartSnapshot, Run: run, Seq: seq} }
	t.damages(s, func(t *trial, s checkpoint.Store) {
		for _, run := range []string{"flipped", "foreign", "older", "bystander"} {
			l, head := begun(t, s, run)
			for n := range 2 {
				head = add(t, s, l, head, done(n))
				put(t, s, l, checkpoint.Snapshot{Head: head, Data: fmt.Appendf(nil, "state %d of %s", head.Seq, run)})
			}
			release(t, s, l)
		}
	}, func(t *trial, s checkpoint.Store, d Damage) checkpoint.Store {
		if s = t.corrupt(s, d); s == nil {
			return nil
		}
		snap, err := s.Snapshot(t.Context(), d.At.Run, 0)
		asStored(t, d, snap.Data, fmt.Appendf(nil, "state 3 of %s", d.At.Run), err)
		if got := read(t, s, d.At.Run, 1, 0); len(got) != 3 {
			t.Errorf("%v: there are %d entries, want 3", d, len(got))
		}
		snap, err = s.Snapshot(t.Context(), "bystander", 0)
		asStored(t, d, snap.Data, []byte("state 3 of bystander"), err)
		if err != nil {
			t.Errorf("%v: Snapshot of another run = %v", d, err)
		}
		return s
	},
		Damage{Kind: Flipped, At: at("flipped", 3)},
		Damage{Foreign, at("foreign", 3), at("bystander", 3)},
		Damage{Older, at("older", 3), at("older", 2)})
}

// A message that is not the one that was posted is ErrCorrupt: one of which a bit is another, or
// one of another run, or of another id, in its place. The log is whole.
func damagedMessageIsFound(t *trial, s checkpoint.Store) {
	message := func(run, id string) checkpoint.Post {
		return checkpoint.Post{ID: id, Kind: "answer", Data: encode("what " + run + " was told by " + id)}
	}
	at := func(run, id string) Place { return Place{Part: checkpoint.PartPosts, Run: run, ID: id} }
	t.damages(s, func(t *trial, s checkpoint.Store) {
		for _, run := range []string{"flipped", "foreign", "older", "bystander"} {
			rested(t, s, run)
			for _, id := range []string{"a", "b"} {
				post(t, s, run, message(run, id))
			}
		}
	}, func(t *trial, s checkpoint.Store, d Damage) checkpoint.Store {
		if s = t.corrupt(s, d); s == nil {
			return nil
		}
		all, err := s.Posts(t.Context(), d.At.Run)
		if err == nil && len(all) != 2 {
			t.Errorf("%v: there are %d messages, want both or ErrCorrupt", d, len(all))
		}
		for _, p := range all {
			if want := message(d.At.Run, p.ID); !p.Says(want) {
				t.Errorf("%v: Posts = %q %s, want %s", d, p.ID, p.Data, want.Data)
			}
		}
		asStored(t, d, nil, nil, err)
		if got := read(t, s, d.At.Run, 1, 0); len(got) != 1 {
			t.Errorf("%v: there are %d entries, want 1", d, len(got))
		}
		if got := posts(t, s, "bystander"); len(got) != 2 || !got[1].Says(message("bystander", "b")) {
			t.Errorf("%v: another run has the messages %v", d, got)
		}
		return s
	},
		Damage{Kind: Flipped, At: at("flipped", "b")},
		Damage{Foreign, at("foreign", "b"), at("bystander", "b")},
		Damage{Older, at("older", "b"), at("older", "a")})
}

// A base that is not what its digest says is ErrCorrupt for every run that refers to it: one of
// which a bit is another, one that is gone, which is not ErrNotFound, or another one. The logs of
// the runs are whole.
func damagedBaseIsFound(t *trial, s checkpoint.Store) {
	t.damages(s, forkedBystander, func(t *trial, s checkpoint.Store, d Damage) checkpoint.Store {
		run, base := d.At.Run, small(int(d.Kind))
		fork(t, s, base, run)
		if s = t.corrupt(s, d); s == nil {
			return nil
		}
		got, err := s.Base(t.Context(), run, d.At.ID)
		asStored(t, d, got, base, err)
		if got := read(t, s, run, 1, 0); len(got) != 2 {
			t.Errorf("%v: there are %d entries, want 2", d, len(got))
		}
		wantBase(t, s, "bystander", small(0))
		return s
	}, damagedBases()...)
}

// forkedBystander makes the run whose base is in the place of that of another.
func forkedBystander(t *trial, s checkpoint.Store) {
	t.Helper()
	fork(t, s, small(0), "bystander")
}

// damagedBases are damages to the bases of runs, each of which is named and numbered by its kind.
func damagedBases() (all []Damage) {
	for _, kind := range []DamageKind{Flipped, Lost, Foreign} {
		d := Damage{Kind: kind, At: baseOf(kind.String(), small(int(kind)))}
		if kind == Foreign {
			d.From = baseOf("bystander", small(0))
		}
		all = append(all, d)
	}
	return all
}

func baseOf(run string, base []byte) Place {
	return Place{Part: checkpoint.PartBase, Run: run, ID: checkpoint.BaseDigest(base)}
}

// A run that comes to share a base that can't be read is refused, or has the base all the same:
// what is acknowledged can be read.
func damagedBaseIsNotShared(t *trial, s checkpoint.Store) {
	t.damages(s, forkedBystander, func(t *trial, s checkpoint.Store, d Damage) checkpoint.Store {
		base, heir := small(int(d.Kind)), "heir of "+d.At.Run
		fork(t, s, base, d.At.Run)
		if s = t.corrupt(s, d); s == nil {
			return nil
		}
		err := s.Fork(t.Context(), forkOf(base, heir))
		if err != nil {
			asStored(t, d, nil, nil, err)
			_, err = s.Stat(t.Context(), heir)
			wantErr(t, err, checkpoint.ErrNotFound, "%v: Stat of a fork that was refused", d)
			return s
		}
		wantBase(t, s, heir, base)
		return s
	}, damagedBases()...)
}

// What is known of a run beside its log is ErrCorrupt if it is not what it was: if a bit of it is
// another, if it is gone, which is not ErrNotFound, or if it is that of another run. Nobody begins
// the run anew, and a listing goes on behind it.
func damagedInfoIsFound(t *trial, s checkpoint.Store) {
	t.damages(s, func(t *trial, s checkpoint.Store) {
		for _, run := range []string{"flipped", "lost", "foreign", "bystander"} {
			l, head := begun(t, s, run)
			add(t, s, l, head, done(1), checkpoint.Entry{Kind: checkpoint.Waiting})
			release(t, s, l)
		}
	}, infoAsStored,
		Damage{Kind: Flipped, At: infoOf("flipped", 0)},
		Damage{Kind: Lost, At: infoOf("lost", 0)},
		Damage{Foreign, infoOf("foreign", 0), infoOf("bystander", 0)})
}

// What is known of a run beside its log is ErrCorrupt if it is what was known once, when the log
// was shorter: a run that has come to rest is not told of as one that has never run.
func olderInfoIsFound(t *trial, s checkpoint.Store) {
	t.damages(s, func(t *trial, s checkpoint.Store) {
		for _, run := range []string{"runs", "waits", "bystander"} {
			l, head := begun(t, s, run)
			head = add(t, s, l, head, done(1))
			e := done(2)
			if run != "runs" {
				e = checkpoint.Entry{Kind: checkpoint.Waiting}
			}
			add(t, s, l, head, e)
			release(t, s, l)
		}
	}, infoAsStored,
		Damage{Older, infoOf("runs", 0), infoOf("runs", 1)},
		Damage{Older, infoOf("waits", 0), infoOf("waits", 2)})
}

func infoOf(run string, seq uint64) Place {
	return Place{Part: checkpoint.PartInfo, Run: run, Seq: seq}
}

// infoAsStored does damage to what is known of a run of three entries, and checks that it is told
// of as it was or not at all, that nobody begins it anew, and that another run is whole. It returns
// the store to go on with, nil if opening it was refused.
func infoAsStored(t *trial, s checkpoint.Store, d Damage) checkpoint.Store {
	t.Helper()
	run := d.At.Run
	before := stat(t, s, run)
	if s = t.corrupt(s, d); s == nil {
		return nil
	}
	before.Epoch = 0 // of leases nobody knows more than the log
	told := func(info checkpoint.Info, err error) {
		t.Helper()
		info.Epoch = 0
		asStored(t, d, fmt.Append(nil, info), fmt.Append(nil, before), err)
	}
	told(s.Stat(t.Context(), run))
	page, err := s.List(t.Context(), checkpoint.Filter{})
	asStored(t, d, nil, nil, err)
	for _, info := range page {
		if info.Run == run {
			told(info, nil)
		}
	}
	listedBeside(t, s, d)
	entries, err := collect(s.Read(t.Context(), run, 1, 0))
	asStored(t, d, fmt.Append(nil, len(entries)), []byte("3"), err)
	l, err := s.Acquire(t.Context(), run, "heir")
	asStored(t, d, nil, nil, err)
	if err == nil {
		_, err = s.Append(t.Context(), l, checkpoint.Head{}, []checkpoint.Entry{opened("another graph", nil)})
		if !damaged(err) {
			wantErr(t, err, checkpoint.ErrConflict, "%v: Append of a new beginning", d)
		}
	}
	if got := stat(t, s, "bystander"); got.Run != "bystander" || got.Head.Seq != 3 {
		t.Errorf("%v: another run is %+v", d, got)
	}
	return s
}

// listedBeside checks that a listing names the runs that are damaged, if it tells of damage, and
// goes on behind them.
func listedBeside(t *trial, s checkpoint.Store, d Damage) {
	t.Helper()
	for _, limit := range []int{0, 1} {
		whole := false
		for info, err := range checkpoint.Runs(t.Context(), s, checkpoint.Filter{Limit: limit}) {
			switch {
			case err != nil && (info.Run == "" || info.Run == "bystander"):
				t.Errorf("%v: a listing in pages of %d names no damaged run: %v", d, limit, err)
			case err == nil && info.Run == "bystander":
				whole = true
			}
		}
		if !whole {
			t.Errorf("%v: a listing in pages of %d hides another run", d, limit)
		}
	}
}

// asStored checks what was read of something that was damaged: an error that says so, or the data
// as they were.
func asStored(t *trial, d Damage, got, want []byte, err error) {
	t.Helper()
	switch {
	case err != nil && !damaged(err):
		t.Errorf("%v: it is read with the error %v, want ErrCorrupt or ErrVersion", d, err)
	case err == nil && !bytes.Equal(got, want):
		t.Errorf("%v: %.200q is read, want %.200q or ErrCorrupt", d, got, want)
	}
}
