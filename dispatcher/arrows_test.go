package dispatcher_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
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
	byHand = "internal/byhand"
	misuse = "internal/misuse"
)

// arrows says which packages each package of the library may depend on, directly or by way
// of others, beside the standard library. What a node calls is in dag and state, so node
// code needs nothing else.
var arrows = map[string][]string{
	"state":                     nil,
	"dag":                       {"state"},
	"dag/dagtest":               {"dag", "state"},
	"checkpoint":                {"state"},
	"checkpoint/internal/watch": nil,
	byHand:                      nil, // by checkpoint, and so by all that may depend on that
	misuse:                      nil, // as well
	"internal/docs":             nil, // tests only
	"internal/docs/coverage":    nil,
	"internal/lacking":          nil,                                                                       // imported by tests only
	"internal/lapse":            {"checkpoint", "checkpoint/internal/watch", "checkpoint/memory", "state"}, // imported by tests only
	"internal/victim":           {"checkpoint", "checkpoint/badgerstore", "checkpoint/internal/watch", "dag", "dispatcher", "state", "…"},
	"checkpoint/memory":         {"checkpoint", "checkpoint/internal/watch", "state"},
	"checkpoint/storetest":      {"checkpoint", "state", "github.com/anishathalye/porcupine"},
	"checkpoint/badgerstore":    {"checkpoint", "checkpoint/internal/watch", "state", "…"},
	"dispatcher":                {"checkpoint", "dag", "state", "github.com/google/uuid", "golang.org/x/sync/"},
	"pawltest":                  {"checkpoint", "checkpoint/internal/watch", "checkpoint/memory", "dag", "dispatcher", "state", "…"},
	"record": {"checkpoint", "dag", "dispatcher", "state", "github.com/google/uuid", "golang.org/x/sync/", "github.com/gowebpki/jcs",
		"github.com/transparency-dev/merkle", "github.com/transparency-dev/merkle/"},
	"supervisor":   {"checkpoint", "dag", "dispatcher", "state", "github.com/google/uuid", "golang.org/x/sync/"},
	"milestone":    {"checkpoint", "dag", "dispatcher", "state", "…"},
	"continuation": {"checkpoint", "dag", "dispatcher", "state", "github.com/google/uuid", "golang.org/x/sync/"},
	"metrics":      {"checkpoint", "dag", "dispatcher", "state", "supervisor", "…"},
	"examples/payments": {"checkpoint", "checkpoint/badgerstore", "checkpoint/internal/watch", "dag", "dispatcher",
		"examples/payments/bank", "state", "…"},
	"examples/payments/bank":  nil,
	"examples/handover":       nil, // tests only
	"examples/handover/clerk": nil,
	"examples/handover/scout": {"checkpoint", "checkpoint/badgerstore", "checkpoint/internal/watch", "dag", "dispatcher", "record", "state", "…"},
	"examples/approval": {"checkpoint", "checkpoint/badgerstore", "checkpoint/internal/watch", "continuation", "dag", "dispatcher",
		"state", "…"},
}

// onlyImporters names, of a module that one package is to hide, that package. A program
// has a registry of its own, and imports what it serves it with.
var onlyImporters = map[string]struct {
	pkg      string
	programs bool // may import it as well
}{
	"github.com/dgraph-io/badger":         {"checkpoint/badgerstore", false},
	"github.com/klauspost/compress":       {"checkpoint/badgerstore", false},
	"github.com/prometheus/client_golang": {"metrics", true},
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
		if name == "checkpoint" || slices.Contains(may, "checkpoint") {
			may = append(slices.Clip(may), byHand, misuse)
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
				program := by.programs && s.file.Name.Name == "main"
				if strings.HasPrefix(path, hidden) && s.pkg() != by.pkg && !program {
					t.Errorf("%s imports %s, which %s alone may", s.path, path, by.pkg)
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
		"github.com/anishathalye/porcupine", "github.com/dgraph-io/badger/v4", "github.com/google/uuid", "github.com/gowebpki/jcs",
		"github.com/klauspost/compress", "github.com/prometheus/client_golang", "github.com/santhosh-tekuri/jsonschema/v6",
		"github.com/transparency-dev/merkle", "golang.org/x/sync",
	}
	if slices.Sort(direct); !slices.Equal(direct, want) {
		t.Errorf("the module requires %q, want %q", direct, want)
	}
}
