package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawlgo/pawl/state"
)

// A run is exported as lines of JSON. The first is a header, the last an end. Between them stand
// the bases that the log refers to, behind them the graphs that they are of, the appends in order,
// before an append the graphs that it is the first to name, and behind the last one the messages
// that nobody has drained:
//
//	{"pawl":"run","format":2,"run":"inquiry-42","graph":"archivist","digest":"sha256:…",
//	  "labels":{"tenant":"abbey"},"status":"completed","entries":17,"head":"…","sum":"…"}
//	{"base":"…","json":{…},"sum":"…"}
//	{"graph":"sha256:…","json":{…},"sum":"…"}
//	{"first":1,"at":"2026-11-21T09:30:00.000Z","epoch":1,"envelope":2,"digest":"…","entries":[{…},{…}],"sum":"…"}
//	{"post":"…","kind":"answer","at":"…","json":{…},"sum":"…"}
//	{"end":"run","appends":9,"entries":17,"graphs":1,"posts":1,"head":"…","sum":"…"}
//
// A sum is the SHA-256 of all that stands before it in the file, of which every line but the
// end has the first eight bytes: so what is wrong is found in the line where it begins. The
// digest of an append is that of its envelope, which can be made again from the line.
//
// What is no JSON of one line stands as base64 instead: "text" in place of "json", and
// "texts" in place of "entries", one for each entry.
const (
	exportName = "run"
	// Of format 1 are exports whose envelopes are all of version 1.
	exportFormatV1 = 1
	exportFormat   = 2
	exportTime     = "2006-01-02T15:04:05.000Z"       // of an append
	exportNano     = "2006-01-02T15:04:05.999999999Z" // of a post
)

type headerLine struct {
	Pawl   string            `json:"pawl"`
	Format int               `json:"format"`
	Run    string            `json:"run"`
	Graph  string            `json:"graph"`
	Digest string            `json:"digest"`
	Labels map[string]string `json:"labels,omitempty"`
	// Correlation is there if the run has one.
	Correlation string `json:"correlation,omitempty"`
	Status      Status `json:"status"`
	Entries     uint64 `json:"entries"`
	// Oldest is the first entry of a log that was trimmed.
	Oldest uint64 `json:"oldest,omitempty"`
	// Head is the digest of the last append. A store that is no Archiver has none to give:
	// its log is sealed anew, and only the end line tells.
	Head string `json:"head,omitempty"`
}

type baseLine struct {
	Base string          `json:"base"`
	JSON json.RawMessage `json:"json,omitempty"`
	Text []byte          `json:"text,omitempty"`
}

type graphLine struct {
	Graph string          `json:"graph"`
	JSON  json.RawMessage `json:"json,omitempty"`
	Text  []byte          `json:"text,omitempty"`
}

type appendLine struct {
	First uint64 `json:"first"`
	At    string `json:"at"`
	Epoch uint64 `json:"epoch"`
	// Envelope is the version of the envelope, if it is not 1.
	Envelope int    `json:"envelope,omitempty"`
	Digest   string `json:"digest"`
	// Previous is the digest of the append before this one, if it is the first of a log that
	// was trimmed.
	Previous string            `json:"previous,omitempty"`
	Entries  []json.RawMessage `json:"entries,omitempty"`
	Texts    [][]byte          `json:"texts,omitempty"`
}

type postLine struct {
	Post string          `json:"post"`
	Kind string          `json:"kind"`
	At   string          `json:"at"`
	JSON json.RawMessage `json:"json,omitempty"`
	Text []byte          `json:"text,omitempty"`
}

type endLine struct {
	End     string `json:"end"`
	Appends int    `json:"appends"`
	Entries uint64 `json:"entries"`
	Graphs  int    `json:"graphs"`
	Posts   int    `json:"posts"`
	Bases   int    `json:"bases,omitempty"`
	Head    string `json:"head"`
}

// A lineSum computes the sums of lines, in order.
type lineSum struct{ all hash.Hash }

func newLineSum() lineSum { return lineSum{sha256.New()} }

// closing returns what ends a line that begins with body, which has no closing brace.
func (s lineSum) closing(body []byte, last bool) []byte {
	s.all.Write(body)
	sum := s.all.Sum(nil)
	if !last {
		sum = sum[:8]
	}
	end := append([]byte(nil), sumMember...)
	end = hex.AppendEncode(end, sum)
	end = append(end, "\"}\n"...)
	s.all.Write(end)
	return end
}

