package dispatcher

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// enterItems has the items of an Each computed, and opens their frame.
func (r *run) enterItems(h *tenure, x *fact) (bool, *userError) {
	t := x.t
	var list any
	var e checkpoint.Items
	var err error
	from := t.frame.view.Draft()
	ok, failed := r.ask(h, "the items of "+t.path(), func() {
		list, e.Count, e.Digest, err = t.items(from.Value())
	})
	if !ok || failed != nil {
		return ok, failed
	}
	if limit := min(r.c.opts.Limits.Items, mostItems); err == nil && e.Count > limit {
		err = &LimitError{"items", limit, t.path()}
	}
	if err != nil {
		return true, &userError{kind: dag.FailedState, err: err}
	}
	e.Collect = t.node.Item.FailureFollowed
	x.more().items, x.more().Data = list, encode(e)
	r.add(*x)
	return true, nil
}

// items has the items of t computed from a state.
func (t *task) items(s any) (list any, n int, digest string, err error) {
	list, n, digest, err = t.node.Items(s)
	return list, n, digest, sound(err)
}

// recompute has the items of every Each in f computed again that may go on: only their digest is
// stored. It is told of the visits that are about to be voided.
func (c *core) recompute(f *frame, voids ...string) error {
	for _, i := range f.open {
		t := &f.tasks[i]
		if t.inner == nil || t.over(voids) {
			continue
		}
		if t.inner.items != nil && len(t.inner.open) > 0 {
			if err := t.recompute(); err != nil {
				return err
			}
		}
		if err := c.recompute(t.inner, voids...); err != nil {
			return err
		}
	}
	return nil
}

// over reports whether nothing inside t runs again: it has failed in a frame whose failure is
// followed, so a resume does not renew it, and none of voids is inside it. The state that an Each
// in it had its items from may be gone: what is finished around it has been kept.
func (t *task) over(voids []string) bool {
	if t.phase != failing || slices.ContainsFunc(voids, func(path string) bool { return strings.HasPrefix(path, t.path()+"/") }) {
		return false
	}
	for h := t.frame.holder; h != nil; h = h.frame.holder {
		if h.phase == inside && h.caught() {
			return true
		}
	}
	return false
}

func (t *task) recompute() error {
	f := t.inner
	var is checkpoint.Items
	var err error
	from := t.frame.view.Draft()
	if u := protect(func() { f.items.list, is.Count, is.Digest, err = t.items(from.Value()) }); u != nil {
		return &FaultError{Kind: "items", Message: fmt.Sprintf("the items of %s: %v", t.path(), u), Stack: u.stack, Err: u.err}
	}
	if err != nil {
		return &FaultError{Kind: "items", Message: fmt.Sprintf("the items of %s: %v", t.path(), err), Err: err}
	}
	if was := (checkpoint.Items{Count: len(f.tasks), Digest: f.items.digest}); is != was {
		return &ItemsChangedError{Path: t.path(), Was: was, Is: is}
	}
	return nil
}
