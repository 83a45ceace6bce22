package dispatcher_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A role is a node of a random play, whatever programs call it. Its id is a node path of such
// names.
type role struct {
	id     string
	kind   dag.Kind
	after  []int // roles before it in the same graph
	inside []*role
	extra  bool // some programs don't have it; it writes nothing
	most   int  // iterations or items
}

// roles makes those of a graph.
func roles(r *rand.Rand, prefix string, depth int) []*role {
	var all []*role
	for i := range max(1, 2+r.IntN(3)-depth) {
		p := &role{id: fmt.Sprint(prefix, "r", i), kind: dag.KindStep, most: 2 + r.IntN(2)}
		if depth < 2 && r.IntN(5) >= 2+depth {
			p.kind = []dag.Kind{dag.KindLoop, dag.KindEach, dag.KindEmbed}[r.IntN(3)]
			if p.kind != dag.KindEach || r.IntN(2) == 0 {
				p.inside = roles(r, p.id+"/", depth+1)
			}
		}
		if p.extra = i > 0 && r.IntN(4) == 0; !p.extra {
			for k := range i {
				if !all[k].extra && r.IntN(3) == 0 {
					p.after = append(p.after, k)
				}
			}
		}
		all = append(all, p)
	}
	return all
}

// A program is a graph of a play, in which roles have names. It knows how to go on with runs of
// every other one.
type program struct {
	names      map[string]string // by id
	ids        map[string]string // by node path
	graph      *dag.Graph[Tale]
	migrations []dispatcher.Migration
}

// name gives names to the roles of a graph, which most of them keep. An extra one has none that
// another one ever has.
func (p *program) name(r *rand.Rand, was *program, all []*role, extras map[string]string) {
	level, taken := all[0].id[:strings.LastIndexByte(all[0].id, '/')+1], map[string]bool{}
	free := func(p *role, name string) bool {
		owner := extras[level+name]
		return !taken[name] && (!p.extra || owner == "" || owner == p.id)
	}
	for _, x := range all {
		if was != nil && was.names[x.id] != "" && r.IntN(3) > 0 && free(x, was.names[x.id]) {
			p.names[x.id] = was.names[x.id]
			taken[p.names[x.id]] = true
		}
	}
	for _, x := range all {
		if x.extra && r.IntN(2) == 0 {
			delete(p.names, x.id) // its name may be another's
		}
	}
	clear(taken)
	for _, x := range all {
		taken[p.names[x.id]] = true
	}
	for _, x := range all {
		if p.names[x.id] != "" || x.extra && r.IntN(2) == 0 {
			continue
		}
		name := fmt.Sprint("n", r.IntN(len(all)+1))
		for !free(x, name) {
			name = fmt.Sprint("n", r.IntN(4*len(all)))
		}
		p.names[x.id], taken[name] = name, true
	}
	for _, x := range all {
		if x.extra && p.names[x.id] != "" {
			extras[level+p.names[x.id]] = x.id
		}
		if x.inside != nil && p.names[x.id] != "" {
			p.name(r, was, x.inside, extras)
		}
	}
}

// path is the node path of a role; "" if it is not there.
func (p *program) path(id string) string {
	at := strings.LastIndexByte(id, '/')
	switch name := p.names[id]; {
	case name == "":
		return ""
	case at < 0:
		return name
	case p.path(id[:at]) == "":
		return ""
	default:
		return p.path(id[:at]) + "/" + name
	}
}

// replaces reports whether a role, or one around it, has another name than it had, and a new one
// has that.
func (p *program) replaces(was *program, id string) bool {
	at := strings.LastIndexByte(id, '/')
	name := was.names[id]
	if name != "" && p.names[id] != "" && p.names[id] != name {
		for other, is := range p.names {
			if is == name && was.names[other] == "" && strings.LastIndexByte(other, '/') == at && other[:at+1] == id[:at+1] {
				return true
			}
		}
	}
	return at >= 0 && p.replaces(was, id[:at])
}

