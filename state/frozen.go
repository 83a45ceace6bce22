package state

import (
	"encoding/json"
	"reflect"
)

// Frozen is a value that is decoded once and then shared by all who read it, who promise
// not to change what they get. It is for big values that many nodes read:
//
//	Index state.Value[state.Frozen[map[string]Book]]
//
// Its JSON is that of V.
type Frozen[T any] struct{ V T }

// frozen returns the type that T freezes, and Frozen[T] itself, which a struct that embeds
// it is not.
func (Frozen[T]) frozen() (thawed, self reflect.Type) {
	return reflect.TypeFor[T](), reflect.TypeFor[Frozen[T]]()
}

var frozenType = reflect.TypeFor[interface {
	frozen() (thawed, self reflect.Type)
}]()

// thawed returns T if t is Frozen[T].
func thawed(t reflect.Type) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct || !t.Implements(frozenType) {
		return nil, false
	}
	f := reflect.Zero(t).Interface().(interface {
		frozen() (thawed, self reflect.Type)
	})
	v, self := f.frozen()
	return v, self == t
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
