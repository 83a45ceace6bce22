package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A run's status is what its entries make of it; what may be written while it rests does
// not change it. Updated tells when it changed, Created when the run began. List selects it by the
// status that it has, and whatever that is the run takes messages.
func statusFollowsEntries(t *trial, s checkpoint.Store) {
	l := owned(t, s, "run")
	var head checkpoint.Head
	var before checkpoint.Info
	for i, step := range []struct {
		kind checkpoint.Kind
		want checkpoint.Status
	}{
		{checkpoint.Opened, checkpoint.StatusPending},
		{checkpoint.Entered, checkpoint.StatusRunning},
		{checkpoint.Done, checkpoint.StatusRunning},
		{checkpoint.Interrupted, checkpoint.StatusRunning},
		{checkpoint.Waiting, checkpoint.StatusInterrupted},
		{checkpoint.Answered, checkpoint.StatusInterrupted},
		{checkpoint.Noted, checkpoint.StatusInterrupted},
		{checkpoint.Resumed, checkpoint.StatusRunning},
		{checkpoint.Cancelled, checkpoint.StatusCancelled},
		{checkpoint.Resumed, checkpoint.StatusRunning},
		{checkpoint.TimedOut, checkpoint.StatusTimedOut},
		{checkpoint.Resumed, checkpoint.StatusRunning},
		{checkpoint.Failed, checkpoint.StatusFailed},
		{checkpoint.Resumed, checkpoint.StatusRunning},
		{checkpoint.Superstep, checkpoint.StatusRunning},
		{checkpoint.Completed, checkpoint.StatusCompleted},
		{checkpoint.TurnBegun, checkpoint.StatusRunning},
		{checkpoint.Completed, checkpoint.StatusCompleted},
		{checkpoint.Rewound, checkpoint.StatusPending},
		{checkpoint.Resumed, checkpoint.StatusRunning},
	} {
		head = add(t, s, l, head, checkpoint.Entry{Kind: step.kind})
		info := stat(t, s, "run")
		if info.Status != step.want {
			t.Errorf("after %v the run is %s, want %s", step.kind, info.Status, step.want)
		}
		listedAs(t, s, "run", step.want)
		post(t, s, "run", checkpoint.Post{ID: fmt.Sprintf("after entry %d, %s", head.Seq, step.want), Kind: checkpoint.PostTurn})
		if i == 0 {
			before = info
		}
		if info.Created != before.Created {
			t.Errorf("after %v the run was created %v, before %v", step.kind, info.Created, before.Created)
		}
		at := entry(t, s, "run", head.Seq).At
		if want := at; info.Status != before.Status && !info.Updated.Equal(want) {
			t.Errorf("after %v the run was updated %v, want %v", step.kind, info.Updated, want)
		}
		if info.Status == before.Status && i > 0 && !info.Updated.Equal(before.Updated) {
			t.Errorf("%v did not change the status but the time of its change", step.kind)
		}
		before = info
	}
	// One append may change it several times.
	turns := before.Turn
	for range 2 {
		head = add(t, s, l, head, checkpoint.Entry{Kind: checkpoint.TurnBegun}, done(1),
			checkpoint.Entry{Kind: checkpoint.Waiting})
		turns++
		if info := stat(t, s, "run"); info.Status != checkpoint.StatusInterrupted || info.Turn != turns {
			t.Errorf("after a turn the run is %s in turn %d, want interrupted in %d", info.Status, info.Turn, turns)
		}
		listedAs(t, s, "run", checkpoint.StatusInterrupted)
	}
}

// listedAs checks that a run, the only one of the store, is listed under its status and no other.
func listedAs(t *trial, s checkpoint.Store, run string, status checkpoint.Status) {
	t.Helper()
	for _, other := range []checkpoint.Status{
		checkpoint.StatusPending, checkpoint.StatusRunning, checkpoint.StatusCompleted, checkpoint.StatusInterrupted,
		checkpoint.StatusCancelled, checkpoint.StatusTimedOut, checkpoint.StatusFailed,
	} {
		var want []string
		if other == status {
			want = []string{run}
		}
		if got := ids(t, s, checkpoint.Filter{Status: []checkpoint.Status{other}}); !slices.Equal(got, want) {
			t.Errorf("List of the status %s = %q, of a run that is %s", other, got, status)
		}
	}
}

