package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"iter"
	"runtime"
	"strconv"
	"time"
)

// A scribe does by hand what a run does that asks and is answered, in a log in memory.
type scribe struct {
	diary
	slab
	ctx  context.Context
	kept [][]byte // what was appended by starts
	text []byte   // where the run stood with behindNewest of kept to come, as JSON; nil if there are no more
}

// behindNewest is about how many appends of a run that asks behind 1 000 nodes are behind its newest snapshot.
const behindNewest = 147

// visit is a function with a draft and a context, and an append of what it says.
func (x *scribe) visit(said any) ([]byte, error) {
	if err := x.next(x.ctx, new(plain)).tryout(); err != nil {
		return nil, err
	}
	return x.append(said)
}

// starts does so many nodes and one that asks, beside its caller, and returns when that one began. Each of the others
// appends two entries.
func (x *scribe) starts(nodes int) (asks time.Time, err error) {
	err = beside(x.ctx, func() error {
		x.diary, x.kept, x.text = diary{}, make([][]byte, 0, nodes), nil
		for i := range nodes {
			if i > 0 && i == nodes-behindNewest {
				x.text = stands(i, nodes)
			}
			data, err := x.visit([]excerpt{about("done", "{}"), about("superstep", "{}")})
			if err != nil {
				return err
			}
			x.kept = append(x.kept, data)
		}
		asks = time.Now()
		_, err := x.visit([]excerpt{about("waiting", `{"name":"sure","question":"Shall I go on?"}`)})
		return err
	})
	return asks, err
}

// answers is an answer, and two nodes behind it: a call that appends one entry, and one beside its caller that appends five in three.
func (x *scribe) answers() error {
	if _, err := x.append(about("answered", `{"name":"sure","value":true}`)); err != nil {
		return err
	}
	return beside(x.ctx, func() error {
		_, err := x.append(about("resumed", "{}"))
		for _, kind := range []string{"superstep", "completed"} {
			if err == nil {
				_, err = x.visit([]excerpt{about("done", "{}"), about(kind, "{}")})
			}
		}
		return err
	})
}

// stands is where a run stands of which so many nodes are done, each of which has added 2: the state, and a bit for each node.
func stands(done, nodes int) []byte {
	bits := make([]uint64, nodes/64+1)
	for i := range done {
		bits[i/64] |= 1 << (i % 64)
	}
	text := fmt.Appendf(nil, `{"Count":%d,"Done":[`, 2*done)
	for _, b := range bits {
		text = append(strconv.AppendUint(text, b, 10), ',')
	}
	return append(text[:len(text)-1], "]}"...)
}

// goesOn makes of such a text the state, and for each node whether it is waited for.
func goesOn(text []byte, nodes int) (state int, waits []bool, err error) {
	waits = make([]bool, nodes)
	number := func(end byte) (n uint64) {
		var before []byte
		if before, text, _ = bytes.Cut(text, []byte{end}); err == nil {
			n, err = strconv.ParseUint(string(before), 10, 64)
		}
		return n
	}
	text = text[len(`{"Count":`):]
	state = int(number(','))
	text = bytes.Replace(text[len(`"Done":[`):], []byte{']'}, []byte{','}, 1)
	for i := range waits {
		if i%64 == 0 {
			bits := number(',')
			for k := i; k < min(i+64, nodes); k++ {
				waits[k] = bits&(1<<(k%64)) == 0
			}
		}
	}
	return state, waits, err
}

