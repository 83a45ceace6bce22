package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

var errEnd = errors.New("the end")

// lending yields values of those sizes in one buffer, which it overwrites, and counts them; then
// err, if there is one.
func lending(sizes []int, err error, yielded *atomic.Int64, returned *atomic.Bool) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		defer returned.Store(true)
		var lent []byte
		for i, size := range sizes {
			clear(lent[:cap(lent)])
			lent = append(lent[:0], content(i, size)...)
			yielded.Add(1)
			if !yield(lent, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// kept has the value itself as the data of an entry.
func kept(room []Entry, value []byte, _ int) ([]Entry, unread) {
	return append(room, Entry{Data: value}), unread{}
}

func content(i, size int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8)}, size)[:size] }

// sizes are those of many values, some of which are as large as a batch or larger.
func sizes() []int {
	all := make([]int, 1_500)
	for i := range all {
		all[i] = 2 * i
	}
	for i, size := range []int{64 << 10, 64<<10 + 1, 1 << 20, 2 << 20, 0, 1, 64<<10 - 1} {
		all[1_000+i] = size
	}
	all[0], all[len(all)-1] = 1<<20, 1<<20
	return all
}

func TestAheadInOrder(t *testing.T) {
	for _, err := range []error{nil, errEnd} {
		for _, keep := range []bool{false, true} {
			var yielded atomic.Int64
			var returned atomic.Bool
			all, at := sizes(), 0
			own := make(map[int][]byte)
			var last error
			for x, err := range ahead(lending(all, err, &yielded, &returned), kept, keep) {
				if last = err; err != nil {
					continue
				}
				if len(x.entries) != 1 || !bytes.Equal(x.entries[0].Data, content(at, all[at])) {
					t.Fatalf("value %d is another one", at)
				}
				if x.kept != nil {
					own[at] = x.entries[0].Data
				}
				at++
			}
			if at != len(all) || !errors.Is(last, err) || !returned.Load() {
				t.Errorf("%d values and error %v, the loop returned: %v; want %d and %v", at, last, returned.Load(), len(all), err)
			}
			for i, size := range all {
				if value, is := own[i]; is != (keep && size >= 512 && size <= 64<<10) || is && !bytes.Equal(value, content(i, size)) {
					t.Fatalf("value %d of %d bytes: kept: %v, and now it begins %.8x", i, size, is, value)
				}
			}
		}
	}
}

// Who breaks off, in whatever way, does so behind the loop, which may use what is his.
func TestAheadReturnsFirst(t *testing.T) {
	for _, at := range []int{1, 2, 31, 32, 33, 1_001, 1_003, 1_499, 1_500} {
		for name, leave := range map[string]func(){
			"break":  nil,
			"panic":  func() { panic(errEnd) },
			"goexit": runtime.Goexit,
		} {
			var yielded atomic.Int64
			var returned atomic.Bool
			left := make(chan bool)
			go func() { // ends with the test
				defer func() { left <- returned.Load() }()
				defer func() { _ = recover() }()
				n := 0
				for range ahead(lending(sizes(), nil, &yielded, &returned), kept, false) {
					if n++; n < at {
						continue
					}
					if leave == nil {
						break
					}
					leave()
				}
			}()
			if !<-left {
				t.Errorf("%s at value %d: the loop had not returned", name, at)
			}
		}
	}
}

// Who has values waiting gets them read; who may have to wait reads them. Both get the same.
func TestAheadReadsForWhoIsBehind(t *testing.T) {
	var yielded atomic.Int64
	var returned atomic.Bool
	var most []int // entries that are read of each value
	read := func(room []Entry, value []byte, n int) ([]Entry, unread) {
		most = append(most, n)
		return kept(room, value, n)
	}
	const far = batches * batchItems // as far ahead as it gets
	all := make([]int, 2*far)
	waited := false
	for range ahead(lending(all, nil, &yielded, &returned), read, false) {
		for !waited && yielded.Load() < far {
			runtime.Gosched()
		}
		waited = true
	}
	for i, n := range most[:far] { // most is the loop's until it has returned
		switch batch := i / batchItems; {
		case batch < behind && n != 0:
			t.Fatalf("of value %d, which nothing waits before, %d entries are read", i, n)
		case batch > behind && n != readAhead: // the caller has one batch at most
			t.Fatalf("of value %d, before which %d batches wait, %d entries are read", i, batch-1, n)
		}
	}
}

// However many entries of an envelope are read ahead, the caller gets all of them.
func TestReadFewLeavesTheRest(t *testing.T) {
	var entries []Entry
	for i := range 40 {
		entries = append(entries, Entry{Kind: Done, Path: fmt.Sprint("node-", i)})
	}
	data, _, err := Seal(nil, Head{}, time.Now(), 1, entries)
	if err != nil {
		t.Fatal(err)
	}
	for _, most := range []int{0, 1, readAhead, 40, 50} {
		all, left := readFew(nil, data, most)
		if len(all) != min(most, 40) {
			t.Errorf("%d entries are read, at most %d should be", len(all), most)
		}
		for more := true; more; {
			var e Entry
			if more, err = left.take(&e); err != nil {
				t.Fatal(err)
			}
			if more {
				all = append(all, e)
			}
		}
		for i, e := range all {
			if e.Seq != uint64(i+1) || e.Path != entries[i].Path {
				t.Fatalf("at most %d read ahead: entry %d is %d of %q", most, i+1, e.Seq, e.Path)
			}
		}
		if len(all) != 40 {
			t.Errorf("at most %d read ahead: %d entries in all", most, len(all))
		}
	}
}

func TestAheadIsBounded(t *testing.T) {
	for name, c := range map[string]struct{ size, most int }{
		"small":  {1, 12*32 + 1},
		"middle": {40 << 10, 12*2 + 1},
		"kept":   {40<<10 + 1, 12*2 + 1},
		"large":  {65 << 10, 1},
	} {
		all := make([]int, 600)
		for i := range all {
			all[i] = c.size
		}
		var yielded atomic.Int64
		var returned atomic.Bool
		at := 0
		for range ahead(lending(all, nil, &yielded, &returned), kept, name == "kept") {
			at++
			for range 20 {
				runtime.Gosched() // so that it is as far ahead as it gets
			}
			if before := int(yielded.Load()) - at; before > c.most {
				t.Fatalf("%s: %d values ahead, at most %d are allowed", name, before, c.most)
			}
		}
	}
}

// What ends the loop from inside ends the caller's goroutine as if it had been run there.
func TestAheadPanicAndGoexit(t *testing.T) {
	for name, end := range map[string]func(){
		"panic":  func() { panic(errEnd) },
		"goexit": runtime.Goexit,
	} {
		ended := make(chan any)
		passed := 0
		go func() { // ends with the test
			defer func() { ended <- recover() }()
			for range ahead(func(yield func([]byte, error) bool) {
				for range 40 {
					yield([]byte("a"), nil)
				}
				end()
			}, kept, false) {
				passed++
			}
			t.Errorf("%s: the loop went on behind it", name)
		}()
		want := any(nil)
		if name == "panic" {
			want = errEnd
		}
		if got := <-ended; got != want {
			t.Errorf("%s: recovered %v, want %v", name, got, want)
		}
		if passed != 32 {
			t.Errorf("%s: %d values before it, want those of the batch that was full", name, passed)
		}
	}
}
