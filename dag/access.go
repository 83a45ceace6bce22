package dag

import "fmt"

// Access says what an effect, or the function of a node, does to the world outside the run:
// as an option of [Effect], and as [Policy].Access. Dispatchers decide by it what needs a
// person's approval. It is a declaration that nobody checks. The zero Access declares nothing,
// and what is not declared counts as a write.
type Access uint8

const (
	Reads  Access = iota + 1 // it changes nothing outside
	Writes                   // it may change something
)

// Declared reports whether a says anything that this version knows.
func (a Access) Declared() bool { return a == Reads || a == Writes }

// String returns reads, writes, undeclared, or access(n) for one that is not known.
func (a Access) String() string {
	switch a {
	case 0:
		return "undeclared"
	case Reads:
		return "reads"
	case Writes:
		return "writes"
	}
	return fmt.Sprintf("access(%d)", uint8(a))
}

// MarshalText returns what String does; an Access that is not known is an error.
func (a Access) MarshalText() ([]byte, error) {
	if a > Writes {
		return nil, fmt.Errorf("dag: unknown %s", a)
	}
	return []byte(a.String()), nil
}

// UnmarshalText reads what MarshalText writes; any other text is an error.
func (a *Access) UnmarshalText(text []byte) error {
	for known := Access(0); known <= Writes; known++ {
		if known.String() == string(text) {
			*a = known
			return nil
		}
	}
	return fmt.Errorf("dag: unknown access %.40q: it is reads, writes or undeclared", text)
}

func (a Access) declare(call *EffectCall) error {
	switch {
	case !a.Declared():
		return call.refused(fmt.Sprintf("is given %s: declare it as Reads or Writes", a))
	case call.Access != 0 && call.Access != a:
		return call.refused("is declared to do both, Reads and Writes: what writes is Writes")
	}
	call.Access = a
	return nil
}
