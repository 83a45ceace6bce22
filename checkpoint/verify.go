package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// A Finding is something that is wrong with a run as it is stored.
type Finding struct {
	Run    string // "" if it is about none alone
	Part   Part
	Seq    uint64 // of the first entry that it is about; 0 if it is not about the log
	Reason string
}

// String tells the run, the part and the reason. A loop that ends with an error yields with it the
// zero Finding, or, if a run can't be read, one that names the run alone; String says so of both.
func (f Finding) String() string {
	if f == (Finding{}) {
		return "no finding"
	}
	if f == (Finding{Run: f.Run}) {
		return fmt.Sprintf("run %q can't be read: the error beside this finding says why", f.Run)
	}
	if f.Run == "" {
		return fmt.Sprintf("%s: %s", f.Part, f.Reason)
	}
	if f.Seq == 0 {
		return fmt.Sprintf("run %q: %s: %s", f.Run, f.Part, f.Reason)
	}
	return fmt.Sprintf("run %q: %s: entry %d: %s", f.Run, f.Part, f.Seq, f.Reason)
}

// A Part is what of a stored run a [Finding] is about.
type Part string

// The parts of a run.
const (
	PartLog      Part = "log"      // the chain of appends: digests, which it computes, checksums, numbers without gaps
	PartInfo     Part = "info"     // what the store says of the run beside its log
	PartBase     Part = "base"     // a machine that the log refers to
	PartSnapshot Part = "snapshot" // the newest one
	PartGraph    Part = "graph"    // the JSON of a graph that the log, or a base, names
	PartPosts    Part = "posts"    // messages that have not been drained
	PartStore    Part = "store"    // what belongs to no run that there is, or to several
)

// Verify reads all that the store has of a run and yields what is wrong with it: nothing if it is
// whole. It changes nothing and takes no lease. The log of a run that is live is verified as it
// stands when the loop begins; if it is trimmed or deleted meanwhile the loop ends with ErrTrimmed
// or ErrNotFound. A graph that the store does not have is no damage: a run can be read without it.
//
// How much is found depends on the store:
//
//   - In the log of a store that is no [Archiver], the first damage only, and a wrong digest only
//     if the store hands the context of its Read to [Span.Entries].
//   - With an Archiver that does not go on behind an append it can't read, nothing behind that
//     append.
//
// The error with which a loop may end is not about what is stored: ErrNotFound, ErrClosed, ctx's, a
// version that this program does not know, or [*ArgumentError].
func Verify(ctx context.Context, s Store, run string) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		if err := needs(ctx, "Verify", s, "store", s); err != nil {
			yield(Finding{}, err)
			return
		}
		v := verifier{s: s, run: run, yield: yield, graphs: map[string]bool{}}
		var err error
		if v.info, err = s.Stat(ctx, run); err != nil {
			v.look(PartInfo, err)
			return
		}
		v.moved = func() error {
			return v.info.moved(ctx, s)
		}
		_ = v.log(ctx) && v.bases(ctx) && v.beside(ctx)
	}
}

// moved returns ErrNotFound if the run of which i was known has been deleted since, and another one
// made or not, and ErrTrimmed if it has been trimmed: then what is wrong with what was read of it
// is no damage.
func (i Info) moved(ctx context.Context, s Store) error {
	now, err := s.Stat(ctx, i.Run)
	switch {
	case errors.Is(err, ErrNotFound):
		return err
	case err != nil:
		return nil
	}
	return i.movedTo(now)
}

// movedTo returns ErrNotFound if now is known of another run than i was, which was deleted then,
// and ErrTrimmed if the run was trimmed.
func (i Info) movedTo(now Info) error {
	if !now.Created.Equal(i.Created) || now.Head.Seq < i.Head.Seq || now.Head.Seq == i.Head.Seq && now.Head != i.Head {
		return fmt.Errorf("%w: run %q was deleted, and another one made", ErrNotFound, i.Run)
	}
	if now.First != i.First {
		return &TrimmedError{Run: i.Run, First: now.First}
	}
	return nil
}

// A verifier looks at one run. Its methods return false when the loop is over.
type verifier struct {
	s      Store
	run    string
	yield  func(Finding, error) bool
	graphs map[string]bool
	info   Info
	// moved returns an error if the run has been trimmed since: then what is found is no damage.
	moved func() error
}

func (v *verifier) found(part Part, seq uint64, reason string) bool {
	if v.moved != nil {
		if err := v.moved(); err != nil {
			v.yield(Finding{}, err)
			return false
		}
	}
	return v.yield(Finding{Run: v.run, Part: part, Seq: seq, Reason: reason}, nil)
}

