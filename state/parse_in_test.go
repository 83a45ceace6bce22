package state_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/state"
)

// What a log has is read as anything else is, but for strings: they are not looked at once more.
// Deltas that share memory don't see each other.
func TestParseDeltaIn(t *testing.T) {
	s := schemaOf[every](t)
	var in []string
	for i := range 40 {
		for _, part := range []string{"", "a", `\"`, `\\`, `\\\"`, `a\\`, `\u00e9`, "é", `\n`, "}", `{\"`, strings.Repeat("long ", 1_000)} {
			text := fmt.Sprint(i) + part
			in = append(in, fmt.Sprintf(`{"Value":{"set":"%[1]s"},"List":{"append":["%[1]s",{"a":["%[1]s"]}]},"Sum":{"add":%[2]d}}`, text, i+1),
				fmt.Sprintf(`{"List":{"truncate":9,"at":{"%[2]d":"%[1]s"}},"Map":{"put":{"%[1]s":["%[1]s"]}}}`, text, i%9),
				fmt.Sprintf(`{"List":{"append":["%s"]}}`, text))
		}
	}
	var slabs state.Slabs
	one, two := filled(t, s), filled(t, s)
	var kept []state.Delta
	for _, text := range in {
		want, err := s.ParseDelta([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		d, err := s.ParseDeltaIn([]byte(text), &slabs)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		kept = append(kept, d)
		if a, b := one.Apply(want), two.Apply(d); fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("%s: %v, want %v", text, b, a)
		}
	}
	for i, d := range kept {
		want, _ := s.ParseDelta([]byte(in[i]))
		if got := string(d.AppendJSON(nil)); got != string(want.AppendJSON(nil)) {
			t.Errorf("%s became %s", in[i], got)
		}
	}
	if string(one.AppendJSON(nil)) != string(two.AppendJSON(nil)) {
		t.Error("they come to another state")
	}
	for _, bad := range []string{`{"Value":{"set":"}}`, `{"Value":{"set":"\"}}`, `{"Value":{"set":"a`, `{"Value`, `{"List":{"append":["a" "b"]}}`} {
		_, err := s.ParseDeltaIn([]byte(bad), &slabs)
		refused(t, bad, err, cellOf(bad))
	}
}

// cellOf is the cell that a broken delta speaks of, if it comes so far.
func cellOf(delta string) string {
	name, _, found := strings.Cut(strings.TrimPrefix(delta, `{"`), `"`)
	if !found {
		return ""
	}
	return name
}

// Many deltas share a piece of memory: next to none of them is allocated alone. A long one has
// memory of its own.
func TestParseDeltaInAllocates(t *testing.T) {
	s := schemaOf[every](t)
	var slabs state.Slabs
	parsing := func(text string) float64 {
		in := []byte(text)
		return testing.AllocsPerRun(1_000, func() {
			if _, err := s.ParseDeltaIn(in, &slabs); err != nil {
				t.Fatal(err)
			}
		})
	}
	if n := parsing(`{"List":{"append":["a"]},"Sum":{"add":1}}`); n > 0 { // less than one
		t.Errorf("%v allocations for a delta, want less than one", n)
	}
	if n := parsing(`{"List":{"append":["` + strings.Repeat("a", 5_000) + `"]},"Sum":{"add":1}}`); n < 2 {
		t.Errorf("%v allocations for a long delta, want memory of its own", n)
	}
}
