package checkpoint_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// What stores know of a run is what it was when entries are refused, whichever of them is at fault,
// and else what Appended says.
func TestInfoAppend(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_700_000_000_000)
	opening := checkpoint.Entry{Kind: checkpoint.Opened, Data: json.RawMessage(`{"graph":"g","digest":"d"}`)}
	var opened checkpoint.Info
	if err := opened.Append(at, checkpoint.Head{Seq: 1}, []checkpoint.Entry{opening}); err != nil {
		t.Fatal(err)
	}
	if opened.Graph != "g" || opened.Head.Seq != 1 || !opened.Created.Equal(at) || opened.Turn != 1 {
		t.Errorf("behind its opening the run is %+v", opened)
	}
	done := checkpoint.Entry{Kind: checkpoint.Done, Path: "a"}
	for name, entries := range map[string][]checkpoint.Entry{
		"done":    {done},
		"waiting": {done, {Kind: checkpoint.Waiting, Data: json.RawMessage(`{}`)}},
		"turn":    {{Kind: checkpoint.Completed}, {Kind: checkpoint.TurnBegun, Data: json.RawMessage(`{"number":2}`)}},
		"migrated": {{Kind: checkpoint.Migrated,
			Data: json.RawMessage(`{"graph":"h","from":"d","to":"e"}`)}, done},
	} {
		head := checkpoint.Head{Seq: 1 + uint64(len(entries))}
		want, err := opened.Appended(at.Add(time.Hour), head, entries)
		if err != nil {
			t.Fatal(err)
		}
		got := opened
		if err := got.Append(at.Add(time.Hour), head, entries); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got, want) || got.Head != head {
			t.Errorf("%s: the run is %+v, should be %+v", name, got, want)
		}
	}
	for name, last := range map[string]checkpoint.Entry{
		"opened again": opening,
		"a trimming":   {Kind: checkpoint.Trimmed, Data: json.RawMessage(`{}`)},
		"no migration": {Kind: checkpoint.Migrated, Data: json.RawMessage(`[]`)},
		"no rewinding": {Kind: checkpoint.Rewound, Data: json.RawMessage(`7`)},
	} {
		got := opened
		err := got.Append(at.Add(time.Hour), checkpoint.Head{Seq: 3}, []checkpoint.Entry{
			{Kind: checkpoint.Completed}, {Kind: checkpoint.TurnBegun, Data: json.RawMessage(`{"number":2}`)}, last,
		})
		if err == nil {
			t.Errorf("%s: is appended", name)
		}
		if !reflect.DeepEqual(got, opened) {
			t.Errorf("%s: after %v the run is %+v, should be %+v", name, err, got, opened)
		}
	}
	forked := checkpoint.Entry{Kind: checkpoint.Opened, Data: json.RawMessage(`{"graph":"g","digest":"d","origin":{"run":"r","seq":3,"base":"b"}}`)}
	var refused *checkpoint.ArgumentError
	var none checkpoint.Info
	if err := none.Append(at, checkpoint.Head{Seq: 1}, []checkpoint.Entry{forked}); !errors.As(err, &refused) || !reflect.DeepEqual(none, checkpoint.Info{}) {
		t.Errorf("a fork is appended: %v, %+v", err, none)
	}
}

// No archive gives a run an epoch behind which there are none for leases.
func TestArchiveOfALateEpoch(t *testing.T) {
	t.Parallel()
	for epoch, fits := range map[uint64]bool{1: true, math.MaxInt64 / 2: true, math.MaxInt64/2 + 1: false, math.MaxInt64: false} {
		data, _, err := checkpoint.Seal(nil, checkpoint.Head{}, time.Now(), epoch, []checkpoint.Entry{{Kind: checkpoint.Opened}})
		if err != nil {
			t.Fatal(err)
		}
		log := checkpoint.NewLog("run")
		if err := log.Add(data); err != nil {
			t.Fatal(err)
		}
		if err := (checkpoint.Archive{}).Complete(log); (err == nil) != fits || !fits && !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("epoch %d: %v", epoch, err)
		}
	}
}

// An instant that is taken before a run begins is never behind the run, however fine the clock is:
// every run is either since an instant or before it.
func TestFilterByInstants(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	info, err := checkpoint.Info{}.Appended(at.Add(900*time.Microsecond), checkpoint.Head{Seq: 1}, []checkpoint.Entry{{Kind: checkpoint.Opened}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		instant time.Time
		since   bool
	}{
		{at, true}, {at.Add(300 * time.Microsecond), true}, {at.Add(-time.Microsecond), true}, {at.Add(time.Millisecond), false},
		// In milliseconds since 1970 these have no number.
		{time.Unix(1<<60, 0), false}, {time.Unix(-1<<60, 0), true}, {time.UnixMilli(math.MaxInt64).Add(time.Second), false},
		{time.UnixMilli(math.MinInt64).Add(-time.Second), true},
	} {
		since, before := checkpoint.Filter{Since: c.instant}.Matches(info), checkpoint.Filter{Before: c.instant}.Matches(info)
		if since != c.since || before == c.since {
			t.Errorf("of a run created at %v: since %v is %t, before it %t", info.Created, c.instant, since, before)
		}
	}
}

// A run that was rewound is in the turn that it goes back to.
func TestRewoundRunIsInTheTurnThatItGoesBackTo(t *testing.T) {
	var info checkpoint.Info
	turn := checkpoint.Entry{Kind: checkpoint.TurnBegun, Data: json.RawMessage(`{"number":2}`)}
	for _, entries := range [][]checkpoint.Entry{
		{{Kind: checkpoint.Opened, Data: json.RawMessage(`{"graph":"g","digest":"d"}`)}, turn, turn},
		{{Kind: checkpoint.Rewound, Data: json.RawMessage(`{"to":2,"turn":2,"graph":"g","digest":"d"}`)}},
	} {
		head := checkpoint.Head{Seq: info.Head.Seq + uint64(len(entries))}
		if err := info.Append(time.UnixMilli(1), head, entries); err != nil {
			t.Fatal(err)
		}
	}
	if info.Turn != 2 {
		t.Errorf("it is in turn %d, want 2", info.Turn)
	}
}

// An append begins no fork, be there a base or not.
func TestAppendOfAnOrigin(t *testing.T) {
	for _, origin := range []string{`{"run":"o","seq":1}`, `{"run":"o","seq":1,"base":"b"}`} {
		var info checkpoint.Info
		err := info.Append(time.UnixMilli(1), checkpoint.Head{Seq: 1}, []checkpoint.Entry{
			{Kind: checkpoint.Opened, Data: json.RawMessage(`{"graph":"g","digest":"d","origin":` + origin + `}`)},
		})
		var bad *checkpoint.ArgumentError
		if !errors.As(err, &bad) || info.Head.Seq != 0 {
			t.Errorf("with the origin %s: Append = %v, and the run is %+v", origin, err, info)
		}
	}
}
