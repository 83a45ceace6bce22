package checkpoint

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawlgo/pawl/internal/byhand"
)

// Append makes i what is known of the run once entries, appended at that time, end at head. It is
// for [Store.Append], and returns an *[ArgumentError] for what that refuses: an append neither
// begins a fork nor trims, and a log is opened once, by its first entry; and for what is an error
// of [Info.Appended]. After an error i is what it was. Entries are not kept.
func (i *Info) Append(at time.Time, head Head, entries []Entry) error {
	if !describe(entries) {
		_, err := i.append(at, head, entries) // in place, since nothing in it fails
		return err
	}
	after, err := i.Appended(at, head, entries)
	if err != nil {
		return err
	}
	if err := appendable(i, &after, entries); err != nil {
		return err
	}
	*i = after
	return nil
}

// describe reports whether the data of one of entries says what is known of the run.
func describe(entries []Entry) bool {
	for i := range entries {
		switch entries[i].Kind {
		case Opened, Migrated, Trimmed, Rewound:
			return true
		}
	}
	return false
}

// appendable returns an error if entries, by which a run came from before to after, are not for
// [Store.Append].
func appendable(before, after *Info, entries []Entry) error {
	for i := range entries {
		switch seq := before.Head.Seq + uint64(i) + 1; {
		case entries[i].Kind == Trimmed:
			return &ArgumentError{"Append", "entry of kind trimmed", "would drop entries: use Store.Trim"}
		case entries[i].Kind == Opened && seq > 1:
			return &ArgumentError{"Append", "entry of kind opened", fmt.Sprintf(
				"would be entry %d: a log is opened by its first entry, and a run goes on with another graph by one of kind %s",
				seq, Migrated)}
		}
	}
	if before.Base != after.Base || before.Origin != after.Origin {
		return &ArgumentError{"Append", "opened entry", "has an origin: a fork is made by Store.Fork"}
	}
	return nil
}

// Appended returns what is known of the run once entries, appended at that time, end at
// head. It is an *[ArgumentError] if an Opened entry's Data is no [Opening], a Migrated one's no
// [Migration], or a Trimmed one's no [Trimming]. Entries are not kept.
func (i Info) Appended(at time.Time, head Head, entries []Entry) (Info, error) {
	if _, err := i.append(at, head, entries); err != nil {
		return Info{}, &ArgumentError{aCall, "list of entries", "holds one that nobody could read: " + strings.TrimPrefix(err.Error(), "checkpoint: ")}
	}
	return i, nil
}

// append is Appended in place, and returns the last trimming among the entries, nil if there is
// none. After an error i is good for nothing.
func (i *Info) append(at time.Time, head Head, entries []Entry) (trimming *Trimming, err error) {
	first := i.Head.Seq == 0
	status := i.Status
	if first {
		at = toMillisecond(at)
		i.Created, i.Turn, i.First, status = at, 1, 1, StatusPending
	}
	for k := range entries {
		e := &entries[k]
		status = status.After(e.Kind)
		if e.Kind == TurnBegun {
			i.Turn++
		}
		if len(e.Data) == 0 {
			continue
		}
		switch e.Kind {
		case Opened:
			o, err := parseOpening(e.Data)
			if err != nil {
				return nil, fmt.Errorf("checkpoint: the data of %s is no opening: %w", e.Kind, err)
			}
			i.Graph, i.Digest, i.Labels, i.Correlation = o.Graph, o.Digest, o.Labels, o.Correlation
			if i.Origin = o.Origin; o.Origin != nil {
				i.Base, i.Turn = o.Origin.Base, max(o.Origin.Turn, 1)
			}
		case Migrated:
			var m Migration
			if err := json.Unmarshal(e.Data, &m); err != nil {
				return nil, fmt.Errorf("checkpoint: the data of %s is no migration: %w", e.Kind, err)
			}
			i.Graph, i.Digest = m.Graph, m.To
		case Trimmed:
			var t Trimming
			if err := json.Unmarshal(e.Data, &t); err != nil {
				return nil, fmt.Errorf("checkpoint: the data of %s is no trimming: %w", e.Kind, err)
			}
			if what := t.fault(); what != "" {
				return nil, fmt.Errorf("checkpoint: the data of %s is no trimming: %s", e.Kind, what)
			}
			*i, trimming = i.trimmed(&t), &t
			status = i.Status
		case Rewound:
			var r Rewinding
			if err := json.Unmarshal(e.Data, &r); err != nil {
				return nil, fmt.Errorf("checkpoint: the data of %s is no rewinding: %w", e.Kind, err)
			}
			i.Graph, i.Digest, i.Turn = r.Graph, r.Digest, r.Turn
		}
	}
	if first || status != i.Status {
		i.Status, i.Updated = status, toMillisecond(at)
	}
	i.Head = head
	return trimming, nil
}

