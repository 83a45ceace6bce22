package checkpoint

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"time"
)

// Export writes a run to w as one file that [Import] can verify: its log as it stands, the bases
// that the log names, the graphs that either names, and the messages that nobody has drained. The
// file is lines of JSON and can be read with the usual tools. It holds no snapshots, which are made
// again. The same log gives the same bytes.
//
// A run that is live may be exported: the file holds its log up to some append. If the store is no
// [Archiver] the log is sealed anew, and the digests in the file are not the store's; a run that
// was trimmed is then ErrUnsupported.
//
// Export returns the errors of w and of the store, among them ErrCorrupt, ErrTrimmed if the run is
// trimmed meanwhile, and ErrNotFound if it is deleted, even if another one is made. What has been
// written then is no export, and Import refuses it.
//
// The run stays as it is, and the copy has the same idempotency keys. If the copy is to go on,
// delete this run: otherwise both do what is still to be done, and other systems take the one for
// the other.
func Export(ctx context.Context, s Store, run string, w io.Writer) error {
	if err := needs(ctx, "Export", s, "writer", w); err != nil {
		return err
	}
	before, err := s.Stat(ctx, run)
	if err != nil {
		return err
	}
	// Before the log is read, so that no message is missing that it has not drained.
	posts, err := s.Posts(ctx, run)
	if err != nil {
		return err
	}
	info, err := s.Stat(ctx, run)
	if err != nil {
		return err
	}
	if moved := before.movedTo(info); moved != nil { // the messages are those of the one before, or what drained them was dropped
		return whileExported(moved)
	}
	x := exporter{s: s, log: NewLog(run), before: before.Head.Seq, w: bufio.NewWriter(w), sum: newLineSum(), graphs: map[string]bool{}}
	header := headerOf(info)
	envelopes := reseal(s.Read(WithDigests(ctx), run, 1, info.Head.Seq))
	if a, ok := s.(Archiver); ok {
		envelopes = a.Envelopes(ctx, run)
		header.Format = formatOf(envelopes)
		header.Head = hex.EncodeToString(info.Head.Digest[:])
	} else if info.First > 1 {
		return fmt.Errorf("%w: exporting run %q, which was trimmed: its appends can't be sealed anew",
			ErrUnsupported, run)
	}
	if err := x.line(lineOf(header, nil), false); err != nil {
		return err
	}
	drained, err := x.all(ctx, envelopes, header, info.Bases())
	if err != nil {
		return x.stillThere(ctx, info, err)
	}
	if err := x.posts(posts, drained); err != nil {
		return err
	}
	return x.w.Flush()
}

func headerOf(i Info) headerLine {
	h := headerLine{
		Pawl: exportName, Format: exportFormat, Run: i.Run, Graph: i.Graph, Digest: i.Digest,
		Labels: i.Labels, Correlation: i.Correlation, Status: i.Status, Entries: i.Head.Seq,
	}
	if i.First > 1 {
		h.Oldest = i.First
	}
	return h
}

// formatOf returns the format of an export of these envelopes. Runs that were begun in version 2,
// as most, have all of theirs in it. What is wrong with one is for who exports it to say.
func formatOf(envelopes iter.Seq2[[]byte, error]) int {
	for data, err := range envelopes {
		if err != nil || len(data) < len(magic)+1 || data[len(magic)] != formatV1 {
			return exportFormat
		}
	}
	return exportFormatV1
}

// all writes the bases and the log, and compares what it tells with the header.
func (x *exporter) all(
	ctx context.Context, envelopes iter.Seq2[[]byte, error], header headerLine, bases []string,
) (map[string]bool, error) {
	var graphs []string
	for _, digest := range bases {
		base, err := x.s.Base(ctx, header.Run, digest)
		if err != nil {
			return nil, err
		}
		x.end.Bases++
		if err := x.line(lineOf(baseLine{Base: digest}, base), false); err != nil {
			return nil, err
		}
		if graph := graphOfBase(base); graph != "" && !x.graphs[graph] {
			x.graphs[graph] = true
			graphs = append(graphs, graph)
		}
	}
	for _, digest := range graphs { // behind all bases
		if err := x.graph(ctx, digest); err != nil {
			return nil, err
		}
	}
	oldest := max(header.Oldest, 1)
	drained, err := x.appends(ctx, envelopes, header.Entries)
	if err != nil {
		return nil, Corrupt(header.Run, x.log.untrusted(oldest), err)
	}
	if err := x.log.Whole(); err != nil { // it is about where the log begins
		return nil, Corrupt(header.Run, oldest, err)
	}
	if what := header.differs(x.log.Info()); what != "" {
		return nil, Corrupt(header.Run, 0, damage("the log has another "+what))
	}
	return drained, nil
}

// stillThere returns err, or what explains it: that the run has been trimmed since it was looked
// at, or deleted.
func (x *exporter) stillThere(ctx context.Context, before Info, err error) error {
	if moved := before.moved(ctx, x.s); moved != nil {
		return whileExported(moved)
	}
	return err
}

func whileExported(moved error) error {
	if errors.Is(moved, ErrTrimmed) {
		return fmt.Errorf("%w; it was while it was exported: export it again", moved)
	}
	return fmt.Errorf("%w, while it was exported", moved)
}

