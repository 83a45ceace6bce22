package state

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// TypeOf describes A, or says, naming the path to each field at fault, why JSON can't bring it
// back. What it returns shares its parts with what other calls return: they are to be read alone.
func TypeOf[A any]() (Type, error) {
	t := reflect.TypeFor[A]()
	if t.PkgPath() == "" && wordSize[t.Kind().String()] > 0 { // bool, int, string: nothing to be found out
		return Type{Kind: t.Kind().String()}, nil
	}
	if d, ok := described.Load(t); ok {
		d := d.(*description)
		return d.Type, d.err
	}
	w := typeWalk{}
	d := &description{Type: w.walk(t, typeName(t), true)}
	if d.err = errors.Join(w.problems...); d.err != nil {
		d.Type = Type{} // what there is of it may be large
	}
	described.Store(t, d)
	return d.Type, d.err
}

// A description is what TypeOf returns.
type description struct {
	Type
	err error
}

var described sync.Map // of reflect.Type to *description

func typeName(t reflect.Type) string {
	if t == reflect.TypeFor[any]() {
		return "any"
	}
	if t.Name() == "" {
		return t.String()
	}
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

var (
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonNumber      = reflect.TypeFor[json.Number]()
	rawMessage      = reflect.TypeFor[json.RawMessage]()
	cellType        = reflect.TypeFor[cellular]()
)

// A typeWalk describes types and collects what is wrong with them.
type typeWalk struct {
	around   []opened // the types that are open, outermost first
	passed   int      // types so far, each as often as there are ways to it
	problems []error
}

// maxPassed is how many types a walk passes. The description of as many takes megabytes, in the log
// too; of ten types that all point to each other there would be ten million.
const maxPassed = 1 << 18

// opened is a type that a walk is inside of.
type opened struct {
	t           reflect.Type
	addressable bool
}

func (w *typeWalk) refuse(path, format string, args ...any) Type {
	w.problems = append(w.problems, fmt.Errorf("state: %s %s", path, fmt.Sprintf(format, args...)))
	return Type{}
}

// walk describes t, which stands at path. addressable says whether encoding/json will
// find marshallers with pointer receivers there.
func (w *typeWalk) walk(t reflect.Type, path string, addressable bool) Type {
	if v, ok := thawed(t); ok {
		return w.walk(v, path, true)
	}
	if w.passed++; w.passed > maxPassed {
		if w.passed == maxPassed+1 {
			w.refuse(path, "is part of a %s, which is too large to be described: its types contain each other in too many ways", w.around[0].t)
		}
		return Type{}
	}
	i := slices.IndexFunc(w.around, func(o opened) bool { return o.t == t })
	ref := Type{Kind: "ref", Up: len(w.around) - i}
	if i >= 0 && !slices.ContainsFunc(w.around[i:], func(o opened) bool { return o.t.Kind() != reflect.Pointer }) {
		return w.refuse(path, "is a %s, which points to nothing but itself", t)
	}
	if i >= 0 && (addressable || slices.Contains(w.around, opened{t, addressable})) {
		return ref
	}
	w.around = append(w.around, opened{t, addressable})
	defer func() { w.around = w.around[:len(w.around)-1] }()
	if i >= 0 { // once more, for what is wrong where it is not addressable
		w.walkKind(t, path, addressable)
		return ref
	}
	if t.Implements(cellType) || reflect.PointerTo(t).Implements(cellType) {
		return w.refuse(path, "is a cell: cells stand in the state itself, not in values")
	}
	if own, err := ownJSON(t, addressable); err != nil {
		return w.refuse(path, "is a %s, %v", t, err)
	} else if own {
		return Type{Kind: "own", Name: ownName(t)}
	}
	return w.walkKind(t, path, addressable)
}

// ownName names t by its import path; a struct without a name, which has the marshaller of its
// field, by what it is made of.
func ownName(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return "*" + ownName(t.Elem())
	case t.Name() == "":
		return t.String()
	}
	return t.PkgPath() + "." + t.Name()
}