// Stat and List tell what the opening said.
func statTellsTheOpening(t *trial, s checkpoint.Store) {
	labels := map[string]string{"tenant": "a b", "": "empty key", "empty value": "", "ü": "🪓", "long": strings.Repeat("ü", 5_000)}
	l := owned(t, s, "run")
	head := add(t, s, l, checkpoint.Head{}, opened("my graph", labels), done(1))
	page, err := s.List(t.Context(), checkpoint.Filter{})
	if err != nil || len(page) != 1 {
		t.Fatalf("List = %v, %v, want one run", page, err)
	}
	for name, info := range map[string]checkpoint.Info{"Stat": stat(t, s, "run"), "List": page[0]} {
		if info.Run != "run" || info.Graph != "my graph" || info.Digest != "digest of my graph" ||
			!maps.Equal(info.Labels, labels) || info.Correlation != "what belongs to my graph" || info.Head != head ||
			info.Turn != 1 || info.Status != checkpoint.StatusRunning || info.Epoch != l.Epoch || info.Owner != l.Owner {
			t.Errorf("%s tells %+v", name, info)
		}
	}
}

// migrated is the entry with which a run goes on with another graph.
func migrated(graph string) checkpoint.Entry {
	return checkpoint.Entry{Kind: checkpoint.Migrated, Data: encode(checkpoint.Migration{
		Graph: graph, From: "digest of graph", To: "digest of " + graph, Machine: json.RawMessage("{}"),
	})}
}

// A run that goes on with another graph is listed under that one, with the labels and the
// status that it had.
func statTellsTheGraphOfNow(t *trial, s checkpoint.Store) {
	labels := map[string]string{"label": "value"}
	l := owned(t, s, "run")
	head := add(t, s, l, checkpoint.Head{}, opened("graph", labels), done(1))
	before := stat(t, s, "run")
	head = add(t, s, l, head, migrated("new graph"))
	info := stat(t, s, "run")
	if info.Graph != "new graph" || info.Digest != "digest of new graph" || info.Head != head ||
		!maps.Equal(info.Labels, labels) || info.Status != before.Status || !info.Updated.Equal(before.Updated) {
		t.Errorf("Stat tells %+v", info)
	}
	if got := ids(t, s, checkpoint.Filter{Graph: "new graph"}); !slices.Equal(got, []string{"run"}) {
		t.Errorf("under the new graph List = %v", got)
	}
	if got := ids(t, s, checkpoint.Filter{Graph: "graph"}); len(got) != 0 {
		t.Errorf("under the old graph List = %v", got)
	}
}

// ids returns the runs that f selects, page by page. No page may repeat a run.
func ids(t *trial, s checkpoint.Store, f checkpoint.Filter) []string {
	t.Helper()
	var all []string
	seen := make(map[string]bool)
	for {
		page, err := s.List(t.Context(), f)
		if err != nil {
			t.Fatalf("List(%+v) = %v", f, err)
		}
		if len(page) > f.Page() {
			t.Fatalf("List(%+v) = %d runs", f, len(page))
		}
		for _, info := range page {
			if seen[info.Run] {
				t.Fatalf("List(%+v) = %.20q again, which was on a page before", f, info.Run)
			}
			seen[info.Run] = true
			all = append(all, info.Run)
		}
		if len(page) < f.Page() {
			return all
		}
		f.After = page[len(page)-1].Run
	}
}

// Runs are listed newest first, in the order in which they began, whatever came later. One that is
// made under the id of a run that was deleted is new.
func listIsNewestFirst(t *trial, s checkpoint.Store) {
	var want []string
	heads := make(map[string]checkpoint.Head)
	for i := range 12 {
		run := fmt.Sprintf("run-%d", (i*7)%12) // not in the order of the ids
		heads[run] = rested(t, s, run)
		want = append(want, run)
	}
	l := owned(t, s, want[3])
	add(t, s, l, heads[want[3]], done(1))
	slices.Reverse(want)
	if got := ids(t, s, checkpoint.Filter{}); !slices.Equal(got, want) {
		t.Errorf("List = %v, want %v", got, want)
	}
	again := want[5]
	erase(t, s, again)
	rested(t, s, again)
	want = slices.Insert(slices.Delete(want, 5, 6), 0, again)
	if got := ids(t, s, checkpoint.Filter{}); !slices.Equal(got, want) {
		t.Errorf("with %q deleted and made again List = %v, want %v", again, got, want)
	}
}

// A listing goes on behind the last run of a page, and ends with a page that is not full. A
// page has 100 runs if nothing else is said. A run that is not there has nothing behind it.
func listPages(t *trial, s checkpoint.Store) {
	const runs = 103
	for i := range runs {
		rested(t, s, fmt.Sprintf("run-%d", i))
	}
	page, err := s.List(t.Context(), checkpoint.Filter{})
	if err != nil || len(page) != 100 {
		t.Errorf("List = %d runs, %v, want 100", len(page), err)
	}
	for _, limit := range []int{1, 10, 100, 103, 1000} {
		got := ids(t, s, checkpoint.Filter{Limit: limit})
		if len(got) != runs || got[0] != "run-102" || got[runs-1] != "run-0" {
			t.Errorf("in pages of %d: %d runs, %v", limit, len(got), got)
		}
	}
	_, err = s.List(t.Context(), checkpoint.Filter{After: "nobody"})
	wantErr(t, err, checkpoint.ErrNotFound, "List after a run that is not there")
}