// parseOpening is json.Unmarshal. What most openings say it reads by hand: a run begins in two
// thirds of the time.
func parseOpening(data []byte) (o Opening, err error) {
	var ok bool
	if o.Graph, o.Digest, o.Labels, o.Correlation, ok = byhand.Opening(data); ok {
		return o, nil
	}
	o = Opening{}
	return o, json.Unmarshal(data, &o)
}

// Matches reports whether f selects the run. It does not look at After and Limit.
func (f Filter) Matches(i Info) bool {
	if len(f.Status) > 0 && !slices.Contains(f.Status, i.Status) {
		return false
	}
	if f.Graph != "" && f.Graph != i.Graph {
		return false
	}
	for key, value := range f.Labels {
		if v, ok := i.Labels[key]; !ok || v != value {
			return false
		}
	}
	if !f.Since.IsZero() && i.Created.Before(toMillisecond(f.Since)) {
		return false
	}
	return f.Before.IsZero() || i.Created.Before(toMillisecond(f.Before))
}

// The first and the last instant that logs can keep.
var earliest, latest = time.UnixMilli(math.MinInt64).UTC(), time.UnixMilli(math.MaxInt64).UTC()

// toMillisecond is an instant as logs keep it: the nearest one that they can.
func toMillisecond(at time.Time) time.Time {
	switch {
	case at.Before(earliest):
		return earliest
	case at.After(latest):
		return latest
	}
	return time.UnixMilli(at.UnixMilli()).UTC()
}

// statuses are all that a run may have.
var statuses = []Status{
	StatusPending, StatusRunning, StatusCompleted, StatusInterrupted, StatusCancelled, StatusTimedOut, StatusFailed,
}

// Check returns an [*ArgumentError] for a negative Limit and for a Status that no run can have, and
// ErrRunID for an After that can name none.
func (f Filter) Check() error {
	const call = "List"
	if f.Limit < 0 {
		return &ArgumentError{call, "Filter.Limit", fmt.Sprintf("is %d: zero means 100", f.Limit)}
	}
	for _, s := range f.Status {
		if !slices.Contains(statuses, s) {
			return &ArgumentError{call, "Filter.Status", fmt.Sprintf("has %.40q, which no run is: there are %q", string(s), statuses)}
		}
	}
	if f.After != "" {
		return CheckRunID(f.After)
	}
	return nil
}

// Page returns the number of runs in a page.
func (f Filter) Page() int {
	if f.Limit <= 0 {
		return 100
	}
	return f.Limit
}

// Check returns an error unless p has a good id (see [CheckPostID]), a Kind that is UTF-8, and Data
// that is JSON, of UTF-8, or empty.
func (p Post) Check() error {
	if err := CheckPostID(p.ID); err != nil {
		return err
	}
	if !utf8.ValidString(p.Kind) { // an export would tell another one
		return fmt.Errorf("checkpoint: the kind %.64q of post %q is not UTF-8", p.Kind, p.ID)
	}
	if len(p.Data) > 0 && !isJSON(p.Data) {
		return fmt.Errorf("checkpoint: the data of post %q is not JSON", p.ID)
	}
	return nil
}

// Says reports whether p and q have the same content.
func (p Post) Says(q Post) bool {
	return p.Kind == q.Kind && string(p.Data) == string(q.Data)
}
