package checkpoint

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"
)

// An importer reads the lines of an export and checks every one. What it takes is what an
// exporter writes, and nothing else.
type importer struct {
	r     *bufio.Reader
	limit int
	sum   lineSum
	want  []byte                                  // of all lines, when they are read again
	graph func(digest string, graph []byte) error // takes the graphs; nil if nobody does

	number int    // of the line that was read last
	line   []byte // it
	header headerLine
	log    *Log // of the run up to that line
	named  map[string]bool
	seen   endLine
	posts  []Post
	bases  [][]byte
	sealed []byte
}

func newImporter(r io.Reader, limit int) *importer {
	return &importer{r: bufio.NewReader(r), limit: limit, sum: newLineSum(), named: map[string]bool{}}
}

// fault is what is wrong with the line that was read last.
func (m *importer) fault(err error) error {
	var known *ImportError
	switch stores := (*storeError)(nil); {
	case errors.As(err, &stores):
		return stores.error
	case errors.As(err, &known):
		return err
	case errors.Is(err, ErrVersion), errors.Is(err, ErrTooLarge):
		return &ImportError{Line: m.number, Reason: err.Error(), Err: err}
	case errors.Is(err, ErrCorrupt):
		return &ImportError{Line: m.number, Reason: err.Error(), Err: ErrCorrupt}
	}
	return err // of the reader
}

// envelopes yields the appends of the run, each valid until the next one. The loop ends
// without an error when all of the file is read and verified, the end included.
func (m *importer) envelopes(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			envelope, ended, err := m.next()
			if err != nil {
				yield(nil, err)
				return
			}
			if ended {
				return
			}
			if envelope != nil && !yield(envelope, nil) {
				return
			}
		}
	}
}

// next reads a line. It returns the envelope of an append, and whether the line is the end.
func (m *importer) next() (envelope []byte, ended bool, err error) {
	if err := m.read(); err != nil {
		return nil, false, err
	}
	body, ended, err := m.summed()
	if err != nil {
		return nil, false, m.fault(err)
	}
	switch kind := kindOfLine(body); {
	case (m.number == 1) != (kind == "pawl"):
		err = damage("the first line, and no other one, is the header of a run")
	case ended != (kind == "end"):
		err = damage("it is no end of an export")
	case kind == "pawl":
		err = m.begin(body)
	case kind == "base" && m.seen.Appends == 0 && m.seen.Graphs == 0:
		err = m.takeBase(body)
	case kind == "graph" && len(m.posts) == 0:
		err = m.takeGraph(body)
	case kind == "first" && len(m.posts) == 0:
		envelope, err = m.takeAppend(body)
	case kind == "post":
		err = m.takePost(body)
	case kind == "end":
		err = m.takeEnd(body)
	default:
		err = damage("no such line stands here")
	}
	if err != nil {
		return nil, false, m.fault(err)
	}
	return envelope, ended, nil
}

// read reads a line into m.line, newline included.
func (m *importer) read() error {
	m.number++
	m.line = m.line[:0]
	for {
		part, err := m.r.ReadSlice('\n')
		if len(m.line)+len(part) > m.limit {
			return m.fault(fmt.Errorf("%w: the line has more than %d bytes", ErrTooLarge, m.limit))
		}
		m.line = append(m.line, part...)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, io.EOF) && len(m.line) == 0:
			return m.fault(damage("the file ends before its end line"))
		case errors.Is(err, io.EOF):
			return m.fault(damage("the line is cut off"))
		case !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("checkpoint: import: line %d: %w", m.number, err)
		}
	}
}

// summed checks the sum of the line, and returns the line without it.
func (m *importer) summed() (body []byte, ended bool, err error) {
	if m.number == 1 && !bytes.HasPrefix(m.line, []byte(`{"pawl":"`+exportName+`"`)) {
		return nil, false, damage("this is no export of a run")
	}
	at := bytes.LastIndex(m.line, []byte(sumMember))
	if at < 0 {
		return nil, false, damage("the line has no sum")
	}
	if m.number == 1 {
		// Of a format to come nothing else is known.
		if err := checkFormat(m.line[:at]); err != nil {
			return nil, false, err
		}
	}
	ended = kindOfLine(m.line) == "end"
	if want := m.sum.closing(m.line[:at], ended); !bytes.Equal(m.line[at:], want) {
		return nil, false, damage("it was changed, or does not stand in its place")
	}
	m.line[at] = '}'
	return m.line[:at+1], ended, nil
}

func checkFormat(body []byte) error {
	var h struct {
		Format *int `json:"format"`
	}
	if err := json.Unmarshal(append(slices.Clone(body), '}'), &h); err != nil || h.Format == nil {
		return damage("the header can't be read")
	}
	if *h.Format != exportFormat && *h.Format != exportFormatV1 {
		return fmt.Errorf("%w: export of format %d", ErrVersion, *h.Format)
	}
	return nil
}

// kindOfLine returns the first member of a line, by which its kind is known.
func kindOfLine(body []byte) string {
	rest, ok := bytes.CutPrefix(body, []byte(`{"`))
	name, _, found := bytes.Cut(rest, []byte(`":`))
	if !ok || !found || len(name) > len("graph") {
		return ""
	}
	return string(name)
}

// decodeLine reads a line that holds the members of v and no others.
func decodeLine(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return damage("it can't be read: " + err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return damage("there is more than one value in it")
	}
	return nil
}

func (m *importer) begin(body []byte) error {
	if err := decodeLine(body, &m.header); err != nil {
		return err
	}
	m.log = NewLog(m.header.Run)
	if err := CheckRunID(m.header.Run); err != nil {
		return damage(err.Error())
	}
	return nil
}

