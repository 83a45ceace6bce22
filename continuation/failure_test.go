package continuation_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
)

// What fails behind a default, or behind the wake of a timer, is not tried again, also if an attempt has failed behind a
// trigger before: nothing is asked again then.
func TestAFailureBehindADefaultIsFinal(t *testing.T) {
	for name, w := range map[string]continuation.Wait{
		"default": {OnExpire: continuation.Default("nobody")},
		"timer":   continuation.Any(continuation.Wait{Kind: continuation.KindTimer, After: time.Hour}, continuation.Wait{}),
	} {
		for triggers, of := range []string{"behind none", "behind a trigger"} {
			t.Run(name+" "+of, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					bodies := 0
					p := talk(t, waiting(t, w, dag.Policy{}, func(context.Context, *Talk, continuation.Reply[string]) error {
						if bodies++; bodies == 100 {
							cancel() // it would go on for ever
						}
						return errWeather
					}))
					if triggers > 0 {
						if _, err := p.rt.Trigger(t.Context(), reply("t", "x")); err != nil {
							t.Fatal(err)
						}
						p.stands(run, continuation.StatusPending, "") // it is asked again
					}
					lasts(2 * time.Hour)
					if _, err := p.rt.Sweep(ctx); err != nil {
						t.Errorf("swept: %v", err)
					}
					if bodies != triggers+1 {
						t.Errorf("the node ran %d times behind its wait, want %d", bodies, triggers+1)
					}
					p.stands(run, continuation.StatusFailed, continuation.RunFailed)
				})
			})
		}
	}
}
