package dispatcher_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = ".."
	module = "github.com/pawlgo/pawl"
)

// arrows says which packages each package of the library may depend on, directly or by way
// of others, beside the standard library. What a node calls is in dag and state, so node
// code needs nothing else.
var arrows = map[string][]string{
	"state":                     nil,
	"dag":                       {"state"},
	"checkpoint":                {"state"},
	"checkpoint/internal/watch": nil,
	"internal/docs":             nil, // tests only
	"checkpoint/memory":         {"checkpoint", "checkpoint/internal/watch", "state"},
	"checkpoint/storetest":      {"checkpoint", "state"},
	"checkpoint/badgerstore":    {"checkpoint", "checkpoint/internal/watch", "state", "…"},
	"dispatcher":                {"checkpoint", "dag", "state", "github.com/google/uuid", "golang.org/x/sync/"},
	"metrics":                   {"checkpoint", "dag", "dispatcher", "state", "…"},
}

// onlyImporters names, of a module that one package is to hide, that package.
var onlyImporters = map[string]string{
	"github.com/dgraph-io/badger":         "checkpoint/badgerstore",
	"github.com/prometheus/client_golang": "metrics",
}

// A source is one Go file of the repository that is not a test.
type source struct {
	path string // from the root, with slashes
	file *ast.File
	set  *token.FileSet
}

