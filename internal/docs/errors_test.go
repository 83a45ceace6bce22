package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every error that a program or its tests can meet is in docs/errors.md, and nothing else is.
func TestErrorsAreDocumented(t *testing.T) {
	declared := map[string]bool{}
	for _, dir := range publicPackages(t) {
		for _, name := range exportedErrors(t, dir) {
			declared[filepath.Base(dir)+"."+name] = true
		}
	}
	if len(declared) < 40 {
		t.Errorf("found only %d errors in the packages", len(declared))
	}
	documented := documentedErrors(t)
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if !documented[name] {
			t.Errorf("%s is not in docs/errors.md", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if !declared[name] {
			t.Errorf("docs/errors.md speaks of %s, which does not exist", name)
		}
	}
}

// publicPackages returns the directories of the packages that a program can import, from the root
// of the module.
func publicPackages(t *testing.T) []string {
	dirs := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root {
			_, own := os.Stat(filepath.Join(path, "go.mod"))
			if strings.HasPrefix(d.Name(), ".") || own == nil || slices.Contains([]string{"internal", "examples", "testdata"}, d.Name()) {
				return filepath.SkipDir
			}
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			dir, err := filepath.Rel(root, filepath.Dir(path))
			dirs[dir] = true
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(dirs))
}

var errorName = regexp.MustCompile("`([a-z]+\\.[A-Z][A-Za-z0-9]*)`")

// documentedErrors returns the errors that have a row, each of which says all there is to say.
func documentedErrors(t *testing.T) map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(read(t, "docs/errors.md")) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 4 {
			t.Errorf("%d cells, want 4: %s", len(cells), line)
		}
		for _, cell := range cells {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("an empty cell: %s", line)
			}
		}
		for _, m := range errorName.FindAllStringSubmatch(cells[0], -1) {
			if names[m[1]] {
				t.Errorf("%s has two rows", m[1])
			}
			names[m[1]] = true
		}
	}
	return names
}

// exportedErrors returns the exported variables named Err… of a package, and its exported
// types that have a method Error.
func exportedErrors(t *testing.T, dir string) []string {
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			names = append(names, errorsOf(decl)...)
		}
	}
	return names
}

func errorsOf(decl ast.Decl) []string {
	var names []string
	switch d := decl.(type) {
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for _, name := range v.Names {
				if d.Tok == token.VAR && strings.HasPrefix(name.Name, "Err") {
					names = append(names, name.Name)
				}
			}
		}
	case *ast.FuncDecl:
		if d.Recv == nil || d.Name.Name != "Error" || len(d.Type.Params.List) > 0 {
			break
		}
		of := d.Recv.List[0].Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		if name, ok := of.(*ast.Ident); ok && name.IsExported() {
			names = append(names, name.Name)
		}
	}
	return names
}

// root is the root of the module, from this package.
const root = "../.."

func read(t *testing.T, file string) string {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
