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
	// is the visit's path where the log has been read to. One that was forgotten has that of what
	// it was in, with a slash behind: no visit is called that.
	is  string
	was []called // what it was called before, oldest first
	// flips are the entries that took back what was said, and those that had it count again, in
	// turn: a run may be rewound to any entry, also to one that another rewind has left behind.
	flips []uint64
}

// A called is what a visit was called up to a migration, or a rewind.
type called struct {
	upTo uint64 // its entry
	path string
}

// migrated has the visit called what a migration says.
func (p *place) migrated(seq uint64, m *checkpoint.Migration) {
	path, there := m.Renamed(p.is)
	for holder := strings.TrimSuffix(p.is, "/"); !there; {
		holder = around(holder)
		path, there = m.Renamed(holder)
		path += "/"
	}
	if path != p.is {
		p.was, p.is = append(p.was, called{seq, p.is}), path
	}
}

// around is the path of what a visit or a frame stands in, "" if that is the run's own frame.
func around(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }

// gone reports whether what was said does not count.
func (p *place) gone() bool { return len(p.flips)%2 == 1 }

// drop takes back, at an entry, what was said.
func (p *place) drop(at uint64) {
	if !p.gone() {
		p.flips = append(p.flips, at)
	}
}

// back has, from an entry on, everything as it was at another one: whether what was said counts,
// and what the visit is called.
func (p *place) back(at, to uint64) {
	n := len(p.flips)
	for n > 0 && p.flips[n-1] > to {
		n--
	}
	if counts := p.seq <= to && n%2 == 0; counts == p.gone() {
		p.flips = append(p.flips, at)
	}
	path := p.is
	for n := len(p.was) - 1; n >= 0 && p.was[n].upTo > to; n-- {
		path = p.was[n].path
	}
	if path != p.is {
		p.was, p.is = append(p.was, called{at, p.is}), path
	}
}

// forgotten reports whether the visit is no more.
func (p *place) forgotten() bool { return strings.HasSuffix(p.is, "/") }
