package record

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
)

// GetByHash returns the version with a content hash, of whichever record it is. If the version or
// one before it is broken and it can still be read, Version.Unverified says so; if it is known to
// have been there and can't be read, the error is a [*BrokenError]. GetByHash may have to read all
// records of the store. If no readable record has the version, and some record can't be read, that
// is the error.
func (l *Ledger) GetByHash(ctx context.Context, hash string) (*Version, error) {
	if err := l.called(ctx, "GetByHash"); err != nil {
		return nil, err
	}
	w := l.walk()
	v, err := w.find(ctx, hash)
	if v != nil || err != nil && !w.scanned {
		return v, err
	}
	for _, id := range slices.Sorted(maps.Keys(w.chains)) {
		c := w.chains[id]
		for i := 1; i < len(c.all); i++ {
			if c.all[i-1].Record == nil && c.all[i].Record != nil && c.all[i].Record.ParentCRHash == hash {
				return nil, &BrokenError{c.id, i, "the version of this hash can't be read"}
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: no version of the hash %.64q", ErrNotFound, hash)
}

// Ancestors returns the versions that the one of a content hash has gone on from, nearest first:
// its parent, the other parent of a merge, and so on, of whichever records they are. It ends where
// a parent is not in the store. If it may be in a record that can't be read the error is that of
// it.
func (l *Ledger) Ancestors(ctx context.Context, hash string) ([]Version, error) {
	if err := l.called(ctx, "Ancestors"); err != nil {
		return nil, err
	}
	w := l.walk()
	v, err := w.find(ctx, hash)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, fmt.Errorf("%w: no version of the hash %.64q", ErrNotFound, hash)
	}
	all, err := w.ancestors(ctx, v)
	if err != nil {
		return nil, err
	}
	var versions []Version
	for _, a := range all[1:] {
		versions = append(versions, *a.Version)
	}
	return versions, nil
}

// Merge adds a version to the record a: its last version merged with that of b, over their nearest
// common ancestor, as the function [Merge] says, and with both as parents. With Manual, conflicts
// are a [*MergeError] and nothing is written.
//
// If b's last version is a's, or an ancestor of it, there is nothing to merge: no version is added
// and a's last one is returned. The exception is a record of a run that has taken over from b and
// has not heard yet what b tells.
//
// What wins, beyond the rules of the function Merge:
//
//   - Two records of one run may tell of different positions of its log. What the run told up to
//     the earlier position they have in common; which resume points it has left behind since, the
//     later one knows. Exchanging a and b together with the strategy gives the same content.
//   - A record of another run than the common ancestor's, because that run took the work over or is
//     a fork, never knew what the ancestor tells. What it lacks it has not removed, unless a merge
//     had brought it there before. The merged record is of a's run.
//   - Questions and resume points that are settled in the common ancestor stay so, whoever merges
//     and whatever the record of the same run has made of them since, unless it has heard more of
//     the run's log, which told of them.
//
// An approval, an answer or an override, which a's gates guard, comes in from b only if the author
// could have given it, or b names somebody who could; else the error is ErrAuthority.
func (l *Ledger) Merge(ctx context.Context, a, b string, s Strategy, by Author) (*Version, error) {
	if err := l.needs(ctx, "Merge", by); err != nil {
		return nil, err
	}
	if _, _, err := Merge(nil, &Record{}, &Record{}, s); err != nil {
		return nil, err
	}
	return l.write(ctx, a, by, func(c *chain) (*Record, error) {
		w := l.walk()
		w.chains[a] = c
		other, err := l.whole(ctx, "Merge", b)
		if err != nil {
			return nil, err
		}
		w.chains[b] = other
		mine, theirs := &c.all[len(c.all)-1], &other.all[len(other.all)-1]
		base, err := w.common(ctx, mine, theirs)
		if err != nil {
			return nil, err
		}
		if base != nil && base.Record.ContentHash == theirs.Record.ContentHash {
			if heard, err := w.knows(ctx, mine, base); heard || err != nil {
				return nil, err
			}
		}
		from, left, right, err := w.sides(ctx, base, mine, theirs)
		if err != nil {
			return nil, err
		}
		merged, conflicts, err := Merge(from, left, right, s)
		if err != nil {
			return nil, err
		}
		if merged == nil {
			return nil, &MergeError{conflicts}
		}
		if err := carried(recordOf(base), mine.Record, merged, by); err != nil {
			return nil, err
		}
		merged.MergedCRHash = theirs.Record.ContentHash
		return merged, nil
	})
}

// A walker follows the parents of versions from record to record.
type walker struct {
	l       *Ledger
	chains  map[string]*chain
	scanned bool  // chains has all records of the store that can be read
	unread  error // about the others
}

func (l *Ledger) walk() *walker { return &walker{l: l, chains: map[string]*chain{}} }

// find is the version of a content hash, nil if there is none. It is an error if the version may be
// in a record that can't be read.
func (w *walker) find(ctx context.Context, hash string) (*Version, error) {
	for {
		if v, _ := w.version(hash); v != nil {
			return v, nil
		}
		if w.scanned {
			return nil, w.unread
		}
		if err := w.scan(ctx); err != nil {
			return nil, err
		}
	}
}

// version is the version of a content hash, nil if there is none, and the chain that has it. One
// that was copied into other records is unverified there.
func (w *walker) version(hash string) (*Version, *chain) {
	var v *Version
	var in *chain
	for _, id := range slices.Sorted(maps.Keys(w.chains)) {
		if x := w.chains[id].version(hash); x != nil && (v == nil || v.Unverified != "" && x.Unverified == "") {
			v, in = x, w.chains[id]
		}
	}
	return v, in
}

// scan reads all records of the store, and notes in unread which of them can't be.
func (w *walker) scan(ctx context.Context) error {
	var unread []error
	for info, err := range checkpoint.Runs(ctx, w.l.store, checkpoint.Filter{Graph: logGraph}) {
		id, ours := info.Labels[logGraph]
		if err == nil && (w.chains[id] != nil || !ours || info.Run != logPrefix+id) {
			continue
		}
		var c *chain
		if err == nil {
			c, err = w.l.load(ctx, id)
		}
		switch {
		case err == nil:
			w.chains[id] = c
		case info.Run != "" && !strings.HasPrefix(info.Run, logPrefix): // it is no record
		case cantBeRead(err):
			unread = append(unread, err)
		case info.Run == "" || !errors.Is(err, ErrNotFound): // else it was deleted meanwhile
			return err
		}
	}
	w.scanned, w.unread = true, errors.Join(unread...)
	return nil
}

// cantBeRead reports whether err is that of a record that is damaged, or that this program or these
// keys can't read.
func cantBeRead(err error) bool {
	return errors.Is(err, checkpoint.ErrCorrupt) || errors.Is(err, checkpoint.ErrVersion) ||
		errors.Is(err, checkpoint.ErrKey) || errors.Is(err, checkpoint.ErrPlaintext)
}

// An ancestor is a version at a distance.
type ancestor struct {
	*Version
	distance int
}

// ancestors are a version and all that it has gone on from, nearest first.
func (w *walker) ancestors(ctx context.Context, v *Version) ([]ancestor, error) {
	all := []ancestor{{v, 0}}
	seen := map[string]bool{v.Record.ContentHash: true}
	for i := 0; i < len(all); i++ {
		for _, parent := range []string{all[i].Record.ParentCRHash, all[i].Record.MergedCRHash} {
			if parent == "" || seen[parent] {
				continue
			}
			seen[parent] = true
			p, err := w.find(ctx, parent)
			if err != nil {
				return nil, err
			}
			if p != nil {
				all = append(all, ancestor{p, all[i].distance + 1})
			}
		}
	}
	return all, nil
}

// common is the nearest version that two have in common, nil if there is none: one of the two, if
// it is an ancestor of the other, and none that another one has heard. Of several that are as near,
// the one of the smallest hash counts, whichever of the two is asked about first.
func (w *walker) common(ctx context.Context, a, b *Version) (*Version, error) {
	of, err := w.ancestors(ctx, a)
	if err != nil {
		return nil, err
	}
	distance := map[string]int{}
	for _, x := range of {
		distance[x.Record.ContentHash] = x.distance
	}
	others, err := w.ancestors(ctx, b)
	if err != nil {
		return nil, err
	}
	inner := map[string]bool{} // what another one has heard, which they have in common
	for _, y := range others {
		if _, both := distance[y.Record.ContentHash]; both {
			parents, err := w.parents(ctx, y.Version)
			if err != nil {
				return nil, err
			}
			for _, p := range parents {
				inner[p.Record.ContentHash] = true
			}
		}
	}
	var nearest *Version
	best := 0
	for _, y := range others {
		x, both := distance[y.Record.ContentHash]
		if !both || inner[y.Record.ContentHash] {
			continue
		}
		d := x + y.distance
		if x == 0 || y.distance == 0 { // one of the two is an ancestor of the other
			d = -1
		}
		if nearest == nil || d < best || d == best && y.Record.ContentHash < nearest.Record.ContentHash {
			nearest, best = y.Version, d
		}
	}
	if nearest != nil && nearest.Unverified != "" {
		_, in := w.version(nearest.Record.ContentHash)
		return nil, in.broken
	}
	return nearest, nil
}
