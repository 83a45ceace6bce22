package docs

import (
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"testing"
)

// sources returns the text of every Go file, by its path from the root, with slashes.
func sources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && apart(d.Name()):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		all[filepath.ToSlash(name)] = read(t, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 500 {
		t.Fatalf("only %d files were found", len(all))
	}
	return all
}

// apart reports whether a directory of this name holds no sources of the library.
func apart(dir string) bool {
	return strings.HasPrefix(dir, ".") || dir == "testdata" || dir == "node_modules"
}

// testSources returns those of test files.
func testSources(t *testing.T) map[string]string {
	t.Helper()
	all := sources(t)
	maps.DeleteFunc(all, func(name, _ string) bool { return !strings.HasSuffix(name, "_test.go") })
	return all
}
