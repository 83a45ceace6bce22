package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// tests are all tests of the repository: by name, and by directory and name, the files that
// declare them, from the root and with slashes.
type tests map[string][]string

// A benchmark proves nothing, and an example may lack the output that would.
var testBegins = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(\w+ \*testing\.[TF]\)`)

// testsOf finds the tests below root.
func testsOf(root string) (tests, error) {
	all := tests{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		file := filepath.ToSlash(rel)
		for _, m := range testBegins.FindAllSubmatch(text, -1) {
			test := string(m[1])
			all[test] = append(all[test], file)
			if dir := path.Dir(file); dir != "." {
				all[dir+"."+test] = append(all[dir+"."+test], file)
			}
		}
		return nil
	})
	return all, err
}

// file returns the file of the only test that has the name.
func (t tests) file(name string) (string, error) {
	switch files := t[name]; len(files) {
	case 0:
		return "", fmt.Errorf("there is no test %s", name)
	case 1:
		return files[0], nil
	default:
		var names []string
		for _, file := range files {
			names = append(names, path.Dir(file)+"."+name)
		}
		slices.Sort(names)
		return "", fmt.Errorf("%s may be any of %s: name the one that is meant", name, strings.Join(names, ", "))
	}
}
