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
	"sync"
)

// source is this package, whose comments are the rules: who breaks one is to read it where the
// test fails, and nobody has to write it twice.
//
//go:embed *.go
var source embed.FS

// text returns the comment of the function that checks the rule, and the function's name.
func (r rule) text() string {
	name := r.function()
	return strings.Join(strings.Fields(comments()[name]), " ") + " (storetest." + name + ")"
}

// function is the name of the function that checks the rule.
func (r rule) function() string {
	name := runtime.FuncForPC(reflect.ValueOf(r.check).Pointer()).Name()
	return name[strings.LastIndexByte(name, '.')+1:]
}

// comments returns the comments of the functions of this package, by name. What can't be read has
// none: a rule that is broken is told of without them too.
var comments = sync.OnceValue(func() map[string]string {
	all := make(map[string]string)
	files, _ := fs.Glob(source, "*.go")
	for _, name := range files {
		text, _ := source.ReadFile(name)
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			continue
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				all[f.Name.Name] = f.Doc.Text()
			}
		}
	}
	return all
})
