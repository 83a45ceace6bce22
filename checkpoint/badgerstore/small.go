package badgerstore

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// readSmall reads a file of the store's own, which has at most that many bytes. A link is followed.
// What is no regular file or is larger, so that reading it might block, never end or take all
// memory, is an *oddFileError at once.
func readSmall(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if kind := oddKind(info.Mode()); kind != "" {
		return nil, &oddFileError{"is " + kind}
	}
	large := &oddFileError{fmt.Sprintf("has more than %d bytes", most)}
	if info.Size() > most {
		return nil, large
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, most+1)) // it may grow meanwhile
	if err == nil && int64(len(b)) > most {
		return nil, large
	}
	return b, err
}

// oddKind says what a file is that is no regular one.
func oddKind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return "a directory"
	}
	return "a device, a pipe or a socket"
}

// An oddFileError says what a file is that readSmall does not read.
type oddFileError struct{ reason string }

func (e *oddFileError) Error() string { return "it " + e.reason }