func (w *typeWalk) walkKind(t reflect.Type, path string, addressable bool) Type {
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return Type{Kind: t.Kind().String()}
	case reflect.Pointer:
		return Type{Kind: "pointer", Elem: w.elem(t, path, true)}
	case reflect.Slice:
		if isBytes(t) {
			return Type{Kind: "bytes"}
		}
		return Type{Kind: "list", Elem: w.elem(t, path+"[]", true)}
	case reflect.Array:
		return Type{Kind: "array", Len: t.Len(), Elem: w.elem(t, path+"[]", addressable)}
	case reflect.Map:
		key := w.key(t.Key(), path, false)
		return Type{Kind: "map", Key: &key, Elem: w.elem(t, path+"[]", false)}
	case reflect.Struct:
		return w.object(t, path, addressable)
	case reflect.Interface:
		return w.refuse(path, "is an interface, which JSON can't bring back: name a concrete type, or json.RawMessage")
	}
	if path == t.String() { // it is the whole
		return w.refuse(path, "is nothing that JSON can bring back")
	}
	return w.refuse(path, "is a %s, which JSON can't bring back", t)
}

func (w *typeWalk) elem(t reflect.Type, path string, addressable bool) *Type {
	d := w.part(t.Elem(), t, path, addressable)
	return &d
}

// part describes a t that stands in an around. There encoding/json looks for the unmarshallers of
// what has a name, and behind pointers that have none.
func (w *typeWalk) part(t, around reflect.Type, path string, addressable bool) Type {
	d := w.walk(t, path, addressable)
	p := reflect.PointerTo(t)
	switch pointer := around.Kind() == reflect.Pointer; {
	case d.Kind == "" || !p.Implements(jsonUnmarshaler) && !p.Implements(textUnmarshaler):
	case pointer && around.Name() != "":
		return w.refuse(path, "is a %s, behind which encoding/json does not call the unmarshaller: write *%s", around, t)
	case !pointer && t.Name() == "":
		return w.refuse(path, "is a %s, whose unmarshaller encoding/json does not call there: give the struct a name", t)
	}
	return d
}

// isBytes reports whether encoding/json writes t as base64.
func isBytes(t reflect.Type) bool {
	p := reflect.PointerTo(t.Elem())
	return t.Elem().Kind() == reflect.Uint8 && !p.Implements(jsonMarshaler) && !p.Implements(textMarshaler)
}

// ownJSON reports whether t marshals itself, and refuses what does only half of it.
func ownJSON(t reflect.Type, addressable bool) (bool, error) {
	if t == jsonNumber {
		return true, nil
	}
	p := t
	if t.Kind() != reflect.Pointer {
		p = reflect.PointerTo(t)
	} else if t.Elem().Kind() != reflect.Interface {
		return false, nil // what it points to marshals itself
	}
	if t.Kind() == reflect.Interface {
		return false, nil
	}
	marshaler, name := jsonMarshaler, "JSON"
	from, to := p.Implements(jsonMarshaler), p.Implements(jsonUnmarshaler)
	if !from && !to {
		marshaler, name = textMarshaler, "Text"
		from, to = p.Implements(textMarshaler), p.Implements(textUnmarshaler)
	}
	switch {
	case !from && !to:
		return false, nil
	case !to:
		return false, errors.New("which has a marshaller without the unmarshaller that belongs to it")
	case !from:
		return false, errors.New("which has an unmarshaller without the marshaller that belongs to it")
	case !addressable && !t.Implements(marshaler):
		return false, errors.New("whose marshaller has a pointer receiver, which encoding/json " +
			"does not call for the values of a map")
	}
	return true, cmp.Or(covers(t, "Marshal"+name), covers(t, "Unmarshal"+name))
}

// covers refuses t, or a struct that it embeds, if its method is that of an embedded field that is
// not all there is, or that nobody has made when a value is read.
func covers(t reflect.Type, method string) error {
	if t.Kind() != reflect.Struct || !promoted(reflect.PointerTo(t), method) {
		return nil
	}
	if t.NumField() > 1 {
		return fmt.Errorf("whose %s is that of an embedded field, which leaves out the others", method)
	}
	f := t.Field(0).Type
	if k := f.Kind(); strings.HasPrefix(method, "Unmarshal") && (k == reflect.Pointer || k == reflect.Interface) {
		return fmt.Errorf("whose %s is that of an embedded %s, which is nil when a value is read", method, f)
	}
	if f.Kind() == reflect.Pointer {
		f = f.Elem()
	}
	if err := covers(f, method); err != nil {
		return fmt.Errorf("which embeds a %s, %w", f, err)
	}
	return nil
}

