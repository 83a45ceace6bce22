package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"time"
)

// ImportOptions say what [Import] takes. The zero ImportOptions are good.
type ImportOptions struct {
	// LineBytes is how long a line may be, with its newline: an append is one line. Zero means
	// 128 MiB.
	LineBytes int
}

// An ImportError says why a file is no export that can be trusted, and where: nothing was
// imported. errors.Is finds [ErrCorrupt] for a file that was cut off, changed, or is no
// export, [ErrVersion] for one of an unknown format, and [ErrTooLarge] for a line that is
// too long.
type ImportError struct {
	Line   int // counted from 1
	Reason string
	Err    error
}

// Error says what to do.
func (e *ImportError) Error() string {
	todo := "export the run again"
	switch {
	case errors.Is(e.Err, ErrVersion):
		todo = "import it with the version of the program that wrote it, or a later one"
	case errors.Is(e.Err, ErrTooLarge):
		todo = "allow longer lines with ImportOptions.LineBytes"
	}
	return fmt.Sprintf("checkpoint: import: line %d: %s: %s", e.Line, e.Reason, todo)
}

func (e *ImportError) Unwrap() error { return e.Err }

// importOwner holds the lease of a run while it is imported.
const importOwner = "an import"

// Import reads what [Export] wrote and makes the run in another store, where it goes on exactly as
// it would have in the first: same id, same entries under the same numbers, same messages. All of
// the file is verified before anything of it is written; an [*ImportError] says what is wrong with
// it.
//
// ErrExists if the store has a run of that id. A run can't be imported under another id: the keys
// of its visits are made of its id, and other systems know by them what the visits did. For the
// same reason delete the run in the first store if this one is to go on.
//
// Into an [Archiver] the run comes whole or not at all, with the times and digests of the file.
// Into any other store the entries are appended, at the times of their import. Up to 16 MiB are one
// append. With more, a process that dies meanwhile leaves a part, which has to be deleted before
// the file is imported again. An Import that fails deletes what it has made, however much it is,
// unless somebody has gone on with it meanwhile. In both kinds of stores an import that failed may
// leave behind graphs of the run, which are known by their digests alone.
//
// The file is read twice: a reader that is no [io.Seeker] is copied to a temporary file. Closing
// the reader is the caller's business. When ctx ends Import waits for a Read that is under way, so
// end one that may block.
func Import(ctx context.Context, s Store, r io.Reader, o ImportOptions) (Info, error) {
	if err := needs(ctx, "Import", s, "reader", r); err != nil {
		return Info{}, err
	}
	if o.LineBytes < 0 {
		return Info{}, &ArgumentError{"Import", "option LineBytes", "is negative: zero means 128 MiB"}
	}
	o.LineBytes = cmp.Or(o.LineBytes, 128<<20)
	if err := ctx.Err(); err != nil {
		return Info{}, err
	}
	from, drop, err := twice(ctx, r)
	if err != nil {
		return Info{}, fmt.Errorf("checkpoint: import: %w", err)
	}
	defer drop()
	begin, err := from.Seek(0, io.SeekCurrent)
	if err != nil {
		return Info{}, fmt.Errorf("checkpoint: import: %w", err)
	}
	first := newImporter(from, o.LineBytes)
	for _, err := range first.envelopes(ctx) {
		if err != nil {
			return Info{}, err
		}
	}
	if _, err := from.Seek(begin, io.SeekStart); err != nil {
		return Info{}, fmt.Errorf("checkpoint: import: %w", err)
	}
	second := newImporter(from, o.LineBytes)
	second.graph = func(digest string, graph []byte) error { return s.PutGraph(ctx, digest, graph) }
	second.want = first.sum.all.Sum(nil)
	return load(ctx, s, first, second.envelopes(ctx))
}

// load makes the run of a file that was verified, out of its envelopes.
func load(
	ctx context.Context, s Store, file *importer, envelopes iter.Seq2[[]byte, error],
) (Info, error) {
	info := file.log.Info()
	if err := absent(ctx, s, info.Run); err != nil {
		return Info{}, err // though somebody holds its lease
	}
	a, archiver := s.(Archiver)
	switch {
	case !archiver && info.First > 1:
		return Info{}, fmt.Errorf("%w: importing run %q, which was trimmed: its appends can't be made anew",
			ErrUnsupported, info.Run)
	case !archiver && len(file.bases) > 0:
		return loadFork(ctx, s, file, envelopes)
	}
	asked := time.Now()
	l, err := s.Acquire(ctx, info.Run, importOwner)
	if err != nil {
		return Info{}, err
	}
	kept, stop := Keep(ctx, s, l, asked)
	began, restored := false, Info{}
	if err = absent(kept, s, info.Run); err == nil {
		if archiver {
			restored, err = a.Restore(kept, l, Archive{Envelopes: envelopes, Posts: file.posts, Bases: file.bases})
		} else if began, err = appendAll(kept, s, l, envelopes); err == nil {
			restored, err = postAll(kept, s, info.Run, file.posts)
		}
	}
	err = lostBy(ctx, kept, err)
	var made Head // that is to be deleted
	if began && err != nil {
		made, err = madeOf(ctx, s, info.Run, err, func(i Info) bool { return i.Epoch == l.Epoch }) // else another has acquired it
	}
	stop()
	release(ctx, s, l)
	restored.Owner = ""
	return restored, loaded(ctx, s, info.Run, made, err)
}

