package dispatcher

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// A StaleError says that a run can't go on because something that one of its visits has used is
// stale. Nothing has changed.
type StaleError struct {
	Run        string
	Path       string // of the visit; behind its name " (forgotten)" says that a migration has forgotten it
	Dependency dag.Dependency
	Age        time.Duration // of what was captured
	// Rewind is the address of a checkpoint before the visit, from which the run can go on by
	// Rewind or Fork. It is "" if Options.Revalidate has refused the dependency, or if the run has
	// no such checkpoint because it is a fork or was trimmed.
	Rewind string
	// Ancestor is such a checkpoint of a run that this one comes from: Fork that run there. Like
	// any fork the new run takes what effects returned, which may be stale, unless
	// ForkOptions.Effects is Live. Ancestor is zero if Rewind is set, or if no such checkpoint is
	// left: then only a new run can go on.
	Ancestor Ancestor
	Err      error // of Options.Revalidate; else nil
}

func (e *StaleError) Error() string {
	text := fmt.Sprintf("dispatcher: run %q: visit %s depends on %q, which was captured %v ago and can be trusted for %v",
		e.Run, e.Path, e.Dependency.Name, e.Age.Round(time.Millisecond), e.Dependency.StaleAfter)
	if e.Err != nil {
		return text + ": " + plain(e.Err)
	}
	text += ", and what it led to is merged: "
	switch {
	case e.Rewind != "":
		return text + fmt.Sprintf("rewind to checkpoint %q", e.Rewind)
	case e.Ancestor != Ancestor{}:
		return text + fmt.Sprintf("fork run %q at checkpoint %q", e.Ancestor.Run, e.Ancestor.Address())
	}
	return text + "no checkpoint before that is left, begin a new run"
}

func (e *StaleError) Unwrap() error { return e.Err }

// freshen looks at how old the run is that is about to go on, and what it depends on. It
// returns visits to be voided, and warns of what is ignored.
func (r *run) freshen() (voids []string, err error) {
	now := r.c.opts.Now()
	if err := r.warnOfAge(now); err != nil {
		return nil, err
	}
	for _, d := range r.m.dependents() {
		age := now.Sub(d.Captured)
		if age <= d.StaleAfter {
			continue
		}
		stale := &StaleError{Run: r.id, Path: d.path, Age: age, Dependency: dag.Dependency{
			Name: d.Name, Captured: d.Captured, StaleAfter: d.StaleAfter, OnStale: dag.OnStale(d.OnStale),
		}}
		switch dag.OnStale(d.OnStale) {
		case dag.Revalidate:
			stale.Err = r.asking("revalidate", func() error { return r.c.revalidate(r.ctx, stale.Dependency) })
			if stale.Err != nil {
				return nil, stale
			}
		case dag.Invalidate:
			if !r.m.voidable(d.path) {
				if err := r.c.advise(r.stored, stale, staleness{now}, r.m); err != nil {
					return nil, err
				}
				return nil, stale
			}
			if !slices.Contains(voids, d.path) {
				voids = append(voids, d.path)
			}
		default:
			r.warnings = append(r.warnings, fmt.Sprintf("visit %s depends on %q, which was captured %v ago and can be trusted for %v",
				d.path, d.Name, age.Round(time.Millisecond), d.StaleAfter))
		}
	}
	return voids, nil
}

// warnOfAge warns of a run that has rested for long, or was left behind long ago: of that the
// last entry tells.
func (r *run) warnOfAge(now time.Time) error {
	limit, since := r.c.opts.StaleAfter, r.m.since
	if since.IsZero() || now.Sub(since) <= limit {
		return nil
	}
	if !r.m.status.Resting() {
		at, err := r.lastSaid()
		if err != nil {
			return err
		}
		since = at
	}
	if age := now.Sub(since); age > limit {
		r.warnings = append(r.warnings, fmt.Sprintf("the run has rested for %v, longer than %v: what it knows may be out of date",
			age.Round(time.Millisecond), limit))
	}
	return nil
}

// lastSaid is when the last entry was appended.
func (r *run) lastSaid() (at time.Time, err error) {
	head := r.journal.head.Seq
	for e, err := range r.c.store.Read(r.stored, r.id, head, head) {
		if err != nil {
			return at, err
		}
		at = e.At
	}
	return at, nil
}

// revalidate asks the program.
func (c *core) revalidate(ctx context.Context, d dag.Dependency) (err error) {
	if c.opts.Revalidate == nil {
		return &OptionError{"Revalidate", "is nil, and a dependency is to be revalidated"}
	}
	if u := protect(func() { err = sound(c.opts.Revalidate(ctx, d)) }); u != nil {
		return &FaultError{Kind: "revalidate", Message: u.Error(), Stack: u.stack, Err: u.err}
	}
	return err
}

// A dependency is one that a visit has told, on top of those before it.
type dependency struct {
	checkpoint.Dependency
	size   int // of this one and those before it, in bytes of the log
	before *dependency
}

// Depends implements [dag.Depender].
func (v *visit) Depends(d dag.Dependency) error {
	if v.over() {
		return fmt.Errorf("dispatcher: Depends(%q): %w", d.Name, dag.ErrVisitOver)
	}
	if d.Captured.IsZero() {
		d.Captured = v.host.c.opts.Now()
	}
	// In its own zone JSON may not be able to say the instant.
	last := &dependency{Dependency: checkpoint.Dependency{
		Name: d.Name, Captured: d.Captured.UTC(), StaleAfter: d.StaleAfter, OnStale: string(d.OnStale),
	}}
	did, limit, own := v.does(), v.host.c.opts.Limits.VisitBytes, len(encode(last.Dependency))
	for {
		last.before, last.size = did.depends.Load(), own
		if last.before != nil {
			last.size += last.before.size
		}
		if last.size > limit {
			return &LimitError{"visit bytes", limit, "what " + v.path() + " depends on"}
		}
		if did.depends.CompareAndSwap(last.before, last) {
			return nil
		}
	}
}

// depended completes the entry of a visit that is done with what it depends on.
func (v *visit) depended(done *fact) {
	last := v.has().depends.Load()
	if last == nil {
		return
	}
	var s checkpoint.Substitution
	if v.round != nil {
		s = v.round.done
	}
	for d := last; d != nil; d = d.before {
		if !slices.ContainsFunc(s.Depends, func(x checkpoint.Dependency) bool { return x.Name == d.Name }) {
			s.Depends = append(s.Depends, d.Dependency)
		}
	}
	slices.SortFunc(s.Depends, func(a, b checkpoint.Dependency) int { return strings.Compare(a.Name, b.Name) })
	done.more().Data = encode(s)
}
