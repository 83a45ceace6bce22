package state

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// cellular is what every cell type implements.
type cellular interface{ about() about }

// about is what a cell type says of itself.
type about struct {
	kind      Kind
	key, elem reflect.Type
	merge     func(a, b *box, more []written) (*box, error)
}

func (v Value[T]) about() about { return about{kind: KindValue, elem: reflect.TypeFor[T]()} }
func (w Whole[T]) about() about { return about{kind: KindWhole, elem: reflect.TypeFor[T]()} }
func (l List[T]) about() about  { return about{kind: KindList, elem: reflect.TypeFor[T]()} }
func (s Set[T]) about() about   { return about{kind: KindSet, elem: reflect.TypeFor[T]()} }
func (s Sum[N]) about() about   { return about{kind: KindSum, elem: reflect.TypeFor[N]()} }

func (m Map[K, V]) about() about {
	return about{kind: KindMap, key: reflect.TypeFor[K](), elem: reflect.TypeFor[V]()}
}

func (f Fold[T]) about() about {
	return about{kind: KindFold, elem: reflect.TypeFor[T](), merge: mergeBoxes[T]}
}

// asCell returns what t says of itself, if it is a cell type. One of another package that
// implements it embeds a cell, or a pointer to one, which is nil.
func asCell(t reflect.Type) (about, bool) {
	if t.Kind() != reflect.Struct || !t.Implements(cellType) || t.PkgPath() != cellType.PkgPath() {
		return about{}, false
	}
	return reflect.Zero(t).Interface().(cellular).about(), true
}

// A cellWalk collects the cells of a state type and what is wrong with it.
type cellWalk struct {
	cells    []cell
	names    map[string]string // to the path of the field
	problems []error
}

func cellsOf(t reflect.Type) ([]cell, error) {
	w := &cellWalk{names: map[string]string{}}
	root := typeName(t)
	a, isCell := asCell(t)
	switch {
	case isCell && a.kind == KindWhole:
		w.add(a, "state", root, 0)
	case isCell:
		w.refuse("state: %s is a cell: make it a field of a struct", t)
	case t.Kind() == reflect.Struct:
		w.group(t, root, "", 0)
	case t.Kind() == reflect.Pointer && isState(t.Elem()):
		w.refuse("state: %s is no state: write %s, without the pointer", t, t.Elem())
	default:
		w.refuse("state: %s is no state: write a struct of cells, or state.Whole[%s]", t, t)
	}
	return w.cells, errors.Join(w.problems...)
}

// isState reports whether t is made to be a state, whatever is wrong with it.
func isState(t reflect.Type) bool {
	a, isCell := asCell(t)
	return isCell && a.kind == KindWhole || !isCell && t.Kind() == reflect.Struct && holdsCells(t)
}

func (w *cellWalk) refuse(format string, args ...any) {
	w.problems = append(w.problems, fmt.Errorf(format, args...))
}

// group collects the fields of a struct that stands at path and offset off; prefix begins
// the names of its cells.
func (w *cellWalk) group(t reflect.Type, path, prefix string, off uintptr) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := path + "." + f.Name
		tag, _ := f.Tag.Lookup("json")
		name, _ := tagName(tag)
		flat := f.Anonymous && name == "" // encoding/json takes its fields for those of the outer one
		name = cmp.Or(name, f.Name)
		a, isCell := asCell(f.Type)
		switch {
		case isCell && tag == "-":
			w.refuse(`state: %s has the tag json:"-": a cell needs a name`, at)
		case isCell && f.Anonymous:
			w.refuse("state: %s is embedded: give the cell a name", at)
		case isCell && !f.IsExported():
			w.refuse("state: %s is not exported: write %s", at, strings.ToUpper(f.Name[:1])+f.Name[1:])
		case isCell:
			w.add(a, prefix+name, at, off+f.Offset)
		case f.Type.Kind() == reflect.Struct && holdsCells(f.Type):
			if tag == "-" { // encoding/json would leave them out of the state
				w.refuse(`state: %s has the tag json:"-": its cells need a name`, at)
			} else if flat {
				w.group(f.Type, at, prefix, off+f.Offset)
			} else if !f.IsExported() {
				w.refuse("state: %s is not exported, so its cells can't be reached: write %s",
					at, strings.ToUpper(f.Name[:1])+f.Name[1:])
			} else {
				w.group(f.Type, at, prefix+name+".", off+f.Offset)
			}
		default:
			w.refuse("state: %s is %s: %s", at, indefinite(f.Type), advice(f.Type, at))
		}
	}
}

