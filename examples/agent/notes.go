package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"unicode"

	"github.com/pawlgo/pawl/dag"
)

// A Notebook keeps notes in the files of a directory, one JSON object in a line. It knows the key
// of each note, so one that is written again is kept once.
type Notebook struct {
	dir string
	mu  sync.Mutex // a file is read and written by one at a time
}

// A note is one line of a file.
type note struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

func (n *Notebook) tool() Tool {
	return Tool{
		Name:  "note",
		About: "Writes a note into a file that people read.",
		Inputs: []Input{
			{"file", "the name of the file, such as alps.txt"},
			{"text", "what to write"},
		},
		Access:     dag.Writes,
		Confidence: 1,
		Use: func(_ context.Context, key string, inputs map[string]string) (string, error) {
			return n.write(inputs["file"], note{key, inputs["text"]})
		},
	}
}

const longestName = 200 // bytes: most systems take 255, and what is written has a longer name at first

// write adds a note to a file of the directory. The file is replaced as a whole: after a crash it
// has all of the note or nothing. A name that no file of notes can have is refused, so that the
// model chooses another.
func (n *Notebook) write(file string, add note) (string, error) {
	if len(file) > longestName || strings.ContainsAny(file, `/\`) || strings.HasPrefix(file, ".") ||
		strings.ContainsFunc(file, unicode.IsControl) {
		return "", refuse("%.*q is no name of a file in the notebook", longestName, file)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return "", err
	}
	// The name is a model's: a root lets no name, and no link, lead out of the directory.
	root, err := os.OpenRoot(n.dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if is, err := root.Lstat(file); err == nil && !is.Mode().IsRegular() {
		return "", refuse("%q is no file of notes", file)
	}
	old, err := root.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for line := range bytes.Lines(old) {
		var n note
		if json.Unmarshal(line, &n) == nil && n.Key == add.Key {
			return "noted in " + file, nil
		}
	}
	line, err := json.Marshal(add)
	if err != nil {
		return "", err
	}
	if len(old) > 0 && old[len(old)-1] != '\n' { // a person's last line
		old = append(old, '\n')
	}
	if err := replace(root, file, append(append(old, line...), '\n')); err != nil {
		return "", err
	}
	return "noted in " + file, nil
}

// replace makes text what a file has, at once, and durably: the log says behind it that the note
// was taken.
func replace(root *os.Root, file string, text []byte) error {
	next := "." + file + ".new"
	f, err := root.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := root.Rename(next, file); err != nil {
		return err
	}
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
