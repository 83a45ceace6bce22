package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// A checkpoint that a trim has kept for its tag can be gone back to, also if an effect was under
// way beside it. What came of that is known where the run knew it at the first entry that is left;
// else it is in doubt, also if it had not happened at the checkpoint. What somebody says of it then
// stays said when the run goes back once more.
func TestRewoundToAKeptCheckpointBesideAnEffect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refused bool // at the checkpoint it had not happened
		turns   int
	}{
		"begun":              {turns: 1},
		"begun, forgotten":   {turns: 2},
		"refused":            {refused: true, turns: 1},
		"refused, forgotten": {refused: true, turns: 2},
	} {
		t.Run(name, func(t *testing.T) {
			eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
				tries, bank, begun := 0, 0, make(chan struct{})
				g, first := rewindBeside(t, func(ctx context.Context, looped <-chan struct{}) error {
					_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) {
						if tries++; tries == 1 && c.refused {
							return 0, dag.NotDone
						}
						if bank++; tries == 1 {
							close(begun)
							<-looped
						}
						return bank, nil
					})
					if c.refused && tries == 1 {
						close(begun)
						<-looped
					}
					return err
				})
				res, err := callsDispatcher(t, g, store, first(o, begun)).Run(t.Context(), run, nil)
				d := callsDispatcher(t, g, store, o)
				if c.refused {
					rests(t, res, err, checkpoint.StatusFailed, "pay")
					res, err = d.Resume(t.Context(), run)
				}
				completes(t, res, err)
				if err := d.Tag(t.Context(), run, "loop/1@1", "kept"); err != nil {
					t.Fatal(err)
				}
				if c.turns == 2 {
					res, err := d.Turn(t.Context(), run, nil)
					completes(t, res, err)
				}
				if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
					t.Fatal(err)
				}
				want := c.turns
				for n := range 3 {
					d := callsDispatcher(t, g, store, o)
					if err := d.Rewind(t.Context(), run, "tag:kept", dispatcher.RewindOptions{}); err != nil {
						t.Fatal(err)
					}
					res, err := d.Run(t.Context(), run, nil)
					if n == 0 && c.turns == 2 {
						if !errors.Is(err, dag.ErrInDoubt) {
							t.Fatalf("what came of the effect was trimmed, and the run came to %v", err)
						}
						said := dispatcher.Happened(1)
						if c.refused {
							said = dispatcher.NotHappened("no trace of it")
							want++
						}
						if err := d.Resolve(t.Context(), run, "pay", "pay", said); err != nil {
							t.Fatal(err)
						}
						res, err = d.Run(t.Context(), run, nil)
					}
					completes(t, res, err)
					if bank != want {
						t.Errorf("rewound %d times the effect has happened %d times, want %d", n+1, bank, want)
					}
				}
			})
		})
	}
}

// beginsInDoubt runs rewindBeside with an effect, pay, of which the first try gets no reply, until
// that is in doubt.
func beginsInDoubt(t testing.TB, store checkpoint.Store, o dispatcher.Options) *dag.Graph[Tale] {
	t.Helper()
	tries, begun := 0, make(chan struct{})
	g, first := rewindBeside(t, func(ctx context.Context, looped <-chan struct{}) error {
		_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) {
			if tries++; tries == 1 {
				close(begun)
				<-looped
				return 0, errors.New("no reply")
			}
			return tries, nil
		})
		return err
	})
	res, err := callsDispatcher(t, g, store, first(o, begun)).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "pay")
	return g
}

// A trim may take away what somebody has said of an effect in doubt. Then the run that goes back to
// before it is in another doubt, and what is said of that counts, be it the same as before or not,
// and however often it comes to this.
func TestResolveOfADoubtThatComesBack(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]dispatcher.Resolution{
		"the same": dispatcher.Happened(1), "another output": dispatcher.Happened(2), "not happened": dispatcher.NotHappened("no trace of it"),
	} {
		t.Run(name, func(t *testing.T) {
			eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
				g := beginsInDoubt(t, store, o)
				d := callsDispatcher(t, g, store, o)
				said := dispatcher.Happened(1)
				for n := range 3 {
					if n > 0 {
						said = later
						if err := d.Rewind(t.Context(), run, "tag:kept", dispatcher.RewindOptions{}); err != nil {
							t.Fatal(err)
						}
						if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dag.ErrInDoubt) {
							t.Fatalf("what came of the effect was trimmed, and the run came to %v", err)
						}
					}
					if err := d.Resolve(t.Context(), run, "pay", "pay", said); err != nil {
						t.Fatalf("rewound %d times: %v", n, err)
					}
					res, err := d.Run(t.Context(), run, nil)
					completes(t, res, err)
					if n == 0 {
						if err := d.Tag(t.Context(), run, "loop/1@1", "kept"); err != nil {
							t.Fatal(err)
						}
					}
					res, err = d.Turn(t.Context(), run, nil)
					completes(t, res, err)
					if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// What was said of such a doubt, and not heard before the run went back once more, is not said of
// the doubt that it is in then.
func TestResolveThatADoubtWhichComesBackDoesNotHear(t *testing.T) {
	t.Parallel()
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		mortal := &pawltest.Mortal{Store: store}
		g := beginsInDoubt(t, mortal, o)
		d := callsDispatcher(t, g, mortal, o)
		comesBack := func() {
			t.Helper()
			if err := d.Rewind(t.Context(), run, "tag:kept", dispatcher.RewindOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dag.ErrInDoubt) {
				t.Fatalf("the run came to %v", err)
			}
		}
		resolves := func() {
			t.Helper()
			if err := d.Resolve(t.Context(), run, "pay", "pay", dispatcher.Happened(1)); err != nil {
				t.Fatal(err)
			}
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
		}
		resolves()
		if err := d.Tag(t.Context(), run, "loop/1@1", "kept"); err != nil {
			t.Fatal(err)
		}
		res, err := d.Turn(t.Context(), run, nil)
		completes(t, res, err)
		if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
			t.Fatal(err)
		}
		comesBack()
		mortal.DieAfter(1) // the message is durable, and nobody takes it
		if err := d.Resolve(t.Context(), run, "pay", "pay", dispatcher.Happened(2)); !errors.Is(err, pawltest.ErrDead) {
			t.Fatalf("Resolve in a process that dies returns %v", err)
		}
		if err := mortal.Revive(t.Context()); err != nil {
			t.Fatal(err)
		}
		d = callsDispatcher(t, g, mortal, o)
		comesBack()
		resolves()
	})
}