func (w *cellWalk) add(a about, name, path string, off uintptr) {
	if other, ok := w.names[name]; ok {
		w.refuse("state: %s and %s have the same name %q", other, path, name)
	}
	w.names[name] = path
	tw := typeWalk{}
	var elem Type
	if a.kind == KindSum { // which writes its numbers itself: a marshaller of their own has no say
		elem = Type{Kind: a.elem.Kind().String()}
	} else {
		elem = tw.walk(a.elem, path, true)
	}
	d := elem
	switch a.kind {
	case KindList, KindSet:
		d = Type{Kind: "list", Elem: &elem}
	case KindMap:
		key := tw.key(a.key, path, true)
		d = Type{Kind: "map", Key: &key, Elem: &elem}
	}
	w.problems = append(w.problems, tw.problems...)
	w.cells = append(w.cells, cell{
		CellInfo: CellInfo{Name: name, Kind: a.kind, Type: d}, off: off, merge: a.merge,
	})
}

// holdsCells reports whether a cell stands somewhere in the struct t.
func holdsCells(t reflect.Type) bool {
	for i := range t.NumField() {
		if isOrHoldsCells(t.Field(i).Type) {
			return true
		}
	}
	return false
}

func isOrHoldsCells(t reflect.Type) bool {
	_, ok := asCell(t)
	return ok || t.Kind() == reflect.Struct && holdsCells(t)
}

func indefinite(t reflect.Type) string {
	if strings.ContainsRune("aeiouAEIOU", rune(t.String()[0])) {
		return "an " + t.String()
	}
	return "a " + t.String()
}

// notData ends the advice on what is no value.
const notData = "a state holds data: give clients, loggers and locks to nodes by a method or a closure"

// advice says what to write instead of a field of type t, which stands at path.
func advice(t reflect.Type, path string) string {
	switch t.Kind() {
	case reflect.Pointer:
		if isOrHoldsCells(t.Elem()) {
			return "write " + t.Elem().String() + ", without the pointer"
		}
	case reflect.Slice, reflect.Array, reflect.Map:
		if isOrHoldsCells(t.Elem()) {
			return "cells stand in the state itself: write a List, Map or Set of plain values"
		}
	}
	switch t.Kind() {
	case reflect.Struct:
		n := t.NumField()
		if n > 0 && t.Field(n-1).Type.PkgPath() == cellType.PkgPath() || reflect.PointerTo(t).Implements(cellType) {
			return "write the type of the cell itself"
		}
	case reflect.Slice:
		if !isBytes(t) {
			return cellInstead(about{kind: KindList, elem: t.Elem()}, path, fmt.Sprintf("List[%s]", t.Elem()))
		}
	case reflect.Map:
		k, e := t.Key(), t.Elem()
		if e.Kind() == reflect.Bool || e.Kind() == reflect.Struct && e.NumField() == 0 {
			return cellInstead(about{kind: KindSet, elem: k}, path, fmt.Sprintf("Set[%s]", k))
		}
		return cellInstead(about{kind: KindMap, key: k, elem: e}, path, fmt.Sprintf("Map[%s, %s]", k, e))
	case reflect.Func, reflect.Chan, reflect.Interface, reflect.UnsafePointer, reflect.Uintptr,
		reflect.Complex64, reflect.Complex128:
		return "JSON can't bring it back, and " + notData
	}
	return cellInstead(about{kind: KindValue, elem: t}, path, fmt.Sprintf("Value[%s]", t))
}

// cellInstead is the advice to write a cell, or, if that would be refused, why.
func cellInstead(a about, path, cell string) string {
	w := cellWalk{names: map[string]string{}}
	if w.add(a, "", path, 0); len(w.problems) == 0 {
		return "write state." + cell
	}
	return strings.TrimPrefix(w.problems[0].Error(), "state: ") + "; " + notData
}