// sources parses the files of the root module, or of all modules that belong to the
// workspace. Benchmarks and tools are apart from both.
func sources(t *testing.T, everywhere bool) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			switch {
			case rel == ".":
				return nil
			case strings.HasPrefix(d.Name(), "."), d.Name() == "testdata", rel == "bench", rel == "tools":
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && !everywhere {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		all = append(all, source{rel, file, set})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (s source) pkg() string {
	dir := strings.TrimSuffix(s.path, filepath.Base(s.path))
	return strings.TrimSuffix(dir, "/")
}

// at says where a node of the syntax stands.
func (s source) at(n ast.Node) string {
	return s.path + ":" + strconv.Itoa(s.set.Position(n.Pos()).Line)
}

func (s source) imports(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, i := range s.file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// goTool runs the go command in the root module alone.
func goTool(t *testing.T, args ...string) []byte {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir = root
	c.Env = append(os.Environ(), "GOWORK=off")
	out, err := c.Output()
	if err != nil {
		var stderr []byte
		if e, ok := err.(*exec.ExitError); ok {
			stderr = e.Stderr
		}
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return out
}

func TestArrowsBetweenPackages(t *testing.T) {
	type list struct {
		ImportPath string
		Deps       []string
		Standard   bool
	}
	known := map[string]list{}
	for d := json.NewDecoder(bytes.NewReader(goTool(t, "list", "-deps", "-json=ImportPath,Deps,Standard", "./..."))); d.More(); {
		var p list
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		known[p.ImportPath] = p
	}
	for path, p := range known {
		name, ours := strings.CutPrefix(path, module+"/")
		if !ours {
			continue
		}
		may, listed := arrows[name]
		if !listed {
			t.Errorf("package %s has no arrows: is it to be in the table of the design?", name)
			continue
		}
		for _, dep := range p.Deps {
			if !known[dep].Standard && !allowed(strings.TrimPrefix(dep, module+"/"), may) {
				t.Errorf("%s depends on %s", name, dep)
			}
		}
	}
	for name := range arrows {
		if _, ok := known[module+"/"+name]; !ok {
			t.Errorf("package %s is in the table and not in the module", name)
		}
	}
}

// allowed reports whether may, a list of packages, of modules ending in a slash, and of "…"
// for whatever others bring along, holds dep.
func allowed(dep string, may []string) bool {
	foreign := strings.Contains(strings.Split(dep, "/")[0], ".")
	return slices.ContainsFunc(may, func(m string) bool {
		return m == dep || m == "…" && foreign || strings.HasSuffix(m, "/") && strings.HasPrefix(dep, m)
	})
}

func TestArrowsToHiddenModules(t *testing.T) {
	for _, s := range sources(t, true) {
		for _, path := range s.imports(t) {
			for hidden, by := range onlyImporters {
				if strings.HasPrefix(path, hidden) && s.pkg() != by {
					t.Errorf("%s imports %s, which %s alone may", s.path, path, by)
				}
			}
		}
	}
}

func TestArrowsOfTheModule(t *testing.T) {
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(goTool(t, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	var direct []string
	for _, r := range mod.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}
	want := []string{
		"github.com/dgraph-io/badger/v4", "github.com/google/uuid",
		"github.com/prometheus/client_golang", "golang.org/x/sync",
	}
	if slices.Sort(direct); !slices.Equal(direct, want) {
		t.Errorf("the module requires %q, want %q", direct, want)
	}
}

// machineImports is all that the rules of execution may use.
var machineImports = []string{
	module + "/checkpoint", module + "/dag", module + "/state",
	"encoding/json", "fmt", "maps", "slices", "strconv", "strings", "time",
}

// machineTime is what of package time they may use: types and constants, never the clock.
var machineTime = []string{"Duration", "Time", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}

// The machine is pure: no goroutine, channel, lock, clock or disk, and no type parameter.
func TestArrowsOfTheMachine(t *testing.T) {
	seen := 0
	for _, s := range sources(t, false) {
		name := filepath.Base(s.path)
		if s.pkg() != "dispatcher" || name != "frame.go" && !strings.HasPrefix(name, "machine") {
			continue
		}
		seen++
		for _, path := range s.imports(t) {
			if !slices.Contains(machineImports, path) {
				t.Errorf("%s imports %s", s.path, path)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if what := s.impure(n); what != "" {
				t.Errorf("%s: %s", s.at(n), what)
			}
			return true
		})
	}
	if seen < 4 {
		t.Errorf("only %d files of the machine were found", seen)
	}
}

// impure says what is not pure about a node of the syntax, "" if nothing is.
func (s source) impure(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a go statement"
	case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
		return "a channel"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "a receive from a channel"
		}
	case *ast.FuncType:
		if n.TypeParams != nil {
			return "type parameters"
		}
	case *ast.TypeSpec:
		if n.TypeParams != nil {
			return "type parameters"
		}
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && !slices.Contains(machineTime, n.Sel.Name) {
			return "time." + n.Sel.Name
		}
	}
	return ""
}

// goStatements is how many go statements each file has. A new one is a decision: who waits
// for it, and what ends it, is written beside it.
var goStatements = map[string]int{
	"checkpoint/badgerstore/open.go": 1, // the committer
	"dispatcher/journal.go":          1, // the reader of posts
	"dispatcher/tenure.go":           3, // the owner, and who follows it
	"dispatcher/visit.go":            1, // a body beside others
}

func TestArrowsOfGoroutines(t *testing.T) {
	found := map[string]int{}
	for _, s := range sources(t, false) {
		commented := map[int]bool{} // lines that hold a comment, or end one
		for _, c := range s.file.Comments {
			for line := s.set.Position(c.Pos()).Line; line <= s.set.Position(c.End()).Line; line++ {
				commented[line] = true
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); !ok {
				return true
			}
			found[s.path]++
			if line := s.set.Position(n.Pos()).Line; !commented[line] && !commented[line-1] {
				t.Errorf("%s: a go statement without a comment that says who waits for it", s.at(n))
			}
			return true
		})
	}
	if !maps.Equal(found, goStatements) {
		t.Errorf("go statements by file: %v, want %v", found, goStatements)
	}
}

// plainMethods are those whose meaning the standard library gives.
var plainMethods = []string{"Error", "Unwrap", "Is", "As", "String", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText"}

// Every exported name says what it is: packages, types, functions, methods, values, and the
// methods of interfaces. Fields and constants may share the comment of their group.
func TestArrowsToTheReader(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t, true) {
		if s.file.Doc.Text() != "" {
			documented[s.pkg()] = true
		} else if !documented[s.pkg()] {
			documented[s.pkg()] = false
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Doc.Text() == "" && d.Name.IsExported() && !slices.Contains(plainMethods, d.Name.Name) && exportedReceiver(d) {
					t.Errorf("%s: func %s is not documented", s.at(d), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, name := range undocumented(d) {
					t.Errorf("%s: %s is not documented", s.at(name), name.Name)
				}
			}
		}
	}
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("package %s is not documented", cmp.Or(pkg, module))
		}
	}
}

// exportedReceiver reports whether a function is no method, or one of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// undocumented lists the exported names of a declaration that nothing is said of.
func undocumented(d *ast.GenDecl) []*ast.Ident {
	var names []*ast.Ident
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			doc := d.Doc.Text() + spec.Doc.Text() + spec.Comment.Text()
			if spec.Name.IsExported() && doc == "" {
				names = append(names, spec.Name)
			}
			if i, ok := spec.Type.(*ast.InterfaceType); ok && spec.Name.IsExported() {
				names = append(names, silent(i, doc)...)
			}
		case *ast.ValueSpec:
			if d.Doc.Text()+spec.Doc.Text()+spec.Comment.Text() != "" {
				continue
			}
			for _, name := range spec.Names {
				if name.IsExported() {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// silent lists the methods of an interface that nothing is said of, by themselves or by
// what stands above and names them: the comment of another method, or of the interface.
func silent(i *ast.InterfaceType, above string) []*ast.Ident {
	var names []*ast.Ident
	for _, m := range i.Methods.List {
		if text := m.Doc.Text() + m.Comment.Text(); text != "" {
			above = text
			continue
		}
		for _, name := range m.Names {
			if name.IsExported() && !strings.Contains(above, name.Name) {
				names = append(names, name)
			}
		}
	}
	return names
}
