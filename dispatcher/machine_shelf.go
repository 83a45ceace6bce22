package dispatcher

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// An EffectsOfFork says what an effect does in a fork. See [ForkOptions].
type EffectsOfFork uint8

// What effects do in a fork. With either of the first two an effect that the origin did with the
// same input returns what it returned there.
const (
	ReuseOrRefuse EffectsOfFork = iota // any other effect is refused (dag.ErrEffectRefused): nothing happens outside
	// ReuseOrLive: any other effect is done, under the fork's own key, even one that is in doubt in
	// the origin. Fork says what holds of results that a Trim has left out.
	ReuseOrLive
	Live // every effect is done, under the fork's own key
)

var effectsOfFork = [...]string{"reuse_or_refuse", "reuse_or_live", "live"}

// String is the policy as a log has it: reuse_or_refuse, reuse_or_live or live.
func (h EffectsOfFork) String() string {
	if int(h) >= len(effectsOfFork) {
		return strconv.Itoa(int(h))
	}
	return effectsOfFork[h]
}

// parseEffects reads what String has written.
func parseEffects(text string) (EffectsOfFork, error) {
	i := slices.Index(effectsOfFork[:], text)
	if i < 0 {
		return 0, fmt.Errorf("its opening says that effects are %.40q, which nobody knows", text)
	}
	return EffectsOfFork(i), nil
}

// A shelf holds what effects have returned in the run that a fork comes from, behind the
// checkpoint where the fork begins. It never grows. What a visit of the run's own frame could
// use, or a visit inside it, is dropped when the visit has settled: none of them runs again.
//
// Visits are called what they are in the run's graph. If a migration behind that checkpoint has
// brought the origin to another graph, in which nodes have other names, all is there a second time,
// as visits are called in that one: the migration of the fork may say less than the origin's, which
// found more begun, and a node of that graph may not be in this one. A run that comes to it takes
// those names; see renamed.
type shelf struct {
	how EffectsOfFork
	// trimmed is the last turn of which the shelf may lack something: what the origin told of it
	// behind that checkpoint was trimmed.
	trimmed int
	// effects are by the visit of the run's own frame, the path of the visit, both with the
	// turn before them, and the key. The inner maps never change: attempts hold them.
	effects map[string]map[string]map[string][]shelved
}

// A shelved is what an effect has returned for an input.
type shelved struct {
	Digest string          `json:"digest"` // of its input
	Output json.RawMessage `json:"output"`
	Run    string          `json:"run"` // which did it
}

// onShelf is what a visit is called on a shelf.
func onShelf(turn int, path string) string {
	if turn > 1 {
		return strconv.Itoa(turn) + "/" + path
	}
	return path
}

// inGraph is what a visit of another graph is called on a shelf: no node has such a name.
func inGraph(digest, name string) string { return "@" + digest + "/" + name }

// ofGraph takes that apart; graph is "" if the name is one of the run's graph, and else ends with a
// slash.
func ofGraph(name string) (graph, rest string) {
	if !strings.HasPrefix(name, "@") {
		return "", name
	}
	i := strings.IndexByte(name, '/') + 1
	return name[:i], name[i:]
}

// rootOf is the visit of the run's own frame that holds a visit, as they are called on a shelf.
func rootOf(name string) string {
	graph, name := ofGraph(name)
	first, rest, more := strings.Cut(name, "/")
	if !more || !isIteration(first) {
		return graph + first
	}
	second, _, _ := strings.Cut(rest, "/")
	return graph + first + "/" + second
}

// put adds what an effect has returned. Of several with one input the last one counts.
func (s *shelf) put(name, key string, e shelved) {
	root := rootOf(name)
	if s.effects == nil {
		s.effects = map[string]map[string]map[string][]shelved{}
	}
	if s.effects[root] == nil {
		s.effects[root] = map[string]map[string][]shelved{}
	}
	if s.effects[root][name] == nil {
		s.effects[root][name] = map[string][]shelved{}
	}
	of := s.effects[root][name]
	for i := range of[key] {
		if of[key][i].Digest == e.Digest {
			of[key][i] = e
			return
		}
	}
	of[key] = append(of[key], e)
}

// of returns what there is for a visit, by key.
func (s *shelf) of(name string) map[string][]shelved { return s.effects[rootOf(name)][name] }

// settled drops what nobody can use any more: a visit of the run's own frame has settled.
func (s *shelf) settled(turn int, name string) { delete(s.effects, onShelf(turn, name)) }

// begun drops what was for turns before this one.
func (s *shelf) begun(turn int) {
	for root := range s.effects {
		_, name := ofGraph(root)
		first, _, later := strings.Cut(name, "/")
		if n, err := strconv.Atoi(first); !later || err != nil || n < turn {
			delete(s.effects, root)
		}
	}
}

// each tells what is on a shelf.
func (s *shelf) each(tell func(name, key string, e shelved)) {
	for _, root := range s.effects {
		for name, of := range root {
			for key, all := range of {
				for _, e := range all {
					tell(name, key, e)
				}
			}
		}
	}
}

// A frozenShelf is a shelf in a snapshot.
type frozenShelf struct {
	How     EffectsOfFork                   `json:"how,omitempty"`
	Trimmed int                             `json:"trimmed,omitempty"`
	Effects map[string]map[string][]shelved `json:"effects,omitempty"` // by visit and key
}

func (s *shelf) freeze() *frozenShelf {
	if s == nil {
		return nil
	}
	z := &frozenShelf{How: s.how, Trimmed: s.trimmed}
	for _, root := range s.effects {
		for name, of := range root {
			if z.Effects == nil {
				z.Effects = map[string]map[string][]shelved{}
			}
			z.Effects[name] = of
		}
	}
	return z
}

// encode returns what is on the shelf as JSON, the same bytes for the same effects; nil if there
// is nothing.
func (s *shelf) encode() []byte {
	if s == nil || len(s.effects) == 0 {
		return nil
	}
	return encode(s.freeze().Effects)
}

func (z *frozenShelf) thaw() *shelf {
	if z == nil {
		return nil
	}
	s := &shelf{how: z.How, trimmed: z.Trimmed}
	for name, of := range z.Effects {
		for key, all := range of {
			for _, e := range all {
				s.put(name, key, e)
			}
		}
	}
	return s
}

// renamed is the shelf under the paths of a new graph: those that the origin had in it, or else
// those that the change makes of what they were.
func (z *frozenShelf) renamed(c *change, is string) *frozenShelf {
	if z == nil {
		return nil
	}
	next := &frozenShelf{How: z.How, Trimmed: z.Trimmed, Effects: make(map[string]map[string][]shelved, len(z.Effects))}
	known := false
	for name, of := range z.Effects {
		switch graph, rest := ofGraph(name); graph {
		case "":
		case inGraph(is, ""):
			next.Effects[rest], known = of, true
		default:
			next.Effects[name] = of
		}
	}
	if known {
		return next
	}
	for name, of := range z.Effects {
		if graph, _ := ofGraph(name); graph != "" {
			continue
		}
		if to, there := c.moved(name); there {
			next.Effects[to] = of
		}
	}
	return next
}
