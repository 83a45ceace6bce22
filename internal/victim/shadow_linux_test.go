package main

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// A shadow follows a directory: what is in it, and what of that was synced.
type shadow struct {
	root  string
	names map[string]*inode // by path below the root, which is "."
}

// An inode is a file or a directory, whatever its name.
type inode struct {
	number uint64
	now    *content          // of a file
	synced *content          // of a file, when it was synced last, or nil
	names  map[string]*inode // of a directory: those that were synced; nil for a file
}

func newShadow(root string) *shadow { return &shadow{root: root} }

// look takes in what is there.
func (s *shadow) look() error {
	known := make(map[uint64]*inode)
	for _, node := range s.names {
		known[node.number] = node
	}
	s.names = make(map[string]*inode)
	return filepath.WalkDir(s.root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		number := info.Sys().(*syscall.Stat_t).Ino
		node := known[number]
		if node == nil {
			if node = (&inode{number: number}); info.IsDir() {
				node.names = make(map[string]*inode)
			}
		}
		s.names[s.name(path)] = node
		if !info.IsDir() {
			node.now, err = read(path, node.now)
		}
		return err
	})
}

// name is the path below the root.
func (s *shadow) name(path string) string {
	name, err := filepath.Rel(s.root, path)
	if err != nil {
		return path
	}
	return name
}

// has tells whether a path is the root or below it.
func (s *shadow) has(path string) bool {
	return path == s.root || strings.HasPrefix(path, s.root+string(filepath.Separator))
}

// sync takes notice that a file was synced, and with it its name, or all names in a directory, as
// they were seen last. That a file is synced with its name is more than POSIX asks of a file system
// and no more than ext4, xfs and btrfs do; Badger counts on it, for it does not sync the directory
// of a table before its manifest names it.
func (s *shadow) sync(path string) {
	name := s.name(path)
	node := s.names[name]
	switch {
	case node == nil: // it is removed already
	case node.names == nil:
		node.synced = node.now
		in := s.names[filepath.Dir(name)]
		maps.DeleteFunc(in.names, func(_ string, of *inode) bool { return of == node }) // it was renamed
		in.names[filepath.Base(name)] = node
	default:
		node.names = make(map[string]*inode)
		for child, of := range s.names {
			if child != "." && filepath.Dir(child) == name {
				node.names[filepath.Base(child)] = of
			}
		}
	}
}

// within tells whether a file that was seen has at most so many bytes.
func (s *shadow) within(path string, size int64) bool {
	node := s.names[s.name(path)]
	return node == nil || node.now.size <= size
}

// outline tells the names and sizes that are there now.
func (s *shadow) outline() (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(s.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && e.IsDir() {
			_, err = fmt.Fprintln(&b, s.name(path))
		} else if err == nil {
			_, err = fmt.Fprintln(&b, s.name(path), info.Size())
		}
		return err
	})
	return b.String(), err
}

// A tree is a directory as it is, was or could be: files by their path, nil for a directory.
type tree map[string]*content

// asItIs is what a process finds that follows one that was killed.
func (s *shadow) asItIs() tree {
	t := make(tree)
	for name, node := range s.names {
		t[name] = node.now
	}
	return t
}

// synced is what is there after a power cut at which only contents are lost that nobody had synced.
func (s *shadow) synced() tree {
	t := make(tree)
	for name, node := range s.names {
		t[name] = node.kept()
	}
	return t
}

// strictlySynced is what is there after a power cut at which names, too, are what they were when
// the file or its directory was synced: a file that nobody synced is gone, one that was removed is
// there again.
func (s *shadow) strictlySynced() tree {
	t := make(tree)
	t.add(".", s.names["."])
	return t
}

func (t tree) add(name string, node *inode) {
	t[name] = node.kept()
	for child, of := range node.names {
		t.add(filepath.Join(name, child), of)
	}
}

// kept is what is left of a file that was synced when it was, or never.
func (n *inode) kept() *content {
	if n.names == nil && n.synced == nil {
		return &content{}
	}
	return n.synced
}

// sum tells trees apart.
func (t tree) sum() [sha256.Size]byte {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(t)) {
		_, _ = fmt.Fprintf(h, "%q %x\n", name, t[name].sum())
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// restore writes the tree to a directory.
func (t tree) restore(dir string) error {
	for _, name := range slices.Sorted(maps.Keys(t)) { // a directory comes before what is in it
		path := filepath.Join(dir, name)
		if t[name] == nil {
			if err := os.MkdirAll(path, 0o700); err != nil {
				return err
			}
			continue
		}
		if err := t[name].write(path); err != nil {
			return err
		}
	}
	return nil
}

// A content is what is in a file. It is not changed; what two have in common they share.
type content struct {
	size   int64
	blocks map[int64]string // by offset; where there is none, there are zeros
	digest []byte
}

const block = 16 << 10

// read reads a file, of which something was read before.
func read(path string, before *content) (*content, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if before == nil {
		before = &content{}
	}
	c := &content{size: info.Size(), blocks: make(map[int64]string)}
	same := c.size == before.size
	zeros, b := string(make([]byte, block)), make([]byte, block)
	for at := int64(0); ; at += block {
		const seekData = 3
		at, err = f.Seek(at, seekData)
		if errors.Is(err, syscall.ENXIO) {
			break
		}
		if err != nil {
			return nil, err
		}
		at -= at % block
		n, err := f.ReadAt(b, at)
		if err != nil && err != io.EOF {
			return nil, err
		}
		switch was := before.blocks[at]; {
		case was == string(b[:n]):
			c.blocks[at] = was
		case zeros[:n] != string(b[:n]):
			c.blocks[at], same = string(b[:n]), false
		}
	}
	if same && len(c.blocks) == len(before.blocks) {
		return before, nil
	}
	return c, nil
}

func (c *content) write(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	errs := []error{f.Truncate(c.size)}
	for at, b := range c.blocks {
		_, err := f.WriteAt([]byte(b), at)
		errs = append(errs, err)
	}
	return errors.Join(append(errs, f.Close())...)
}

// sum tells contents apart. That of a directory is nil.
func (c *content) sum() []byte {
	if c == nil {
		return nil
	}
	if c.digest == nil {
		h := sha256.New()
		_ = binary.Write(h, binary.BigEndian, c.size)
		for _, at := range slices.Sorted(maps.Keys(c.blocks)) {
			_ = binary.Write(h, binary.BigEndian, at)
			_, _ = io.WriteString(h, c.blocks[at])
		}
		c.digest = h.Sum(nil)
	}
	return c.digest
}