// A filter selects by status, graph, labels and time of creation, all of them at once.
func listFilters(t *trial, s checkpoint.Store) {
	var all []checkpoint.Info
	for i := range 24 {
		run := fmt.Sprintf("run-%d", i)
		labels := map[string]string{"parity": fmt.Sprint(i % 2), "third": fmt.Sprint(i % 3)}
		l := owned(t, s, run)
		head := add(t, s, l, checkpoint.Head{}, opened(fmt.Sprintf("graph-%d", i%2), labels))
		if i%4 > 0 {
			kinds := []checkpoint.Kind{checkpoint.Entered, checkpoint.Waiting, checkpoint.Completed}
			add(t, s, l, head, checkpoint.Entry{Kind: kinds[i%4-1]})
		}
		if i%5 > 0 {
			release(t, s, l)
		}
		all = append(all, stat(t, s, run))
	}
	slices.Reverse(all)
	for _, f := range []checkpoint.Filter{
		{Status: []checkpoint.Status{checkpoint.StatusPending}},
		{Status: []checkpoint.Status{checkpoint.StatusCompleted, checkpoint.StatusInterrupted}},
		{Status: []checkpoint.Status{checkpoint.StatusFailed}},
		{Status: []checkpoint.Status{}},
		{Graph: "graph-1"},
		{Graph: "graph"},
		{Labels: map[string]string{"parity": "0"}},
		{Labels: map[string]string{"parity": "0", "third": "2"}},
		{Labels: map[string]string{"other": ""}},
		{Since: all[12].Created},
		{Before: all[12].Created},
		{Since: all[12].Created.Add(time.Millisecond - 1)}, // which is the same, as that which is finer does not count
		{Before: all[12].Created.Add(time.Millisecond - 1)},
		{Since: all[20].Created, Before: all[3].Created, Labels: map[string]string{"third": "0"}},
		{Graph: "graph-0", Status: []checkpoint.Status{checkpoint.StatusInterrupted}},
	} {
		var want []string
		for _, info := range all {
			if f.Matches(info) {
				want = append(want, info.Run)
			}
		}
		for _, f.Limit = range []int{0, 3} {
			f.After = ""
			if got := ids(t, s, f); !slices.Equal(got, want) {
				t.Errorf("List(%+v) = %v, want %v", f, got, want)
			}
		}
		for _, at := range []int{0, 9, 10} { // which f may select or not
			f.Limit, f.After, want = 0, all[at].Run, nil
			for _, info := range all[at+1:] {
				if f.Matches(info) {
					want = append(want, info.Run)
				}
			}
			if got := ids(t, s, f); !slices.Equal(got, want) {
				t.Errorf("List(%+v) = %v, want %v", f, got, want)
			}
		}
	}
	for when, at := range map[string]time.Time{"far ahead": time.Unix(1<<60, 0), "long ago": time.Unix(-1<<60, 0)} {
		since, before := ids(t, s, checkpoint.Filter{Since: at}), ids(t, s, checkpoint.Filter{Before: at})
		if ahead := when == "far ahead"; ahead && len(since) > 0 || !ahead && len(before) > 0 || len(since)+len(before) != len(all) {
			t.Errorf("List finds %d runs since an instant %s, and %d before it", len(since), when, len(before))
		}
	}
}

// A filter that no run can match by a slip, as one of a status that there is not, is an
// ArgumentError, and so is a negative Limit: an empty page would look like a store without such
// runs.
func listRefusesWhatNoRunIs(t *trial, s checkpoint.Store) {
	add(t, s, owned(t, s, "run"), checkpoint.Head{}, done(1))
	var argument *checkpoint.ArgumentError
	for name, f := range map[string]checkpoint.Filter{
		"a negative limit":       {Limit: -1},
		"an unknown status":      {Status: []checkpoint.Status{"canceled"}},
		"one among others":       {Status: []checkpoint.Status{checkpoint.StatusRunning, "timedout"}},
		"a status that is empty": {Status: []checkpoint.Status{""}},
	} {
		if page, err := s.List(t.Context(), f); !errors.As(err, &argument) || len(page) > 0 {
			t.Errorf("List with %s = %d runs, %v, want an ArgumentError", name, len(page), err)
		}
	}
	if got := ids(t, s, checkpoint.Filter{}); !slices.Equal(got, []string{"run"}) {
		t.Errorf("the runs are %v", got)
	}
}

