package dispatcher_test

import (
	"cmp"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// plainMethods are those whose meaning the standard library gives.
var plainMethods = []string{"Error", "Unwrap", "Is", "As", "String", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText"}

// Every exported name says what it is: packages, types, functions, methods, values, and the
// methods of interfaces. Fields and constants may share the comment of their group.
func TestArrowsToTheReader(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t, false) {
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
