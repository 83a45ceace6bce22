package badgerstore

import (
	"testing"
	"fmt"
	"github.com/pawlgo/pawl/checkpoint"
)

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		s, err := Open(t.Context(), dir, Options{MemTableSize: 4 << 20})
		if err != nil { t.Fatal(err) }
		l, err := s.Acquire(t.Context(), "run", "me")
		if err != nil { t.Fatal(err) }
		var h checkpoint.Head
		if round > 0 { i, err := s.Stat(t.Context(), "run"); if err != nil { t.Fatal(err) }; h = i.Head; fmt.Println(i) }
		for i := range 100 {
			h, err = s.Append(t.Context(), l, h, []checkpoint.Entry{{Kind: checkpoint.Done, Step: i + 1, Path: "a"}})
			if err != nil { t.Fatal(err) }
		}
		n := 0
		for e, err := range s.Read(t.Context(), "run", 1, 0) {
			if err != nil { t.Fatal(err) }
			_ = e
			n++
		}
		if n != 100*(round+1) { t.Fatal(n) }
		if err := s.Close(); err != nil { t.Fatal(err) }
	}
}
