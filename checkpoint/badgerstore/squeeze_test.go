package badgerstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/pawlgo/pawl/checkpoint"
)

// prose is text that can be compressed, and is not all the same.
func prose(n int) []byte {
	words := strings.Fields("the library is a labyrinth of books and each of them speaks of other books")
	random := rand.New(rand.NewPCG(uint64(n), 1))
	var b bytes.Buffer
	for b.Len() < n {
		b.WriteString(words[random.IntN(len(words))] + " ")
	}
	return b.Bytes()[:n]
}

// What is longer than 1 KiB is squeezed where it gains, and comes back as it was.
func TestSqueeze(t *testing.T) {
	for _, n := range []int{0, 1, squeezeAbove, squeezeAbove + 1, 10_000, pieceSize, pieceSize + 1, 3*pieceSize - 1} {
		data := prose(n)
		b, gains := squeeze(data)
		if gains != (n > squeezeAbove) {
			t.Errorf("%d bytes: gains = %v", n, gains)
		}
		if !gains {
			continue
		}
		if len(b) > n*2/3 {
			t.Errorf("%d bytes of prose are %d", n, len(b))
		}
		if got, err := stretch(b, n); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: stretch = %d bytes, %v", n, len(got), err)
		}
		if _, err := stretch(b, n-1); !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("%d bytes where %d are allowed: %v", n, n-1, err)
		}
		again, _ := squeeze(data)
		if !bytes.Equal(b, again) {
			t.Errorf("%d bytes are not always squeezed to the same", n)
		}
	}
	for percent, want := range map[int]bool{0: false, 10: false, 15: true} { // an eighth is between
		noise := make([]byte, 2*pieceSize)
		random := rand.NewChaCha8([32]byte{})
		_, _ = random.Read(noise[len(noise)*percent/100:])
		if b, gains := squeeze(noise); gains != want {
			t.Errorf("noise, with %d in a hundred zeros, is squeezed to %d bytes: gains = %v", percent, len(b), gains)
		}
	}
}

// What can't be of a value of its kind is not unpacked.
func TestLimitsOfKinds(t *testing.T) {
	s := new(Store)
	for kind, most := range map[byte]uint32{logKey: MaxAppend, postKey: MaxAppend, snapshotKey: MaxSnapshot,
		'g': MaxAppend, 'v': MaxAppend, 'b': MaxSnapshot, 'z': MaxSnapshot} {
		for more, want := range map[uint32]string{0: "cut off", 1: fmt.Sprintf("the limit is %d", most)} {
			says := binary.BigEndian.AppendUint32(nil, most+more)
			_, err := s.unpack(place{key: []byte{kind}}, says, squeezed)
			if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), want) {
				t.Errorf("%c of %d bytes: %v, want %q", kind, most+more, err, want)
			}
		}
	}
}

// Lengths that are lies are found, and nothing near what they say is allocated.
func TestBombs(t *testing.T) {
	most := MaxAppend
	frame := squeezer().EncodeAll(make([]byte, pieceSize), nil)
	bomb := func(size uint32, frames ...[]byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, size)
		for _, f := range frames {
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(f))), f...)
		}
		return b
	}
	// A frame without pieces: 64 MiB of zeros in a few thousand bytes.
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := e.EncodeAll(make([]byte, most), nil)
	// The head of a frame of one segment that says that it holds 2 GiB.
	claims := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0}, 0, 0, 0, 0x80, 1, 0, 0)
	for name, b := range map[string][]byte{
		"says more than the limit":      bomb(uint32(most)+1, frame),
		"says all that can be said":     bomb(1<<32-1, frame),
		"says 64 MiB and holds nothing": bomb(uint32(most)),
		"says 64 MiB and holds one":     bomb(uint32(most), frame),
		"a frame of 64 MiB":             bomb(uint32(most), whole),
		"a frame of 64 MiB, said less":  bomb(4096, whole),
		"a frame that says 2 GiB":       bomb(uint32(most), claims),
		"more than was said":            bomb(4096, frame),
		"a frame behind the end":        bomb(pieceSize, frame, frame),
		"a length beyond the end":       append(bomb(4096), 0xff, 0xff, 0xff, 0xff),
		"a frame that is none":          bomb(4096, []byte("no frame")),
		"two frames in one":             bomb(2*pieceSize, append(bytes.Clone(frame), frame...)),
	} {
		before := bytesAllocated()
		data, err := stretch(b, most)
		if !errors.Is(err, checkpoint.ErrCorrupt) || data != nil {
			t.Errorf("%s: %d bytes, %v, want ErrCorrupt", name, len(data), err)
		}
		if n := bytesAllocated() - before; n > 8*pieceSize {
			t.Errorf("%s: %d bytes were allocated for %d", name, n, len(b))
		}
	}
}

func bytesAllocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// FuzzStretch: whatever a value holds, it is an error or no longer than is allowed, and what was
// squeezed comes back.
func FuzzStretch(f *testing.F) {
	for _, data := range [][]byte{prose(2000), make([]byte, pieceSize+2000)} { // small, so that it is fast
		b, _ := squeeze(data)
		f.Add(b)
	}
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		const most = 4 * pieceSize
		data, err := stretch(b, most)
		if err != nil && !errors.Is(err, checkpoint.ErrCorrupt) || len(data) > most {
			t.Errorf("stretch = %d bytes, %v", len(data), err)
		}
		if squeezed, gains := squeeze(b); gains {
			if again, err := stretch(squeezed, len(b)); err != nil || !bytes.Equal(again, b) {
				t.Errorf("%d bytes come back as %d, %v", len(b), len(again), err)
			}
		}
	})
}