const sumMember = `,"sum":"`

// single reports whether raw is JSON that can stand in a line as it is. Where it is nested so
// deeply that a parser may refuse the line, in which it is a level or two deeper, it can't.
func single(raw []byte) bool {
	return !bytes.ContainsAny(raw, "\n\r") && utf8.Valid(raw) && json.Valid(raw) && !state.TooDeep(raw) &&
		len(bytes.TrimSpace(raw)) == len(raw)
}

// lineOf is the JSON of a line without its closing brace: v, and behind its members raw as
// it is, or as base64 if that can't be.
func lineOf(v any, raw []byte) []byte {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("checkpoint: a line is made of strings and numbers: " + err.Error())
	}
	line := bytes.TrimSuffix(buf.Bytes(), []byte("}\n"))
	switch {
	case len(raw) == 0:
		return line
	case single(raw):
		return append(append(line, `,"json":`...), raw...)
	}
	line = append(line, `,"text":"`...)
	return append(base64.StdEncoding.AppendEncode(line, raw), '"')
}

// appendTexts appends the entries of an append to its line.
func appendTexts(line []byte, texts [][]byte) []byte {
	member, before, behind := `,"entries":[`, "", ""
	add := func(line, text []byte) []byte { return append(line, text...) }
	if slices.ContainsFunc(texts, func(text []byte) bool { return !single(text) }) {
		member, before, behind, add = `,"texts":[`, `"`, `"`, base64.StdEncoding.AppendEncode
	}
	for _, text := range texts {
		line = append(append(line, member...), before...)
		line = append(add(line, text), behind...)
		member = ","
	}
	return append(line, ']')
}

// texts returns the entries of an envelope, which can be read, as they are stored.
func (e Envelope) texts() [][]byte {
	texts := make([][]byte, 0, e.Count)
	rest := e.payload()
	for range e.Count {
		var entry Entry
		next, _ := parseEntry(rest, &entry)
		texts = append(texts, rest[:len(rest)-len(next)-1])
		rest = next
	}
	return texts
}

// graphsNamed adds to known the digests of graphs that an entry names, and returns the new
// ones.
func graphsNamed(e *Entry, known map[string]bool) []string {
	var names []string
	switch e.Kind {
	case Opened, Rewound:
		var graph struct{ Digest string }
		if json.Unmarshal(e.Data, &graph) == nil {
			names = []string{graph.Digest}
		}
	case Migrated:
		var graphs struct{ From, To string }
		if json.Unmarshal(e.Data, &graphs) == nil {
			names = []string{graphs.From, graphs.To}
		}
	}
	var fresh []string
	for _, digest := range names {
		if digest != "" && !known[digest] {
			known[digest] = true
			fresh = append(fresh, digest)
		}
	}
	return fresh
}

// graphOfBase returns the digest of the graph that a base is a machine of: of a run that was
// trimmed no entry may name it any more. It is "" of a base that is no machine.
func graphOfBase(base []byte) string {
	var machine struct{ Graph string }
	if json.Unmarshal(base, &machine) != nil || CheckDigest(machine.Graph) != nil {
		return ""
	}
	return machine.Graph
}

// checkGraph refuses JSON that is not that of the graph of the digest. What digests other
// than those of package dag say is not known here.
func checkGraph(digest string, graph []byte) error {
	if err := CheckDigest(digest); err != nil {
		return damage(err.Error())
	}
	if !strings.HasPrefix(digest, "sha256:") {
		return nil
	}
	// The digest is that of the JSON without the digest, which stands behind the name: a graph has
	// one JSON.
	before, after, found := bytes.Cut(graph, []byte(`,"digest":"`+digest+`"`))
	sum := sha256.New()
	sum.Write(before)
	sum.Write(after)
	name, isName := bytes.CutPrefix(before, []byte(`{"name":`))
	isName = isName && json.Unmarshal(name, new(string)) == nil && json.Valid(graph)
	if !found || !isName || "sha256:"+hex.EncodeToString(sum.Sum(nil)) != digest {
		return damage(fmt.Sprintf("the graph is not the one of digest %.80q", digest))
	}
	return nil
}

// timeText writes a time as lines have it, or reports that none can say it.
func timeText(t time.Time, layout string) (string, bool) {
	text := t.UTC().Format(layout)
	back, err := time.Parse(layout, text)
	return text, err == nil && back.UnixMilli() == t.UnixMilli()
}
