package state

import (
	"encoding/json"
	"reflect"
)

// Frozen is a value that is decoded once and then shared by all its readers, who promise not to
// change what they get. It is for big values that many nodes read:
//
//	Index state.Value[state.Frozen[map[string]Book]]
//
// Its JSON is that of V.
type Frozen[T any] struct{ V T }

// frozen returns the type that is frozen.
func (Frozen[T]) frozen() reflect.Type { return reflect.TypeFor[T]() }

type freezer interface{ frozen() reflect.Type }

var frozenType = reflect.TypeFor[freezer]()

// thawed returns T if t is Frozen[T]. One of another package embeds that, or a pointer to it, which
// is nil.
func thawed(t reflect.Type) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct || !t.Implements(frozenType) || t.PkgPath() != frozenType.PkgPath() {
		return nil, false
	}
	return reflect.Zero(t).Interface().(freezer).frozen(), true
}

// MarshalJSON returns the JSON of V.
func (f Frozen[T]) MarshalJSON() ([]byte, error) { return encode(&f.V, infoOf(reflect.TypeFor[T]())) }

// UnmarshalJSON sets V.
func (f *Frozen[T]) UnmarshalJSON(b []byte) error {
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	f.V = v
	return nil
}
