// Package dagtest scripts what one node may ask for. A node is tested by calling it, without a
// graph, a dispatcher or a store.
//
// A [Visit] says what the node is given and remembers what it asked and showed.
//
//	v := &dagtest.Visit{Attempt: 2, Answers: map[string]any{"publish": true}}
//	var q Inquiry
//	if err := Respond(dagtest.Context(t.Context(), v), &q); err != nil {
//		t.Fatal(err)
//	}
//	if len(v.Asked()) != 1 || q.Draft.Get() != "published" {
//		t.Errorf("asked %v, draft %q", v.Asked(), q.Draft.Get())
//	}
//
// What a run would refuse is refused here as well, such as an answer that does not fit the type
// that the node asks for. A node that needs nothing of this can be called with any context; see
// package dag.
package dagtest