// promoted reports whether a method of the struct behind p comes from an embedded field:
// then what the compiler generated stands in no file.
func promoted(p reflect.Type, name string) bool {
	m, ok := p.Elem().MethodByName(name)
	if !ok {
		m, _ = p.MethodByName(name)
	}
	file, _ := runtime.FuncForPC(m.Func.Pointer()).FileLine(m.Func.Pointer())
	return file == "<autogenerated>"
}

// key describes a map's key. cell says that this package encodes it, not encoding/json.
func (w *typeWalk) key(t reflect.Type, path string, cell bool) Type {
	base := t
	from, to := t.Implements(textMarshaler), reflect.PointerTo(t).Implements(textUnmarshaler)
	if t.Kind() == reflect.Pointer {
		base, to = t.Elem(), t.Implements(textUnmarshaler) && cell
	}
	switch {
	case t.Kind() == reflect.String && (cell || !to):
		return Type{Kind: "string"}
	case t.Kind() == reflect.Interface:
	case from && to && t.Kind() != reflect.String:
		if err := cmp.Or(covers(base, "MarshalText"), covers(base, "UnmarshalText")); err != nil {
			return w.refuse(path, "has keys of type %s, %v", t, err)
		}
		return Type{Kind: "own", Name: ownName(t)}
	case !from && !to && (reflect.Zero(t).CanInt() || reflect.Zero(t).CanUint() && t.Kind() != reflect.Uintptr):
		return Type{Kind: t.Kind().String()}
	}
	return w.refuse(path, "has keys of type %s: write a string, an integer, or a type with "+
		"MarshalText and UnmarshalText", t)
}

// object describes a struct by the members that encoding/json gives it.
func (w *typeWalk) object(t reflect.Type, path string, addressable bool) Type {
	d := Type{Kind: "object"}
	w.members(&d, t, path, addressable, nil)
	slices.SortStableFunc(d.Fields, func(a, b Field) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(d.Fields); i++ {
		if name := d.Fields[i].Name; name == d.Fields[i-1].Name {
			w.refuse(path, "has two fields whose JSON name is %q", name)
		}
	}
	return d
}

// members adds the fields of t to d, with those of embedded structs, of which through
// are open.
func (w *typeWalk) members(d *Type, t reflect.Type, path string, addressable bool, through []reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := path + "." + f.Name
		tag, tagged := f.Tag.Lookup("json")
		name, options := tagName(tag)
		if tagged && tag == "-" {
			w.refuse(at, `has the tag json:"-", so JSON can't bring it back`)
			continue
		}
		if f.Anonymous && name == "" {
			if e, ok := w.embedded(f, at); ok {
				if slices.Contains(through, e) || e == t {
					w.refuse(at, "embeds itself")
					continue
				}
				w.members(d, e, at, addressable || f.Type.Kind() == reflect.Pointer, append(through, t))
				continue
			}
		}
		if !f.IsExported() {
			w.refuse(at, "is not exported, so JSON can't bring it back")
			continue
		}
		name = cmp.Or(name, f.Name)
		d.Fields = append(d.Fields, Field{
			Name:   name,
			Type:   w.part(f.Type, t, at, addressable),
			Quoted: hasOption(options, "string") && quotable(f.Type),
		})
		w.quotes(&d.Fields[len(d.Fields)-1], at)
	}
}

// quotes refuses the option ",string" of a type with its own marshaller, which encoding/json writes
// without the quotes that it wants to read.
func (w *typeWalk) quotes(f *Field, path string) {
	t := &f.Type
	for t.Kind == "pointer" {
		t = t.Elem
	}
	if f.Quoted && t.Kind == "own" && t.Name != ownName(jsonNumber) {
		w.refuse(path, `has the option ",string", by which encoding/json does not read back what a marshaller wrote`)
	}
}

