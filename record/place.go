package record

import (
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A place is where in the log, and in the graph, something was said.
type place struct {
	seq  uint64
	turn int
	path string // of the visit, as the log had it there
	at   time.Time
	// is the visit's path where the log has been read to. One that was forgotten has that of what it was in, with a
	// slash behind: no visit is called that.
	is  string
	was []called // what it was called before, oldest first
}

// A called is what a visit was called up to a migration.
type called struct {
	upTo uint64 // the migration's entry
	path string
}

// migrated has the visit called what a migration says.
func (p *place) migrated(seq uint64, m *checkpoint.Migration) {
	path, there := m.Renamed(p.is)
	for holder := strings.TrimSuffix(p.is, "/"); !there; {
		holder = holder[:max(strings.LastIndexByte(holder, '/'), 0)]
		path, there = m.Renamed(holder)
		path += "/"
	}
	if path != p.is {
		p.was, p.is = append(p.was, called{seq, p.is}), path
	}
}

// back has the visit called what it was at an entry.
func (p *place) back(to uint64) {
	for n := len(p.was) - 1; n >= 0 && p.was[n].upTo > to; n-- {
		p.is, p.was = p.was[n].path, p.was[:n]
	}
}

// forgotten reports whether the visit is no more.
func (p *place) forgotten() bool { return strings.HasSuffix(p.is, "/") }
