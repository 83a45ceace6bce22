package dispatcher

import (
	"context"
	"testing"
	"time"

	"github.com/pawlgo/pawl/dag"
)

// The defaults of Options are those that their comments tell, and what is given stays.
func TestDefaultsAreWhatTheyAreSaidToBe(t *testing.T) {
	b := dag.New[thawed]("g")
	dag.Step(b, "only", func(context.Context, *thawed) error { return nil })
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	given := Limits{1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		o     Options
		want  Limits
		grace time.Duration
	}{
		{Options{}, Limits{1_000_000, 256 << 20, 16 << 20, 32 << 20, 1 << 30, 100_000}, 5 * time.Second},
		{Options{Limits: given, Grace: time.Hour}, given, time.Hour},
	} {
		d, err := New(g, nil, c.o)
		if err != nil {
			t.Fatal(err)
		}
		o := d.core.opts
		if o.Limits != c.want || o.Grace != c.grace || o.StaleAfter != 24*time.Hour || o.Now == nil || d.core.slots != nil {
			t.Errorf("the options are %+v, want the limits %+v and a grace of %v", o, c.want, c.grace)
		}
	}
	if mostItems != 16_777_216 {
		t.Errorf("an Each may have %d items, and Limits.Items says 16,777,216", mostItems)
	}
}