// An exporter writes the lines of one run.
type exporter struct {
	s      Store
	log    *Log   // up to the last line
	before uint64 // the last entry before the messages were read
	w      *bufio.Writer
	sum    lineSum
	graphs map[string]bool // by digest: those that the bases and the log have named
	end    endLine
}

func (x *exporter) line(body []byte, last bool) error {
	if _, err := x.w.Write(body); err != nil {
		return err
	}
	_, err := x.w.Write(x.sum.closing(body, last))
	return err
}

// differs says in what the header is not that of the run, "" if in nothing.
func (h headerLine) differs(i Info) string {
	switch {
	case h.Run != i.Run:
		return "run id"
	case h.Graph != i.Graph || h.Digest != i.Digest:
		return "graph"
	case !maps.Equal(h.Labels, i.Labels):
		return "label"
	case h.Correlation != i.Correlation:
		return "correlation id"
	case h.Status != i.Status:
		return "status"
	case h.Entries != i.Head.Seq:
		return "number of entries"
	case max(h.Oldest, 1) != i.First:
		return "oldest entry"
	case h.Head != "" && h.Head != hex.EncodeToString(i.Head.Digest[:]):
		return "head"
	}
	return ""
}

// appends writes the appends up to the entry last. It returns the ids of the messages that are
// drained behind x.before, which may be among those that were read. Under the id of one that was
// drained earlier another one waits.
func (x *exporter) appends(
	ctx context.Context, envelopes iter.Seq2[[]byte, error], last uint64,
) (map[string]bool, error) {
	drained := map[string]bool{}
	for data, err := range envelopes {
		if err != nil {
			return nil, err
		}
		if err := x.log.Add(data); err != nil {
			return nil, err
		}
		if err := x.envelope(ctx, data, drained); err != nil {
			return nil, err
		}
		if x.log.Info().Head.Seq >= last {
			break
		}
	}
	if x.log.Info().Head.Seq != last {
		return nil, damage("the entry is missing")
	}
	return drained, nil
}

// envelope writes the append that was added last, and before it the graphs that it names.
func (x *exporter) envelope(ctx context.Context, data []byte, drained map[string]bool) error {
	for entry := range added(data) {
		if entry.Post != "" && entry.Seq > x.before {
			drained[entry.Post] = true
		}
		for _, digest := range graphsNamed(&entry, x.graphs) {
			if err := x.graph(ctx, digest); err != nil {
				return err
			}
		}
	}
	e := opened(data)
	at, ok := timeText(e.At, exportTime)
	if !ok {
		return damage("the append is of an impossible time")
	}
	head := x.log.Info().Head
	body := appendLine{First: e.First, At: at, Epoch: e.Epoch, Digest: hex.EncodeToString(head.Digest[:])}
	if v := data[4]; v != formatV1 {
		body.Envelope = int(v)
	}
	if x.end.Appends == 0 && e.First > 1 {
		body.Previous = hex.EncodeToString(e.Previous[:])
	}
	line := lineOf(body, nil)
	x.end.Appends++
	return x.line(appendTexts(line, e.texts()), false)
}

// graph writes a graph, if the store has it: a run can be read without.
func (x *exporter) graph(ctx context.Context, digest string) error {
	graph, err := x.s.Graph(ctx, digest)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	x.end.Graphs++
	return x.line(lineOf(graphLine{Graph: digest}, graph), false)
}

// posts writes the messages that are not drained, and the end.
func (x *exporter) posts(posts []Post, drained map[string]bool) error {
	for _, p := range posts {
		if drained[p.ID] {
			continue
		}
		at, ok := timeText(p.At, exportNano)
		if !ok {
			return fmt.Errorf("checkpoint: run %q: post %q is of an impossible time", x.log.Info().Run, p.ID)
		}
		x.end.Posts++
		if err := x.line(lineOf(postLine{Post: p.ID, Kind: p.Kind, At: at}, p.Data), false); err != nil {
			return err
		}
	}
	head := x.log.Info().Head
	x.end.End, x.end.Entries, x.end.Head = exportName, head.Seq, hex.EncodeToString(head.Digest[:])
	return x.line(lineOf(x.end, nil), true)
}

// What entries that are sealed anew may share an envelope.
const (
	resealEntries = 256
	resealBytes   = 1 << 20
)

// reseal makes envelopes of the entries of a store that hands out none. Entries of the same
// time may have been appended together, and nothing else is known.
func reseal(entries iter.Seq2[Entry, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var group []Entry
		var at time.Time
		var head Head
		var sealed []byte
		size := 0
		seal := func() bool {
			if len(group) == 0 {
				return true
			}
			var err error
			sealed, head, err = Seal(sealed[:0], head, at, 1, group)
			group, size = group[:0], 0
			return yield(sealed, err) && err == nil
		}
		for e, err := range entries {
			if err != nil {
				yield(nil, err)
				return
			}
			full := len(group) == resealEntries || size > resealBytes
			if (full || !e.At.Equal(at)) && !seal() {
				return
			}
			group, at = append(group, e.owned()), e.At
			size += len(e.Delta) + len(e.Outer) + len(e.Data)
		}
		seal()
	}
}

// owned returns e in memory of its own.
func (e Entry) owned() Entry {
	e.Delta, e.Outer, e.Data = clone(e.Delta), clone(e.Outer), clone(e.Data)
	return e
}

func clone(raw []byte) []byte { return append([]byte(nil), raw...) }
