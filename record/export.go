package record

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/pawlgo/pawl/internal/misuse"
)

// Export writes all versions of a record, oldest first: one line of canonical JSON each, which any
// program that knows the format can read. A record that is broken is a [*BrokenError]. The errors
// of w are returned as they are; what was written then is not all.
func (l *Ledger) Export(ctx context.Context, id string, w io.Writer) error {
	if misuse.Missing(w) {
		return &ArgumentError{"Export", "writer", "is nil: open a file"}
	}
	c, err := l.whole(ctx, "Export", id)
	if err != nil {
		return err
	}
	for i := range c.all {
		data, err := c.all[i].Record.Encode()
		if err != nil {
			return err
		}
		if _, err := w.Write(append(data, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// longestLine is how many bytes a version may have that Import reads.
const longestLine = 64 << 20

// Import reads what [Ledger.Export] wrote, verifies all of it, keeps it as a record of the same id,
// all versions or none, and returns the last one. An [*InvalidError] or [*BrokenError] if it is not
// whole, or not what the trusted roots say; ErrExists if there is a record of that id;
// [checkpoint.ErrTooLarge] if all versions together are more than the store takes at once, which is
// 64 MiB in badgerstore. The errors of r are returned as they are.
//
// A file that was cut off behind a line is a record with fewer versions: only a trusted root tells.
func (l *Ledger) Import(ctx context.Context, r io.Reader, trusted ...Root) (*Version, error) {
	if err := l.called(ctx, "Import"); err != nil {
		return nil, err
	}
	if misuse.Missing(r) {
		return nil, &ArgumentError{"Import", "reader", "is nil: open a file"}
	}
	c := new(chain)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		if len(c.all) == 0 {
			first, err := Decode(lines.Bytes())
			if err != nil {
				return nil, err
			}
			c.id = first.ID
		}
		c.add(lines.Bytes(), "") // which keeps nothing of it
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, &InvalidError{ID: c.id, Problems: []string{fmt.Sprintf("a line has more than %d MiB", longestLine>>20)}}
	case err != nil:
		return nil, err
	}
	if len(c.all) == 0 {
		return nil, &InvalidError{Problems: []string{"it is empty"}}
	}
	if v, err := c.verdict(trusted); err != nil || !v.Valid {
		if err == nil {
			err = &BrokenError{c.id, v.BrokenAt, v.Reason}
		}
		return nil, err
	}
	versions := make([]*Record, len(c.all))
	for i := range c.all {
		versions[i] = c.all[i].Record
	}
	return l.begin(ctx, c.id, versions...)
}
