// Clerk answers the questions of a continuation record, with the standard library alone: it shows
// what a program has to know of the format. See examples/handover.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"
)

// hashDomain stands before what is hashed.
const hashDomain = "pawl record 1.0\x00"

type object = map[string]any

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "clerk:", err)
		os.Exit(1)
	}
}

func run(args []string, stderr io.Writer) error {
	f := flag.NewFlagSet("clerk", flag.ContinueOnError)
	f.SetOutput(stderr)
	answer := f.String("answer", "", "to every open question")
	name := f.String("name", "clerk", "who answers")
	override := f.String("override", "", "`choice` in the place of the first decision that people may override")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 2 || *answer == "" {
		return errors.New("wanted: -answer TEXT [-override TEXT] [-name WHO] IN OUT")
	}
	for _, text := range []string{*answer, *name, *override} {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%q is no UTF-8, and a record is", text)
		}
	}
	in, err := os.Open(f.Arg(0))
	if err != nil {
		return err
	}
	defer in.Close() // it was only read
	last, err := verify(in)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Arg(0), err)
	}
	fmt.Fprintf(stderr, "verified: %s, %s\n", last["id"], last["contentHash"])
	who := object{"type": "human", "id": *name}
	if n := answerAll(last, *answer, who); n == 0 {
		return errors.New("no question is open")
	}
	if *override != "" && !overrideOne(last, *override, who) {
		return errors.New("people may override none of the decisions")
	}
	line, err := succeed(last, who)
	if err != nil {
		return err
	}
	return os.WriteFile(f.Arg(1), line, 0o600)
}

// verify reads the versions of a record, and checks that each is what was written and goes on from
// the one before. It returns the last one.
func verify(r io.Reader) (last object, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber() // as it is written: it is hashed
		var next object
		if err := d.Decode(&next); err != nil {
			return nil, fmt.Errorf("version %d: %w", n, err)
		}
		hash, err := hashOf(next)
		if err != nil {
			return nil, err
		}
		if hash != next["contentHash"] {
			return nil, fmt.Errorf("version %d is not what was written: its hash is %s", n, hash)
		}
		if last != nil && next["parentCRHash"] != last["contentHash"] {
			return nil, fmt.Errorf("version %d does not go on from the one before", n)
		}
		last = next
	}
	if last == nil {
		return nil, errors.New("it is empty")
	}
	return last, lines.Err()
}

// canonical is the JSON that is hashed: members in order, no white space, and nothing escaped that
// need not be. It is that of RFC 8785 for all names of members below U+E000.
func canonical(r object) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(r)
	return plain(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), err
}

// plain writes U+2028 and U+2029 as they are, which encoding/json always escapes.
func plain(data []byte) []byte {
	var out []byte
	for len(data) > 0 {
		switch {
		case bytes.HasPrefix(data, []byte(`\u2028`)):
			out, data = append(out, "\u2028"...), data[6:]
		case bytes.HasPrefix(data, []byte(`\u2029`)):
			out, data = append(out, "\u2029"...), data[6:]
		case data[0] == '\\': // with what it escapes, which may be another one
			out, data = append(out, data[:2]...), data[2:]
		default:
			out, data = append(out, data[0]), data[1:]
		}
	}
	return out
}

// hashOf is what contentHash has to be: that of the rest, with an empty one.
func hashOf(r object) (string, error) {
	was := r["contentHash"]
	r["contentHash"] = ""
	data, err := canonical(r)
	r["contentHash"] = was
	sum := sha256.Sum256(append([]byte(hashDomain), data...))
	return hex.EncodeToString(sum[:]), err
}

// answerAll answers the questions that are open, and returns how many.
func answerAll(r object, answer string, who object) (n int) {
	questions, _ := r["questionsForUser"].([]any)
	for _, x := range questions {
		if q, ok := x.(object); ok && q["status"] == "open" {
			q["status"], q["answer"], q["answeredBy"], q["answeredAt"] = "answered", answer, who, now()
			n++
		}
	}
	return n
}

// overrideOne makes another choice, and keeps the old one as a variant.
func overrideOne(r object, choice string, who object) bool {
	decisions, _ := r["decisions"].([]any)
	for _, x := range decisions {
		d, ok := x.(object)
		if !ok {
			continue
		}
		may, _ := d["overridableBy"].([]any)
		for _, authority := range may {
			if authority == "human" {
				variants, _ := d["variants"].([]any)
				d["variants"] = append(variants, object{
					"author": d["madeBy"], "decision": d["description"], "rationale": d["rationale"], "status": d["status"],
				})
				d["description"], d["rationale"] = choice, "said by "+fmt.Sprint(who["id"])
				d["madeBy"], d["madeAt"], d["status"] = who, now(), "accepted"
				return true
			}
		}
	}
	return false
}

// succeed makes the record that goes on from r, as a line.
func succeed(r, who object) ([]byte, error) {
	r["parentCRHash"] = r["contentHash"]
	r["id"] = fmt.Sprint(r["id"], "-", who["id"])
	delete(r, "merkleRoot") // it is the first version of another record
	r["createdBy"], r["createdAt"] = who, now()
	r["lastModifiedBy"], r["lastModifiedAt"] = who, now()
	hash, err := hashOf(r)
	if err != nil {
		return nil, err
	}
	r["contentHash"] = hash
	line, err := canonical(r)
	return append(line, '\n'), err
}

// now is the time as records tell it.
func now() json.Number { return json.Number(fmt.Sprint(time.Now().UnixMilli())) }
