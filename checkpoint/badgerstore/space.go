package badgerstore

import (
	"fmt"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A space watches over the room on the device. It asks the system once a second, or when
// so much was written that the last answer means little.
type space struct {
	dir     string
	reserve int64
	free    func(dir string) (int64, error) // nil where the system can't be asked

	left    int64 // bytes that were free when it was last asked, less those written since
	written int
	asked   time.Time
}

const askEvery = 8 << 20

// check returns ErrFull if less than the reserve would be free after a write of that many
// bytes.
func (p *space) check(bytes int) error {
	if p.free == nil {
		return nil
	}
	now := time.Now()
	enough := p.left-int64(bytes) >= p.reserve
	if !enough || p.written >= askEvery || now.Sub(p.asked) >= time.Second {
		free, err := p.free(p.dir)
		if err != nil {
			return fmt.Errorf("checkpoint: free space of %s: %w", p.dir, err)
		}
		p.left, p.written, p.asked = free, 0, now
	}
	if p.left-int64(bytes) < p.reserve {
		return fmt.Errorf("%w: %s has %d bytes left, of which %d are kept free",
			checkpoint.ErrFull, p.dir, p.left, p.reserve)
	}
	p.left -= int64(bytes)
	p.written += bytes
	return nil
}