// madeOf returns where a run stands that an import has made which ends with err: the zero Head if
// there is none, or it is not as the import has left it. The error is err, and says if nobody
// knows.
func madeOf(ctx context.Context, s Store, run string, err error, its func(Info) bool) (Head, error) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	info, serr := s.Stat(last, run)
	switch {
	case serr == nil && its(info):
		return info.Head, err
	case serr == nil || errors.Is(serr, ErrNotFound):
		return Head{}, err
	}
	return Head{}, fmt.Errorf("%w; it is not known what of it was imported, and is there now: %w", err, serr)
}

// lostBy is err, and why the lease is lost, if it was kept and has been: what is there of the run
// may be somebody else's.
func lostBy(ctx, kept context.Context, err error) error {
	if err == nil || kept.Err() == nil || ctx.Err() != nil || errors.Is(err, ErrFenced) {
		return err
	}
	cause := context.Cause(kept)
	if errors.Is(err, context.Canceled) {
		return cause
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// patience is how long an import waits for what it does behind the end of its context.
const patience = 10 * time.Second

// release gives back the lease of an import, as far as the store does.
func release(ctx context.Context, s Store, l Lease) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = s.Release(last, l)
}

// loadFork makes a run that begins at a base, in one append.
func loadFork(
	ctx context.Context, s Store, file *importer, envelopes iter.Seq2[[]byte, error],
) (Info, error) {
	f := ForkedRun{Run: file.log.Info().Run}
	for data, err := range envelopes {
		if err != nil {
			return Info{}, err
		}
		for e := range added(data) {
			f.Entries = append(f.Entries, e.owned())
		}
	}
	o := file.log.Info().Origin
	if o == nil { // it was opened again, without one
		return Info{}, Corrupt(f.Run, 1, damage("it begins at a base and has no origin"))
	}
	fork := Fork{Base: file.base(o.Base), Shelf: file.base(o.Shelf), Runs: []ForkedRun{f}}
	if err := s.Fork(ctx, fork); err != nil {
		return Info{}, err
	}
	info, err := postAll(ctx, s, f.Run, file.posts)
	var made Head
	if err != nil { // nobody has the lease: whoever came may have gone on with the run
		made, err = madeOf(ctx, s, f.Run, err, func(i Info) bool { return i.Head.Seq == uint64(len(f.Entries)) })
	}
	return info, loaded(ctx, s, f.Run, made, err)
}

// loaded ends an import into a store that is no Archiver, which ends with err. If it has failed it
// deletes the run that it has made, unless that is somebody else's by now: one who has gone on with
// it since the lease was given back, or has made it anew.
func loaded(ctx context.Context, s Store, run string, made Head, err error) error {
	if made == (Head{}) || errors.Is(err, ErrFenced) || errors.Is(err, ErrConflict) {
		return err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	info, derr := s.Stat(last, run)
	if derr == nil && info.Head != made {
		return err
	}
	if derr == nil {
		derr = s.Delete(last, run)
	}
	if derr != nil && !errors.Is(derr, ErrNotFound) {
		err = fmt.Errorf("%w; deleting what was imported of it: %w", err, derr)
	}
	return err
}

// absent returns ErrExists if there is such a run.
func absent(ctx context.Context, s Store, run string) error {
	_, err := s.Stat(ctx, run)
	switch {
	case err == nil:
		return fmt.Errorf("%w: run %q", ErrExists, run)
	case errors.Is(err, ErrNotFound):
		return nil
	}
	return err
}

// togetherBytes is how much an import puts into one append of a store that is no Archiver.
const togetherBytes = 16 << 20

// appendAll appends the entries of a run, few times. It reports whether the run may exist.
func appendAll(
	ctx context.Context, s Store, l Lease, envelopes iter.Seq2[[]byte, error],
) (began bool, err error) {
	var head Head
	var group []Entry
	size := 0
	flush := func() error {
		if len(group) == 0 {
			return nil
		}
		began = true
		head, err = s.Append(ctx, l, head, group)
		group, size = group[:0], 0
		return err
	}
	for data, err := range envelopes {
		if err != nil {
			return began, err
		}
		if size > 0 && size+len(data) > togetherBytes {
			if err := flush(); err != nil {
				return began, err
			}
		}
		for e := range added(data) {
			group = append(group, e.owned())
		}
		size += len(data)
	}
	return began, flush()
}

// postAll posts messages in the order in which they were posted before, and returns what is known
// of the run then.
func postAll(ctx context.Context, s Store, run string, posts []Post) (Info, error) {
	posts = slices.Clone(posts)
	slices.SortStableFunc(posts, func(a, b Post) int { return a.At.Compare(b.At) })
	for _, p := range posts {
		if err := s.Post(ctx, run, p); err != nil {
			return Info{}, err
		}
	}
	return s.Stat(ctx, run)
}

// twice returns a reader of r that can be read from where it stands more than once, and what
// ends it. When ctx ends r is read no further.
func twice(ctx context.Context, r io.Reader) (io.ReadSeeker, func(), error) {
	if s, ok := r.(io.ReadSeeker); ok {
		if _, err := s.Seek(0, io.SeekCurrent); err == nil { // a pipe is a file that can't
			return s, func() {}, nil
		}
	}
	f, err := os.CreateTemp("", "pawl-import-*")
	if err != nil {
		return nil, nil, err
	}
	drop := func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
	_, err = io.Copy(f, readFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	}))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		drop()
		return nil, nil, err
	}
	return f, drop, nil
}

// A readFunc is an io.Reader that is a function.
type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }
