package storetest

import (
	"embed"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"reflect"
	"runtime"
	"strings"
)

// source is this package, whose comments are the rules: who breaks one is to read it where the
// test fails, and nobody has to write it twice.
//
//go:embed *.go
var source embed.FS

// text returns the comment of the function that checks the rule, and the place to read on.
func (r rule) text() string {
	name := runtime.FuncForPC(reflect.ValueOf(r.check).Pointer()).Name()
	name = name[strings.LastIndexByte(name, '.')+1:]
	doc := documentation(name)
	return strings.Join(strings.Fields(doc), " ") + " (storetest." + name + ")"
}

// documentation returns the comment of a function of this package, "" if it has none.
func documentation(function string) string {
	files, err := fs.Glob(source, "*.go")
	if err != nil {
		return ""
	}
	for _, name := range files {
		text, err := source.ReadFile(name)
		if err != nil {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			continue
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == function {
				return f.Doc.Text()
			}
		}
	}
	return ""
}