// reads checks what was kept, as a log is checked that is read, from where the run stood on, and makes of it what has to be known to
// go on: the state, how many entries there are of each node, and how many nodes had to be waited for.
func (x *scribe) reads() (state int, entries map[string]int, waited int, err error) {
	entries = map[string]int{}
	kept := x.kept
	if x.text != nil {
		var waits []bool
		if state, waits, err = goesOn(x.text, len(kept)); err != nil {
			return 0, nil, 0, err
		}
		for _, w := range waits {
			if w {
				waited++
			}
		}
		kept = kept[len(kept)-behindNewest:]
	}
	for _, data := range kept {
		_ = crc32.Checksum(data, castagnoli)
		for what, value := range told(data[sha256.Size:]) {
			switch {
			case string(what) == "Path":
				path, _ := cutString(value[1:])
				entries[string(path)]++
			case string(what) == "Count":
				n, err := strconv.Atoi(string(value[1:bytes.IndexByte(value, '}')]))
				if err != nil {
					return 0, nil, 0, err
				}
				state += n
			}
		}
	}
	return state, entries, waited, nil
}

// told yields the strings of JSON that has no escapes, and what follows each.
func told(data []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(what, behind []byte) bool) {
		for {
			what, behind := cutString(data)
			if behind == nil || !yield(what, behind) {
				return
			}
			data = behind
		}
	}
}

// cutString returns the first string of JSON that has no escapes, and what follows it: nil if there is none.
func cutString(data []byte) (what, behind []byte) {
	from := bytes.IndexByte(data, '"')
	if from < 0 {
		return nil, nil
	}
	data = data[from+1:]
	end := bytes.IndexByte(data, '"')
	return data[:end], data[end+1:]
}

// questions has so many nodes done before each question, and counts from the node on that asks it.
func questions(nodes int) probe {
	return func(times int) (took time.Duration, err error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		runtime.GC()
		for range times {
			x := scribe{ctx: ctx}
			began, err := x.starts(nodes)
			if err != nil {
				return 0, err
			}
			if err := x.answers(); err != nil {
				return 0, err
			}
			took += time.Since(began)
		}
		return took, nil
	}
}

// coldAnswers counts from the answers, of questions that were asked before all of them, and has the log read that is behind each.
func coldAnswers(nodes int) stage {
	return func(times int) (func() error, func(), error) {
		ctx, cancel := context.WithCancel(context.Background())
		all := make([]scribe, times)
		for i := range all {
			all[i].ctx = ctx
			if _, err := all[i].starts(nodes); err != nil {
				return nil, cancel, err
			}
		}
		return func() error {
			for i := range all {
				state, entries, waited, err := all[i].reads()
				if err != nil || state != 2*nodes || entries["node-9"] != 2*min(nodes, behindNewest) || nodes > behindNewest && waited != behindNewest {
					return fmt.Errorf("of %d nodes came %d, %d of which were waited for, and %v: %w", nodes, state, waited, entries, err)
				}
				if err := all[i].answers(); err != nil {
					return err
				}
			}
			return nil
		}, cancel, nil
	}
}

func resumeFloor(s session) ([]row, error) {
	var rows []row
	for _, n := range []int{10, 100, 1_000} {
		times := questionsOf(s, n)
		all, err := s.probes([]int{times, times}, questions(n), coldAnswers(n).timed)
		if err != nil {
			return rows, err
		}
		rows = append(rows,
			shown(fmt.Sprintf("floor/resume-%d", n), all[0].times(1e-3), "µs", "for resume-%d, from the node on that asks, behind as many others: a call beside its caller that ends, and another one, "+
				"three functions with a draft and a context each, and five small appends of JSON in a log in memory, with digests and checksums", n),
			shown(fmt.Sprintf("floor/resume-cold-%d", n), all[1].times(1e-3), "µs", "for resume-cold-%d: the same from the answer on, "+
				"behind %d appends that were made long before, of the newest %d of which the checksums are checked, and of their JSON a number is added up and a node is found in a map for each entry; "+
				"of what is before them it is read where the run stood", n, n, min(n, behindNewest)))
	}
	flat, err := s.flatness(questions)
	if err != nil {
		return rows, err
	}
	return append(rows, shown("floor/resume-flat", flat[0].over(flat[1]), "ratio",
		"for resume/flat: as floor/resume-1000, %.3g µs, to as floor/resume-10, %.3g µs", flat[0].median()*1e-3, flat[1].median()*1e-3)), nil
}