// look reports what err, if there is one, says of a part: damage, behind which others can still be
// looked at, or what ends the loop.
func (v *verifier) look(part Part, err error) bool {
	var known *CorruptError
	switch {
	case err == nil:
		return true
	case errors.As(err, &known):
		return v.found(part, known.Seq, known.Reason)
	case errors.Is(err, ErrCorrupt):
		return v.found(part, 0, err.Error())
	}
	v.yield(Finding{}, err)
	return false
}

func (v *verifier) log(ctx context.Context) bool {
	a, ok := v.s.(Archiver)
	if !ok {
		for e, err := range v.s.Read(WithDigests(ctx), v.run, 0, v.info.Head.Seq) {
			if err != nil {
				return v.look(PartLog, err)
			}
			graphsNamed(&e, v.graphs)
		}
		return true
	}
	g, whole, next := NewLog(v.run), true, v.info.First
	told := uint64(0) // the entry of the last finding
	for data, err := range a.Envelopes(ctx, v.run) {
		if err != nil { // the store may go on behind it
			if !v.look(PartLog, err) {
				return false
			}
			g, whole, told = NewLog(v.run), false, next
			continue
		}
		if err := v.add(g, data); err != nil {
			if errors.Is(err, ErrVersion) {
				return v.look(PartLog, err)
			}
			whole, told = false, next
			if !v.found(PartLog, next, err.Error()) {
				return false
			}
			g = v.behind(data)
		} else if next == v.info.First && next != told && g.start.Seq >= next {
			whole, told = false, next
			if !v.found(PartLog, next, "the beginning of the log is missing") {
				return false
			}
		}
		if at := g.Info().Head; at.Seq > 0 {
			next = at.Seq + 1
		}
		if next > v.info.Head.Seq { // what is appended meanwhile is not looked at
			break
		}
	}
	if next <= v.info.Head.Seq && next != told {
		return v.found(PartLog, next, "the entry is missing")
	}
	return !whole || v.compare(g) // of a log with damage not everything is known
}

// add adds an append to the log, and notes the graphs that its entries name. Data of an entry
// that is no JSON is damage, though nobody needs it to find the next one.
func (v *verifier) add(g *Log, data []byte) error {
	if err := g.Add(data); err != nil {
		return err
	}
	for e := range added(data) {
		graphsNamed(&e, v.graphs)
	}
	return checked(data)
}

// behind returns a log that goes on behind a damaged append: at its end if it can be read, and
// else wherever the next one begins.
func (v *verifier) behind(data []byte) *Log {
	g := NewLog(v.run)
	g.unhashed = true // where it ends it says, if its checksum is right
	_ = g.Add(data)   // if it can't be read nothing is known
	g.unhashed = false
	return g
}

// compare compares what the whole log tells with what the store says.
func (v *verifier) compare(g *Log) bool {
	info := v.info
	if err := g.Whole(); err != nil {
		return v.found(PartLog, info.First, err.Error()) // it is about where the log begins
	}
	header := headerOf(g.Info())
	if what := header.differs(info); what != "" {
		return v.found(PartInfo, 0, "the log has another "+what)
	}
	if got := g.Info(); got.Head != info.Head || got.Turn != info.Turn || !got.Created.Equal(info.Created) || !got.Updated.Equal(info.Updated) ||
		!slices.Equal(got.Bases(), info.Bases()) || !slices.Equal(got.Pins, info.Pins) || !got.Origin.is(info.Origin) {
		return v.found(PartInfo, 0, "the log has another head, turn, time of creation or of the last change of status, base, pin or origin")
	}
	return true
}

func (v *verifier) bases(ctx context.Context) bool {
	for _, digest := range v.info.Bases() {
		base, err := v.s.Base(ctx, v.run, digest)
		switch {
		case errors.Is(err, ErrNotFound):
			if !v.found(PartBase, 0, "base "+digest+" is missing") {
				return false
			}
		case err != nil:
			if !v.look(PartBase, err) {
				return false
			}
		case BaseDigest(base) != digest:
			if !v.found(PartBase, 0, "the base is not the one of digest "+digest) {
				return false
			}
		default:
			if graph := graphOfBase(base); graph != "" {
				v.graphs[graph] = true
			}
		}
	}
	return true
}

// beside looks at what belongs to the run and is no part of its log.
func (v *verifier) beside(ctx context.Context) bool {
	if _, err := v.s.Snapshot(ctx, v.run, 0); !errors.Is(err, ErrNotFound) && !v.look(PartSnapshot, err) {
		return false
	}
	for _, digest := range slices.Sorted(maps.Keys(v.graphs)) {
		graph, err := v.s.Graph(ctx, digest)
		if err == nil {
			err = checkGraph(digest, graph)
		}
		if !errors.Is(err, ErrNotFound) && !v.look(PartGraph, err) {
			return false
		}
	}
	_, err := v.s.Posts(ctx, v.run)
	return v.look(PartPosts, err)
}
