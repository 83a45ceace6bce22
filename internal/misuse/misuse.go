// Package misuse is what packages find, and say, alike of what they are called with.
package misuse

import "reflect"

// NoContext is what is said of a context that is nil.
const NoContext = "is nil: use context.Background() if nothing is to end the call"

// Missing reports whether there is nothing, or a nil pointer, behind an interface.
func Missing(v any) bool {
	p := reflect.ValueOf(v)
	return !p.IsValid() || p.Kind() == reflect.Pointer && p.IsNil()
}
