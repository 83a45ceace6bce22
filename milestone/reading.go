package milestone

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// A reading is how far a log was read, and what the rules know of it.
type reading struct {
	run     string
	created time.Time // when the run was
	seq     uint64    // of the entry that was read last
	last    mark      // the last entry that the log is known to have; zero if none was read
	given   bool      // the next state is taken as it is: what was before it can't be known
	rules   []ruling
	open    []deed   // they count when their superstep ends
	rewinds []rewind // oldest first
	origin  *reading // of a fork: what it begins with; nil if the run is none
}

// A rewind has a run go on at an entry as it was at another.
type rewind struct{ at, to uint64 }

// A mark is an entry that is known again: a run that was deleted and imported has another one in
// its place if it has gone on another way.
type mark struct {
	seq  uint64
	at   time.Time
	what string // "" if only an event of it was heard
}

func marked(e *checkpoint.Entry) mark {
	return mark{e.Seq, e.At, fmt.Sprint(e.Kind, " ", e.Path, " ", e.ID)}
}

type ruling struct {
	name string
	judge
}

// A deed is what a visit did that a rule speaks of.
type deed struct {
	path   string
	rule   string
	detail string
}

// hear reads the next entry, and returns the names that follow from it.
func (r *reading) hear(e *dispatcher.Event) (found []Milestone) {
	r.seq, r.last = e.Seq, mark{e.Seq, e.At, ""}
	switch e.Kind {
	case dispatcher.VisitsVoided, dispatcher.StateEdited:
		var paths []string
		if json.Unmarshal(e.Value, &paths) == nil {
			r.open = slices.DeleteFunc(r.open, func(d deed) bool {
				return slices.ContainsFunc(paths, func(path string) bool { return under(d.path, path) })
			})
		}
	case dispatcher.GraphMigrated:
		var m checkpoint.Migration
		if json.Unmarshal(e.Value, &m) == nil {
			r.migrated(&m)
		}
	}
	for _, rule := range r.rules {
		if detail, hit := rule.visit(e); hit {
			r.open = append(r.open, deed{path: e.Path, rule: rule.name, detail: detail})
		}
	}
	if e.Kind != dispatcher.SuperstepEnded && e.Kind != dispatcher.RunStarted {
		return nil
	}
	return r.checkpoint(e)
}

// checkpoint says which names a checkpoint has. A frame that failed, of which the rest is kept, is
// none.
func (r *reading) checkpoint(e *dispatcher.Event) (found []Milestone) {
	if e.Outcome != "" {
		return nil
	}
	if r.given && e.State != nil {
		r.begin(e)
		r.given = false
	}
	for _, rule := range r.rules {
		if detail, hit := rule.checkpoint(e); hit {
			found = append(found, r.named(rule.name, detail, e.Seq))
		}
	}
	r.open = slices.DeleteFunc(r.open, func(d deed) bool {
		if !under(d.path, e.Path) {
			return false
		}
		m := r.named(d.rule, d.detail, e.Seq)
		if !slices.Contains(found, m) {
			found = append(found, m)
		}
		return true
	})
	return found
}

// begin takes the state that an event tells as what was before.
func (r *reading) begin(e *dispatcher.Event) {
	for _, rule := range r.rules {
		if c, ok := rule.judge.(*change); ok {
			c.begin(e)
		}
	}
}

// line tells which entries have led to one: not those that a rewind before it has left behind, nor
// the rewinds.
func (r *reading) line(to uint64) func(seq uint64) bool {
	type span struct{ behind, to uint64 }
	var spans []span
	for _, w := range slices.Backward(r.rewinds) {
		if w.at <= to {
			spans, to = append(spans, span{w.at, to}), w.to
		}
	}
	spans = append(spans, span{0, to})
	return func(seq uint64) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return s.behind < seq && seq <= s.to })
	}
}

// back goes on with what a reading up to the checkpoint knows. What has failed behind that can
// recover.
func (r *reading) back(was *reading) {
	for i, rule := range was.rules {
		if c, ok := rule.judge.(*recovery); ok {
			c.beside(r.rules[i].judge.(*recovery))
		}
	}
	r.given, r.rules, r.open = was.given, was.rules, was.open
}

// migrated has what is to count go with its visits, which end under other names. What a node did
// that is forgotten does not count.
func (r *reading) migrated(m *checkpoint.Migration) {
	r.open = slices.DeleteFunc(r.open, func(d deed) bool { _, there := m.Renamed(d.path); return !there })
	for i := range r.open {
		r.open[i].path, _ = m.Renamed(r.open[i].path)
	}
	for _, rule := range r.rules {
		if c, ok := rule.judge.(*recovery); ok {
			c.migrated(m)
		}
	}
}

// inherit takes what a reading of the origin, by the same rules, ends with as what was before the
// fork. It shares nothing with it.
func (r *reading) inherit(o *reading) {
	r.given = o.given
	for i, rule := range r.rules {
		if c, ok := rule.judge.(*change); ok {
			c.inherit(o.rules[i].judge.(*change))
		}
	}
}

// under reports whether a visit is one of a path, or of what is inside it.
func under(visit, path string) bool {
	return path == "" || visit == path || strings.HasPrefix(visit, path+"/")
}

// named is the milestone of an entry. Its tag can be one whatever the detail is.
func (r *reading) named(rule, detail string, seq uint64) Milestone {
	clean := strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || c == '@' || c == unicode.ReplacementChar {
			return '_'
		}
		return c
	}, detail)
	for len(clean) > 40 {
		clean = clean[:strings.LastIndexFunc(clean, func(rune) bool { return true })]
	}
	tag := strings.Join(strings.Fields(rule+" "+clean), " ")
	return Milestone{r.run, seq, fmt.Sprintf("%s #%d", tag, seq), rule}
}