// place is the path of a visit by the ids of roles.
func (p *program) place(visit string) string {
	var names, numbers []string
	for _, s := range strings.Split(visit, "/") {
		if isNumber(s) {
			numbers[len(numbers)-1] += "/" + s
			continue
		}
		names, numbers = append(names, s), append(numbers, "")
	}
	id, ok := p.ids[strings.Join(names, "/")]
	if !ok {
		panic(fmt.Sprintf("no role has the path %s in %v", visit, p.names))
	}
	parts := strings.Split(id, "/")
	for i := range parts {
		parts[i] += numbers[i]
	}
	return strings.Join(parts, "/")
}

// from says what the nodes of another program are called in p.
func (p *program) from(was *program) map[string]string {
	nodes := map[string]string{}
	for path, id := range was.ids {
		parent := path[:max(strings.LastIndexByte(path, '/'), 0)]
		if parent != "" && p.path(was.ids[parent]) == "" { // it goes with what holds it
			continue
		}
		if is := p.path(id); is[strings.LastIndexByte(is, '/')+1:] != path[strings.LastIndexByte(path, '/')+1:] {
			nodes[path] = is
		}
	}
	return nodes
}

// build makes the graph of a program, or of a role in it.
func (p *play) build(in *program, name string, all []*role) *dag.Graph[Tale] {
	b := dag.New[Tale](name)
	edges := make([]dag.Edge[Tale], len(all))
	for i, x := range all {
		name := in.names[x.id]
		if name == "" {
			continue
		}
		var after []dag.Edge[Tale]
		for _, k := range x.after {
			after = append(after, edges[k])
		}
		items := func(*Tale) []int { return make([]int, x.most) }
		takes := func(from, to *Tale) {
			for note, text := range from.Notes.All() {
				to.Notes.Put(note, text)
			}
		}
		policy := dag.Policy{Attempts: 1 + p.chance(2, "attempts", x.id)}
		switch {
		case x.kind == dag.KindStep:
			edges[i] = dag.Step(b, name, func(ctx context.Context, s *Tale) error { return p.visit(ctx, in, x, s) }, after...).With(policy)
		case x.kind == dag.KindLoop:
			edges[i] = dag.Loop(b, name, p.build(in, strings.ReplaceAll(x.id, "/", "-"), x.inside), func(*Tale) bool { return false }, x.most, after...)
		case x.kind == dag.KindEmbed:
			edges[i] = dag.Embed(b, name, p.build(in, strings.ReplaceAll(x.id, "/", "-"), x.inside), func(*Tale, *Tale) {}, takes, after...)
		case x.inside == nil:
			edges[i] = dag.Each(b, name, items, func(ctx context.Context, s *Tale, _ int) error { return p.visit(ctx, in, x, s) }, after...).With(policy)
		default:
			edges[i] = dag.EachGraph(b, name, items, p.build(in, strings.ReplaceAll(x.id, "/", "-"), x.inside),
				func(*Tale, int, *Tale) {}, func(from *Tale, _ int, to *Tale) { takes(from, to) }, after...)
		}
	}
	if name == "play" { // what has begun under one program is nothing that another one goes on with unless its migration says how
		dag.Step(b, fmt.Sprint("first", len(p.programs)), func(context.Context, *Tale) error { return nil })
	}
	return frozen(p.t, b)
}

// undisturbed are the notes of a turn that nothing happens to.
func (p *play) undisturbed() map[string]bool {
	all := map[string]bool{}
	var visits func(prefix string, all []*role, each func(string))
	visits = func(prefix string, all []*role, each func(string)) {
		for _, x := range all {
			if x.extra {
				continue
			}
			at := prefix + x.id[strings.LastIndexByte(x.id, '/')+1:]
			switch {
			case x.kind == dag.KindStep:
				each(at)
			case x.kind == dag.KindEmbed:
				visits(at+"/", x.inside, each)
			default:
				for n := range x.most {
					if x.inside == nil {
						each(fmt.Sprint(at, "/", n+1))
						continue
					}
					visits(fmt.Sprint(at, "/", n+1, "/"), x.inside, each)
				}
			}
		}
	}
	visits("", p.roles, func(place string) {
		for k := range p.chance(3, "effects", place) {
			all[fmt.Sprint(place, "#k", k)] = true
		}
	})
	return all
}
