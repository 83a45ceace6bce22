package dispatcher_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/dispatcher"
)

// The name of a checkpoint may say what the run says, as those of milestones do: of a store that is
// encrypted nobody reads it in the files. It is posted under an id, and these are in the clear.
func TestTagsAreSealed(t *testing.T) {
	const name = "told-the-diagnosis-to-nobody"
	key, err := checkpoint.NewKey("k", bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := checkpoint.NewKeyring(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s, err := badgerstore.Open(t.Context(), dir, badgerstore.Options{Cipher: keys})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := timeLine(t, s, dispatcher.Options{})
	if err := d.Tag(t.Context(), run, "", name); err != nil {
		t.Fatal(err)
	}
	readable(t, dir, name)
	var taken *dispatcher.TagError
	if err := d.Tag(t.Context(), run, "2", name); !errors.As(err, &taken) {
		t.Errorf("giving the name to another checkpoint returned %v", err)
	}
	if _, err := d.At(t.Context(), run, "tag:"+name); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	readable(t, dir, name)
}

// readable fails the test for each file under dir that holds text.
func readable(t *testing.T, dir, text string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			t.Errorf("%s says %q", filepath.Base(path), text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
