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
	said []byte   // what is sealed next
	text []byte   // where the run stood with behindNewest of kept to come, as JSON; nil if there are no more
}

// behindNewest is about how many appends of a run that asks behind 1 000 nodes are behind its
// newest snapshot.
const behindNewest = 147

// visit is a function with a draft and a context, and returns what it has counted.
func (x *scribe) visit() (int, error) {
	f := x.next(x.ctx, new(plain))
	err := f.tryout()
	return f.draft.Count, err
}

// counts is a visit, and an append of what it says, and of what is said behind it.
func (x *scribe) counts(behind string) ([]byte, error) {
	n, err := x.visit()
	if err != nil {
		return nil, err
	}
	x.said = append(sayCount(x.said[:0], 9, n), behind...)
	return x.seal(x.said), nil
}

// asks is a visit that says that it waits for an answer.
func (x *scribe) asks(question string) (err error) {
	if _, err = x.visit(); err != nil {
		return err
	}
	x.said = append(x.said[:0], `{"kind":"interrupted","path":"node-9","step":9,"id":"94496a83-2f87-4b4d-a9c6-3bfd6405ff84",`+
		`"data":{"kind":"asked","key":"sure","want":{"kind":"bool"},"question":`...)
	if x.said, err = quoted(x.said, question); err != nil {
		return err
	}
	x.seal(append(x.said, `}}{"kind":"waiting"}`...))
	return nil
}

// starts does so many nodes and one that asks, beside its caller, and returns when that one began.
// Each of the others appends two entries.
func (x *scribe) starts(nodes int) (asks time.Time, err error) {
	err = beside(x.ctx, func() error {
		x.diary, x.kept, x.text = diary{}, make([][]byte, 0, nodes), nil
		for i := range nodes {
			if i > 0 && i == nodes-behindNewest {
				x.text = stands(i, nodes)
			}
			data, err := x.counts("")
			if err != nil {
				return err
			}
			x.kept = append(x.kept, data)
		}
		asks = time.Now()
		return x.asks("Shall I go on?")
	})
	return asks, err
}

// answers is an answer, and two nodes behind it: a call beside its caller that appends seven
// entries in three appends.
func (x *scribe) answers() error {
	return beside(x.ctx, func() error {
		x.said = append(x.said[:0], `{"kind":"answered","id":"94496a83-2f87-4b4d-a9c6-3bfd6405ff84","post":"answer:000000000001",`+
			`"data":{"value":true,"how":"answered","at":"2001-02-03T04:05:06.070809101Z"}}`...)
		x.said = append(x.said, `{"kind":"resumed","data":{"owner":"6edd6823-3a8d-47cc-bd3b-9748c8fee2fa"}}`...)
		x.seal(x.said)
		_, err := x.counts("")
		if err == nil {
			_, err = x.counts(`{"kind":"completed"}`)
		}
		return err
	})
}

// stands is where a run stands of which so many nodes are done, each of which has added 1: the
// state, and a bit for each node.
func stands(done, nodes int) []byte {
	bits := make([]uint64, nodes/64+1)
	for i := range done {
		bits[i/64] |= 1 << (i % 64)
	}
	return append(list(fmt.Appendf(nil, `{"Count":%d,"Done":`, done), bits), '}')
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

// reads checks what was kept, as a log is checked that is read, from where the run stood on, and
// makes of it what has to be known to go on: the state, how often each node is done, and how many
// nodes had to be waited for.
func (x *scribe) reads() (state int, visits map[string]int, waited int, err error) {
	visits = map[string]int{}
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
			case string(what) == "path":
				path, _ := cutString(value[1:])
				visits[string(path)]++
			case string(what) == "add":
				n, err := strconv.Atoi(string(value[1:bytes.IndexByte(value, '}')]))
				if err != nil {
					return 0, nil, 0, err
				}
				state += n
			}
		}
	}
	return state, visits, waited, nil
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

// cutString returns the first string of JSON that has no escapes, and what follows it: nil if there
// is none.
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

// coldAnswers counts from the answers, of questions that were asked before all of them, and has the
// log read that is behind each.
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
				state, visits, waited, err := all[i].reads()
				if err != nil || state != nodes || visits["node-9"] != min(nodes, behindNewest) || nodes > behindNewest && waited != behindNewest {
					return fmt.Errorf("of %d nodes came %d, %d of which were waited for, and %v: %w", nodes, state, waited, visits, err)
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
				"three functions with a draft and a context each, and four small appends of JSON, by hand, in a log in memory, with digests and checksums", n),
			shown(fmt.Sprintf("floor/resume-cold-%d", n), all[1].times(1e-3), "µs", "for resume-cold-%d: the same from the answer on, "+
				"behind %d appends that were made long before, of the newest %d of which the checksums are checked, and of the JSON of each a number is added up and its node is found in a map; "+
				"of what is before them it is read where the run stood", n, n, min(n, behindNewest)))
	}
	flat, err := s.flatness(questions)
	if err != nil {
		return rows, err
	}
	return append(rows, shown("floor/resume-flat", flat[0].over(flat[1]), "ratio",
		"for resume/flat: as floor/resume-1000, %.3g µs, to as floor/resume-10, %.3g µs", flat[0].median()*1e-3, flat[1].median()*1e-3)), nil
}
