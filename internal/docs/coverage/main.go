// Command coverage writes docs/coverage.md: what pawl has of each of the systems that it was
// founded on, row by row, with the tests that prove it. Run it in the root of the module, by
//
//	go generate ./internal/docs
//
// after an edit of coverage.txt, whose text it copies, and whose rows it makes into tables. It
// writes nothing if a row names no test, or one that does not exist.
package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed coverage.txt
var source string

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes the page into the module whose root is given.
func write(root string) error {
	tests, err := testsOf(root)
	if err != nil {
		return err
	}
	text, err := page(source, tests)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "docs", "coverage.md"), []byte(text), 0o644)
}