// embedded returns the struct whose fields encoding/json takes for those of the outer one.
func (w *typeWalk) embedded(f reflect.StructField, path string) (reflect.Type, bool) {
	t := f.Type
	if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		if !f.IsExported() {
			w.refuse(path, "embeds a pointer to an unexported struct, which JSON can't bring back")
			return nil, false
		}
		return t.Elem(), true
	}
	return t, t.Kind() == reflect.Struct
}

// tagName splits a json tag as encoding/json does, which ignores names that are not valid.
func tagName(tag string) (name, options string) {
	name, options, _ = strings.Cut(tag, ",")
	for _, c := range name {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return "", options
		}
	}
	return name, options
}

func hasOption(options, name string) bool {
	return slices.Contains(strings.Split(options, ","), name)
}

// quotable reports whether the option ",string" works for t.
func quotable(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer && t.Name() == "" { // as encoding/json looks at it
		t = t.Elem()
	}
	z := reflect.Zero(t)
	return z.CanInt() || z.CanUint() || z.CanFloat() || t.Kind() == reflect.Bool || t.Kind() == reflect.String
}

// typeInfo is what reading and writing values of a type depends on.
type typeInfo struct {
	plain  bool   // can be shared: it has no memory that a reader could change
	frozen bool   // is shared: readers promised
	twins  bool   // may hold a map of which two keys have one text
	alters bool   // an unmarshaller in it may write to what it reads
	doubts bool   // may hold a map whose keys encoding/json does not read as it writes them
	codec  *codec // nil where encoding/json is needed
}

var infos sync.Map // of reflect.Type to *typeInfo

func infoOf(t reflect.Type) *typeInfo {
	if i, ok := infos.Load(t); ok {
		return i.(*typeInfo)
	}
	_, frozen := thawed(t)
	info := &typeInfo{plain: plain(t), frozen: frozen, twins: holds(t, twins), alters: holds(t, alters), doubts: holds(t, doubts),
		codec: codecOf(t, map[reflect.Type]*codec{})}
	infos.Store(t, info)
	return info
}

// twins reports whether a t is a map with keys that marshal themselves.
func twins(t reflect.Type) bool {
	return t.Kind() == reflect.Map && t.Key().Kind() != reflect.String && t.Key().Implements(textMarshaler)
}

// alters reports whether a t has an unmarshaller that is not known to leave what it reads as it is.
// encoding/json gives it the memory that it reads itself.
func alters(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return (p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler)) && known[ownName(t)] == nil && t != rawMessage
}

// doubts reports whether a t is a map with keys that encoding/json writes with MarshalText and
// reads with UnmarshalJSON, which may want another text.
func doubts(t reflect.Type) bool {
	return twins(t) && reflect.PointerTo(t.Key()).Implements(jsonUnmarshaler) && known[ownName(t.Key())] == nil
}

// holds reports whether a t or what may stand in it is such a type.
func holds(t reflect.Type, such func(reflect.Type) bool) bool {
	seen := map[reflect.Type]bool{} // are looked at elsewhere
	var look func(reflect.Type) bool
	look = func(t reflect.Type) bool {
		if v, ok := thawed(t); ok {
			t = v
		}
		if seen[t] {
			return false
		}
		if seen[t] = true; such(t) {
			return true
		}
		switch t.Kind() {
		case reflect.Map:
			return look(t.Key()) || look(t.Elem())
		case reflect.Pointer, reflect.Slice, reflect.Array:
			return look(t.Elem())
		case reflect.Struct:
			for i := range t.NumField() {
				if look(t.Field(i).Type) {
					return true
				}
			}
		}
		return false
	}
	return look(t)
}

// plain reports whether copies of a t share nothing, and its JSON says all about it.
func plain(t reflect.Type) bool {
	if own, err := ownJSON(t, true); own || err != nil {
		return false
	}
	switch t.Kind() {
	case reflect.Array:
		return plain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			_, options := tagName(t.Field(i).Tag.Get("json"))
			if options != "" || !plain(t.Field(i).Type) {
				return false
			}
		}
		return true
	case reflect.Uintptr:
		return false
	}
	z := reflect.Zero(t)
	return z.CanInt() || z.CanUint() || z.CanFloat() || t.Kind() == reflect.Bool || t.Kind() == reflect.String
}
