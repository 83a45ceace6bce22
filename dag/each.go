package dag

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/pawlgo/pawl/state"
)

// EachOutcome is how an [Each] or [EachGraph] ended: [Done] or Empty.
type EachOutcome string

// Empty: there were no items.
const Empty EachOutcome = "empty"

// Each adds a node that runs f for each item, side by side, at most Policy.Parallel of them at
// once. Items count from 1 and are part of paths: review/17. Each item has attempts of its own, its
// own draft of the state as it stood when the node began, and an entry of its own once it is done.
// When all have ended their writes are merged in the order of the items, as those of the nodes of
// one superstep are. That merge is a superstep of its own, which counts for a limit of supersteps
// and has a checkpoint.
//
// The function items is called once when the node begins, with a copy of the state that it may not
// keep. Items are not stored. A run that is resumed computes them again, from the same state, and
// is refused if the digest of their JSON differs. So an item has to follow from the state alone,
// and f must not change what an item points to. Parts of an item that JSON does not show, such as
// unexported fields, are not compared. Invalid UTF-8 in an item fails the node.
//
// The plain handle is taken whether the node ended [Done] or [Empty].
func Each[S, I any](b *Builder[S], name string, items func(*S) []I, f func(context.Context, *S, I) error, after ...Edge[S]) RouteNode[S, EachOutcome] {
	n := newEach(name, items, &PlanNode{Name: name, Kind: KindStep})
	if f != nil {
		n.item.RunItem = func(ctx context.Context, s, items any, i int) error {
			return f(ctx, s.(*S), items.([]I)[i])
		}
	}
	return RouteNode[S, EachOutcome]{b, b.add(n, after)}
}

// EachGraph adds a node that runs the graph g for each item, over a state of its own: it
// is to [Embed] as [Each] is to [Step]. The nodes of g are visited as review/17/fetch. in
// and out are called once for each item, and what they wrote is durable and never computed
// again. Attempts, Timeout, Backoff and Retry belong to the nodes of g; Build refuses them
// here.
func EachGraph[S, I, T any](b *Builder[S], name string, items func(*S) []I, g *Graph[T], in func(from *S, item I, to *T), out func(from *T, item I, to *S), after ...Edge[S]) RouteNode[S, EachOutcome] {
	n := newEach(name, items, &PlanNode{Name: name, Kind: KindEmbed})
	if g != nil {
		n.body = g.plan
	}
	if in != nil {
		n.item.InItem = func(from, items any, i int, to any) { in(from.(*S), items.([]I)[i], to.(*T)) }
	}
	if out != nil {
		n.item.OutItem = func(from, items any, i int, to any) { out(from.(*T), items.([]I)[i], to.(*S)) }
	}
	return RouteNode[S, EachOutcome]{b, b.add(n, after)}
}

func newEach[S, I any](name string, items func(*S) []I, item *PlanNode) *node {
	n := &node{name: name, kind: KindEach, outcomes: []string{Done, string(Empty)}, item: item}
	if unsupported := new(json.UnsupportedTypeError); errors.As(jsonOf[I](), &unsupported) {
		n.faults = append(n.faults, fmt.Sprintf("has items that JSON can't say: %s holds %s; "+
			"name each by a key and look up the rest in the node", reflect.TypeFor[I](), unsupported.Type))
	}
	if items != nil {
		n.items = func(s any) (any, int, string, error) {
			all := items(s.(*S))
			digest, err := digestOf(all)
			return all, len(all), digest, err
		}
	}
	return n
}

// jsonOf returns why the zero T can't be said in JSON: of a func or a chan its type is why. A
// marshaller that panics, as the zero T may be no item that there will be, says nothing.
func jsonOf[T any]() (err error) {
	defer func() { _ = recover() }()
	_, err = json.Marshal(new(T))
	return err
}

// itemNode is what every item of an Each visits.
func (n *node) itemNode() *PlanNode {
	if n.item == nil {
		return nil
	}
	item := *n.item // a Builder may go on, and Build again
	item.Body, item.Policy, item.FailureFollowed = n.body, n.policy, n.policy.Errors == Collect
	return &item
}

// digestOf is the SHA-256 of the JSON of items, each preceded by its length: no two lists
// of different texts have the same bytes.
func digestOf[I any](items []I) (string, error) {
	h := sha256.New()
	for i := range items {
		var item any = &items[i] // by which encoding/json finds marshallers with pointer receivers
		if reflect.TypeFor[I]().Kind() == reflect.Interface {
			item = items[i] // and sees that there is none
		}
		text, err := json.Marshal(item)
		if err == nil { // of invalid text the JSON would be that of other text
			err = state.CheckText(item, text)
		}
		if err != nil {
			return "", fmt.Errorf("item %d: %w", i+1, err)
		}
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(text)))
		h.Write(length[:])
		h.Write(text)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
