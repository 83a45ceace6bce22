package badgerstore

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/pawlgo/pawl/checkpoint"
)

// Data that is squeezed is its length, 4 bytes, and then for every piece of pieceSize the length
// of its zstd frame, 4 bytes, and the frame.
//
// Pieces bound what a reader allocates by what it has read: whatever the lengths say, it is never
// more than a piece ahead of what frames have really held.
const (
	// data that is no longer is left as it is: 1 KiB of entries, in their envelope, among others
	squeezeAbove = 1<<10 + 128
	pieceSize    = 1 << 20
)

// All work in the goroutine of their caller, and are made when they are first needed. What is small
// is squeezed without entropy coding: of a text of 1 KB that costs 7 of 7.5 µs, as much as all else
// that a superstep costs.
var (
	squeezer      = sync.OnceValue(func() *zstd.Encoder { return newSqueezer(false) })
	smallSqueezer = sync.OnceValue(func() *zstd.Encoder { return newSqueezer(true) })
	stretcher     = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(pieceSize),
			zstd.WithDecoderMaxWindow(pieceSize), zstd.WithDecoderConcurrency(0))
		if err != nil {
			panic("badgerstore: options of a decoder: " + err.Error())
		}
		return d
	})
)

const smallPiece = 16 << 10

func newSqueezer(small bool) *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithNoEntropyCompression(small),
		zstd.WithEncoderCRC(false), zstd.WithWindowSize(pieceSize), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("badgerstore: options of an encoder: " + err.Error())
	}
	return e
}

// squeeze returns data squeezed, if that makes it smaller by an eighth at least.
func squeeze(data []byte) (squeezed []byte, gains bool) {
	if len(data) <= squeezeAbove {
		return nil, false
	}
	most := len(data) - len(data)/8
	b := binary.BigEndian.AppendUint32(make([]byte, 0, len(data)/4), uint32(len(data)))
	e := squeezer
	if len(data) <= smallPiece {
		e = smallSqueezer
	}
	for piece := range slices.Chunk(data, pieceSize) {
		at := len(b)
		b = e().EncodeAll(piece, append(b, 0, 0, 0, 0))
		binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
		if len(b) > most {
			return nil, false
		}
	}
	return b, true
}

// stretch returns what squeeze was given, if it is not longer than most. The error wraps
// ErrCorrupt.
func stretch(b []byte, most int) ([]byte, error) {
	if len(b) < 4 {
		return nil, checkpoint.Damage("compressed data is cut off")
	}
	size := uint64(binary.BigEndian.Uint32(b))
	if size > uint64(most) {
		return nil, checkpoint.Damage(fmt.Sprintf("compressed data says that it is %d bytes, the limit is %d", size, most))
	}
	b = b[4:]
	var data []byte
	for uint64(len(data)) < size {
		if len(b) < 4 || uint64(len(b)-4) < uint64(binary.BigEndian.Uint32(b)) {
			return nil, checkpoint.Damage("compressed data is cut off")
		}
		end := 4 + int(binary.BigEndian.Uint32(b))
		want := min(pieceSize, int(size)-len(data))
		data = grow(data, want, int(size))
		piece, err := stretcher().DecodeAll(b[4:end], data[len(data):len(data):cap(data)])
		if err != nil || len(piece) != want {
			return nil, checkpoint.Damage("compressed data can't be read")
		}
		data, b = append(data, piece...), b[end:] // it is there already, in most cases
	}
	if len(b) > 0 {
		return nil, checkpoint.Damage("there is more than the compressed data")
	}
	return data, nil
}
