package state

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Type describes a Go type as JSON sees it. Types with the same JSON take the same values. The
// zero Type, and a Type that describes no type, take none.
type Type struct {
	// Kind is bool, int, int8 to int64, uint, uint8 to uint64, float32, float64, string,
	// bytes (base64), list, array, map, object, pointer, own (a type with its own
	// marshaller) or ref (a type that contains itself).
	Kind string `json:"kind"`
	// own: import path and name; of a package main the path is main, and in its tests its import
	// path
	Name   string  `json:"name,omitempty"`
	Len    int     `json:"len,omitempty"`    // array
	Up     int     `json:"up,omitempty"`     // ref: how many types further out
	Key    *Type   `json:"key,omitempty"`    // map
	Elem   *Type   `json:"elem,omitempty"`   // list, array, map, pointer
	Fields []Field `json:"fields,omitempty"` // object, sorted by name
}

// A Field is a member of an object.
type Field struct {
	Name   string `json:"name"`
	Type   Type   `json:"type"`
	Quoted bool   `json:"quoted,omitempty"` // the value stands inside a JSON string
}

// String describes the type in one line, such as map[string][]{title: string, year: int}.
func (t Type) String() string {
	var b strings.Builder
	t.write(&b)
	return b.String()
}

func (t *Type) write(b *strings.Builder) {
	if t == nil {
		b.WriteString("?")
		return
	}
	switch t.Kind {
	case "list":
		b.WriteString("[]")
		t.Elem.write(b)
	case "array":
		fmt.Fprintf(b, "[%d]", t.Len)
		t.Elem.write(b)
	case "map":
		b.WriteString("map[")
		t.Key.write(b)
		b.WriteString("]")
		t.Elem.write(b)
	case "pointer":
		b.WriteString("*")
		t.Elem.write(b)
	case "object":
		b.WriteString("{")
		for i := range t.Fields {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(t.Fields[i].Name + ": ")
			t.Fields[i].Type.write(b)
		}
		b.WriteString("}")
	case "own":
		b.WriteString(t.Name)
	case "ref":
		b.WriteString(strings.Repeat("^", t.Up))
	default:
		b.WriteString(t.Kind)
	}
}

var (
	errType  = errors.New("no description of a type")
	wordSize = map[string]int{
		"int": 64, "int8": 8, "int16": 16, "int32": 32, "int64": 64,
		"uint": 64, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64,
		"float32": 32, "float64": 64, "bool": 1, "string": 1, "bytes": 1,
	}
)

// valid refuses what describes no type. So many types are around t, of which the innermost are
// pointers, as many as that: a value of one that comes back to itself through these alone is in no
// JSON, and looking for one would not end.
func (t *Type) valid(depth, pointers int) bool {
	if t == nil {
		return false
	}
	switch t.Kind {
	case "pointer":
		return t.Elem.valid(depth+1, pointers+1)
	case "list":
		return t.Elem.valid(depth+1, 0)
	case "array":
		return t.Len >= 0 && t.Elem.valid(depth+1, 0)
	case "map":
		return t.Key != nil && t.Key.isKey() && t.Elem.valid(depth+1, 0)
	case "object":
		return !slices.ContainsFunc(t.Fields, func(f Field) bool { return !f.Type.valid(depth+1, 0) })
	case "own":
		return t.Name != ""
	case "ref":
		return t.Up > pointers && t.Up <= depth
	}
	return wordSize[t.Kind] > 0
}

func (t *Type) isKey() bool {
	return t.Kind == "string" || t.Kind == "own" && t.Name != "" ||
		wordSize[t.Kind] > 0 && (strings.HasPrefix(t.Kind, "int") || strings.HasPrefix(t.Kind, "uint"))
}
