package state

// The cells print as their JSON, so that a state that is logged can be read: fmt would show
// what cells are made of.

// String returns the JSON of the value.
func (v Value[T]) String() string { return printedAs(v.MarshalJSON()) }

// String returns the JSON of the value.
func (w Whole[T]) String() string { return printedAs(w.MarshalJSON()) }

// String returns the JSON of the list.
func (l List[T]) String() string { return printedAs(l.MarshalJSON()) }

// String returns the JSON of the map.
func (m Map[K, V]) String() string { return printedAs(m.MarshalJSON()) }

// String returns the JSON of the set.
func (s Set[T]) String() string { return printedAs(s.MarshalJSON()) }

// String returns the JSON of the sum.
func (s Sum[N]) String() string { return printedAs(s.MarshalJSON()) }

// String returns the JSON of the value.
func (f Fold[T]) String() string { return printedAs(f.MarshalJSON()) }

func printedAs(json []byte, err error) string {
	if err != nil {
		return "!(" + err.Error() + ")"
	}
	return string(json)
}