// An effect that had not happened at such a checkpoint is in doubt under the key that it began with
// behind it: not under that of the time before, which may have been of another path, or generation.
func TestDoubtThatComesBackHasTheLaterKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ node, key string }{
		"renamed": {"fee", "tale/fee#pay"},
		"rewound": {"pay", "tale~1/pay#pay"},
	} {
		t.Run(name, func(t *testing.T) {
			eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
				refused, bank := false, map[string]int{}
				program := func(o dispatcher.Options, node string) *dispatcher.Dispatcher[Tale] {
					b := dag.New[Tale]("shop")
					dag.Step(b, node, func(ctx context.Context, _ *Tale) error {
						_, err := dag.Effect(ctx, "pay", 1, func(ctx context.Context, _ int) (int, error) {
							if !refused {
								refused = true
								return 0, dag.NotDone
							}
							bank[dag.Key(ctx)]++
							return len(bank), nil
						})
						return err
					})
					return callsDispatcher(t, frozen(t, b), store, o)
				}
				edits := func(d *dispatcher.Dispatcher[Tale]) {
					t.Helper()
					if err := d.Edit(t.Context(), run, func(s *Tale) { s.Count.Add(1) }, dispatcher.EditOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				goesBack := func(d *dispatcher.Dispatcher[Tale], address string) {
					t.Helper()
					if err := d.Rewind(t.Context(), run, address, dispatcher.RewindOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				d := program(o, "pay")
				res, err := d.Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusFailed, "pay")
				if c.node != "pay" {
					o.Migrations = []dispatcher.Migration{{Name: "m", Nodes: map[string]string{"pay": c.node}}}
					d = program(o, c.node)
				} else {
					edits(d)
					goesBack(d, "")
				}
				edits(d)
				if err := d.Tag(t.Context(), run, "", "kept"); err != nil {
					t.Fatal(err)
				}
				res, err = d.Resume(t.Context(), run)
				completes(t, res, err)
				res, err = d.Turn(t.Context(), run, nil)
				completes(t, res, err)
				if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
					t.Fatal(err)
				}
				goesBack(d, "tag:kept")
				opened, err := d.Open(t.Context(), run)
				if err != nil || len(opened.InDoubt()) != 1 || opened.InDoubt()[0].ID != c.key || bank[c.key] != 1 {
					t.Fatalf("in doubt is %+v, %v; want %s of %v", opened.InDoubt(), err, c.key, bank)
				}
				if err := d.Resolve(t.Context(), run, c.node, "pay", dispatcher.NotHappened("it was taken back")); err != nil {
					t.Fatal(err)
				}
				res, err = d.Run(t.Context(), run, nil)
				completes(t, res, err)
			})
		})
	}
}

// What came of an effect behind such a checkpoint is known where the run, as it stood at the first
// entry that is left, had gone on from there, though it had gone back once more before the effect
// began.
func TestRewoundToAKeptCheckpointAgain(t *testing.T) {
	t.Parallel()
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var keys []string
		refuses := true
		body := dag.New[Tale]("body")
		dag.Step(body, "in", asksOnce)
		b := dag.New[Tale]("shop")
		dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return false }, 3)
		dag.Step(b, "pay", func(ctx context.Context, _ *Tale) error {
			_, err := dag.Effect(ctx, "pay", 1, func(ctx context.Context, _ int) (int, error) {
				if refuses {
					return 0, dag.NotDone
				}
				keys = append(keys, dag.Key(ctx))
				return 1, nil
			})
			return err
		})
		d := callsDispatcher(t, frozen(t, b), store, o)
		answers := func() {
			t.Helper()
			stands, err := d.Open(t.Context(), run)
			if err != nil || len(stands.Interrupts) != 1 {
				t.Fatalf("the run waits for %+v, %v", stands, err)
			}
			if err := d.Answer(t.Context(), run, stands.Interrupts[0].ID, "yes"); err != nil {
				t.Fatal(err)
			}
		}
		goesBack := func() {
			t.Helper()
			if err := d.Rewind(t.Context(), run, "tag:kept", dispatcher.RewindOptions{}); err != nil {
				t.Fatal(err)
			}
			res, err := d.Resume(t.Context(), run)
			rests(t, res, err, checkpoint.StatusInterrupted, "loop/2/in")
		}
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "loop/1/in", "pay")
		answers()
		res, err = d.Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusFailed, "loop/2/in", "pay")
		if err := d.Tag(t.Context(), run, "loop/1@1", "kept"); err != nil {
			t.Fatal(err)
		}
		refuses = false
		goesBack()
		answers()
		res, err = d.Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusInterrupted, "loop/3/in")
		if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
			t.Fatal(err)
		}
		goesBack()
		goesBack()
		if want := []string{"tale~1/pay#pay"}; !slices.Equal(keys, want) {
			t.Errorf("the effect was done under %q, want %q", keys, want)
		}
	})
}