func (m *importer) takeBase(body []byte) error {
	var l baseLine
	if err := decodeLine(body, &l); err != nil {
		return err
	}
	base, err := eitherOf(l.JSON, l.Text)
	if err != nil {
		return err
	}
	if BaseDigest(base) != l.Base {
		return damage(fmt.Sprintf("the base is not the one of digest %.80q", l.Base))
	}
	if n := len(m.bases); n > 0 && BaseDigest(m.bases[n-1]) >= l.Base {
		return damage("the bases are not in order")
	}
	m.bases = append(m.bases, base)
	m.seen.Bases++
	return nil
}

func (m *importer) takeGraph(body []byte) error {
	var g graphLine
	if err := decodeLine(body, &g); err != nil {
		return err
	}
	if m.named[g.Graph] {
		return damage("the graph stands there twice")
	}
	m.named[g.Graph] = true
	graph, err := eitherOf(g.JSON, g.Text)
	if err == nil {
		err = checkGraph(g.Graph, graph)
	}
	if err != nil {
		return err
	}
	m.seen.Graphs++
	if m.graph == nil {
		return nil
	}
	if err := m.graph(g.Graph, graph); err != nil {
		return &storeError{err}
	}
	return nil
}

// A storeError is what the store says of a graph that was given to it.
type storeError struct{ error }

// eitherOf returns what a line holds as JSON, or else as base64.
func eitherOf(raw json.RawMessage, text []byte) ([]byte, error) {
	if len(raw) > 0 && len(text) > 0 {
		return nil, damage("it says the same thing twice")
	}
	return append(raw, text...), nil
}

func (m *importer) takeAppend(body []byte) ([]byte, error) {
	var a appendLine
	if err := decodeLine(body, &a); err != nil {
		return nil, err
	}
	at, err := time.Parse(exportTime, a.At)
	if err != nil {
		return nil, damage("its time can't be read")
	}
	texts := a.Texts
	for _, raw := range a.Entries {
		texts = append(texts, raw)
	}
	if len(a.Texts) > 0 && len(a.Entries) > 0 || len(texts) == 0 {
		return nil, damage("its entries can't be read")
	}
	after, err := m.after(a)
	if err != nil {
		return nil, err
	}
	version := byte(formatV1)
	switch a.Envelope {
	case 0, formatV1:
	case formatV2:
		version = formatV2
	default:
		return nil, fmt.Errorf("%w: envelope of version %d", ErrVersion, a.Envelope)
	}
	m.sealed = sealTexts(m.sealed[:0], version, after, at, a.Epoch, texts)
	if err := m.log.Add(m.sealed); err != nil {
		return nil, err
	}
	if err := checked(m.sealed); err != nil {
		return nil, err
	}
	if head := m.log.Info().Head; a.First != after.Seq+1 || a.Digest != hex.EncodeToString(head.Digest[:]) {
		return nil, damage("its entries are not those of its digest")
	}
	m.seen.Appends++
	return m.sealed, nil
}

// after returns the position that an append follows. In the line of the first one of a log that
// was trimmed it stands itself, for nothing is there to take it from.
func (m *importer) after(a appendLine) (Head, error) {
	if head := m.log.Info().Head; head.Seq > 0 || a.Previous == "" {
		return head, nil
	}
	previous, err := hex.DecodeString(a.Previous)
	if err != nil || len(previous) != len(Digest{}) || a.First < 2 {
		return Head{}, damage("what it follows can't be read")
	}
	return Head{Seq: a.First - 1, Digest: Digest(previous)}, nil
}

func (m *importer) takePost(body []byte) error {
	var l postLine
	if err := decodeLine(body, &l); err != nil {
		return err
	}
	at, err := time.Parse(exportNano, l.At)
	if err != nil {
		return damage("its time can't be read")
	}
	p := Post{ID: l.Post, Kind: l.Kind, At: at}
	if p.Data, err = eitherOf(l.JSON, l.Text); err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return damage(err.Error())
	}
	if err := p.timely(); err != nil {
		return err
	}
	if n := len(m.posts); n > 0 && m.posts[n-1].ID >= p.ID {
		return damage("the messages are not in order")
	}
	m.posts = append(m.posts, p)
	m.seen.Posts++
	return nil
}

// base returns the base of that digest, nil if the file has none.
func (m *importer) base(digest string) []byte {
	for _, base := range m.bases {
		if BaseDigest(base) == digest {
			return base
		}
	}
	return nil
}

// takeEnd compares what the last line says with what was read.
func (m *importer) takeEnd(body []byte) error {
	var e endLine
	if err := decodeLine(body, &e); err != nil {
		return err
	}
	info := m.log.Info()
	m.seen.End, m.seen.Entries = exportName, info.Head.Seq
	m.seen.Head = hex.EncodeToString(info.Head.Digest[:])
	if e != m.seen || info.Head.Seq == 0 {
		return damage("the file is not the one that it ends")
	}
	if err := (Archive{Bases: m.bases}).Complete(m.log); err != nil {
		return err
	}
	if what := m.header.differs(info); what != "" {
		return &ImportError{Line: 1, Reason: "the log has another " + what, Err: ErrCorrupt}
	}
	if m.want != nil && !bytes.Equal(m.want, m.sum.all.Sum(nil)) {
		return damage("the file has changed while it was imported")
	}
	switch _, err := m.r.ReadByte(); {
	case err == nil:
		m.number++
		return damage("there is more behind the end")
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}
