package state

import "reflect"

// Schema returns the image's schema.
func (i Image) Schema() *Schema { return i.s }

// CallsUser reports whether [Merge] or [Image.Check] call code of the state type: it has
// a Fold, or a Check method.
func (s *Schema) CallsUser() bool { return s.folds || s.checks }

// checker is implemented by a *S that has a Check.
var checker = reflect.TypeFor[interface{ Check() error }]()