// A filter asks for the same graph, label and value, byte for byte: case, blanks, marks and the
// signs of patterns count.
func filtersAreExact(t *trial, s checkpoint.Store) {
	texts := []string{
		"a", "A", "a ", " a", "ab", "a%", "a_", "a*", "a?", "%", "_", "*", "a.b", "a[b]", "a\u0308", "\u00e4", "\u00c4", "a\\", "'a'", "\"a\"", "null", "true", "1", "1.0", "{}",
	}
	name := func(i int) string { return fmt.Sprintf("run-%d", i) }
	for i, text := range texts {
		l := owned(t, s, name(i))
		add(t, s, l, checkpoint.Head{}, opened(text, map[string]string{"text": text, text: "value"}))
		release(t, s, l)
	}
	for i, text := range texts {
		for _, f := range []checkpoint.Filter{
			{Graph: text},
			{Labels: map[string]string{"text": text}},
			{Labels: map[string]string{text: "value"}},
		} {
			if got := ids(t, s, f); !slices.Equal(got, []string{name(i)}) {
				t.Errorf("List(%+v) = %v, want %q alone", f, got, name(i))
			}
		}
	}
}

// List tells of each run what Stat tells of it: of one that is held, of a fork, and of one that was
// trimmed.
func listTellsWhatStatTells(t *trial, s checkpoint.Store) {
	l, _ := begun(t, s, "held")
	asStat(t, s)
	release(t, s, l)
	long(t, s, "trimmed")
	fork(t, s, small(1), "fork")
	asStat(t, s)
	l = owned(t, s, "trimmed")
	entry := trimming(9, small(9), checkpoint.Pin{Seq: 4, Base: checkpoint.BaseDigest(small(4))})
	_, err := s.Trim(t.Context(), l, stat(t, s, "trimmed").Head, entry, small(9), small(4))
	if t.unless(err, "trim"); err != nil {
		t.Fatalf("Trim = %v", err)
	}
	release(t, s, l)
	asStat(t, s)
}

// asStat checks that List tells of all runs what Stat tells of them.
func asStat(t *trial, s checkpoint.Store) {
	t.Helper()
	page, err := s.List(t.Context(), checkpoint.Filter{})
	if err != nil {
		t.Fatalf("List = %v", err)
	}
	for _, got := range page {
		want := stat(t, s, got.Run)
		if !got.Created.Equal(want.Created) || !got.Updated.Equal(want.Updated) {
			t.Errorf("List tells of %q that it was created at %v and updated at %v, Stat that at %v and %v",
				got.Run, got.Created, got.Updated, want.Created, want.Updated)
		}
		got.Created, got.Updated = want.Created, want.Updated
		for _, i := range []*checkpoint.Info{&got, &want} { // none is as good as nil
			if len(i.Labels) == 0 {
				i.Labels = nil
			}
			if len(i.Pins) == 0 {
				i.Pins = nil
			}
		}
		if is, wants := string(encode(got)), string(encode(want)); is != wants {
			t.Errorf("List tells of %q:\n%s\nStat tells:\n%s", got.Run, is, wants)
		}
	}
}

// A run stands in listings where it came to be, with the first append that was made: neither where
// one was tried that was refused, nor where all that it had was trimmed.
func placeInAListIsThatOfTheFirstAppend(t *trial, s checkpoint.Store) {
	late, large := owned(t, s, "late"), owned(t, s, "large")
	_, err := s.Append(t.Context(), late, checkpoint.Head{}, []checkpoint.Entry{done(1), {Kind: 250}})
	if err == nil {
		t.Fatal("an entry of an unknown kind was kept")
	}
	big := done(1)
	big.Delta = t.quoted(mebibyte)
	if _, err = s.Append(t.Context(), large, checkpoint.Head{Seq: 1}, []checkpoint.Entry{big}); err == nil {
		t.Fatal("an append behind what is not there was made")
	}
	head := rested(t, s, "early")
	add(t, s, late, checkpoint.Head{}, opened("graph", nil), done(1))
	add(t, s, large, checkpoint.Head{}, big)
	rested(t, s, "last")
	want := []string{"last", "large", "late", "early"}
	if got := ids(t, s, checkpoint.Filter{}); !slices.Equal(got, want) {
		t.Errorf("List = %v, want %v", got, want)
	}
	trim(t, s, "early", head.Seq+1, small(1))
	if got := ids(t, s, checkpoint.Filter{}); !slices.Equal(got, want) {
		t.Errorf("with all of the earliest trimmed List = %v, want %v", got, want)
	}
	if got := ids(t, s, checkpoint.Filter{After: "late"}); !slices.Equal(got, want[3:]) {
		t.Errorf("List behind %q = %v, want %v", "late", got, want[3:])
	}
}
