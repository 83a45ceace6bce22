package storetest

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// A mistake is a store that breaks one rule, and the cases of the suite that find it; others may
// find it too.
type mistake struct {
	what  string
	found []string // group/case
	f     Factory
}

// over is the Factory of a store that is a wrapper around one that keeps all rules.
func over(wrap func(sound) checkpoint.Store) Factory {
	return Factory{
		Open: func(testing.TB, string) checkpoint.Store { return wrap(sound{new(memory.Faulty)}) },
		Reopen: func(_ testing.TB, _ string, s checkpoint.Store) checkpoint.Store {
			_ = s.(wrapper).inner().Close() // never fails
			return wrap(sound{s.(wrapper).inner().Crash(0)})
		},
		Crash: func(_ testing.TB, _ string, s checkpoint.Store) checkpoint.Store {
			return wrap(sound{s.(wrapper).inner().Crash(s.(wrapper).inner().Unsafe())})
		},
		Corrupt: func(t testing.TB, _ string, s checkpoint.Store, d Damage) (checkpoint.Store, error) {
			f := s.(wrapper).inner()
			if d.At.Part != checkpoint.PartLog {
				f.Spoil(d.At.Run, d.At.Part)
				return s, nil
			}
			var instead []byte
			var err error
			switch d.Kind {
			case Flipped:
				if instead, err = f.Sealed(d.At.Run, d.At.Seq); err == nil {
					instead[len(instead)/2] ^= 1
				}
			case Foreign, Older:
				instead, err = f.Sealed(d.From.Run, d.From.Seq)
			case Forged:
				if instead, err = f.Sealed(d.At.Run, d.At.Seq); err == nil {
					instead = Forge(instead)
				}
			}
			if err == nil {
				err = f.Damage(d.At.Run, d.At.Seq, instead)
			}
			if err != nil {
				t.Fatal(err)
			}
			return s, nil
		},
		Fill: func(_ testing.TB, _ string, s checkpoint.Store) (free func()) {
			f := s.(wrapper).inner()
			f.Fail = func(context.Context, memory.Write) memory.Fault { return memory.Full }
			return func() { f.Fail = nil }
		},
		Limits: Limits{Large: 64 << 10},
	}
}

// A sound store keeps all rules. What wraps it breaks one.
type sound struct{ *memory.Faulty }

type wrapper interface{ inner() *memory.Faulty }

func (s sound) inner() *memory.Faulty { return s.Faulty }

// find returns the rule of that name, group/case.
func find(t *testing.T, name string) rule {
	t.Helper()
	for _, g := range groups {
		for _, r := range g.cases {
			if g.name+"/"+r.name == name {
				return r
			}
		}
	}
	t.Fatalf("the suite has no case %s", name)
	return rule{}
}

// Every store that breaks a rule is found by the case that is named, which says the rule; a store
// that breaks none passes the same case.
func TestBrokenStoresAreFound(t *testing.T) {
	intact := over(func(s sound) checkpoint.Store { return s })
	for _, m := range mistakes {
		t.Run(m.what, func(t *testing.T) {
			t.Parallel()
			for _, name := range m.found {
				r := find(t, name)
				switch broken := record(t, r, m.f); {
				case broken.Skipped():
					t.Errorf("%s is skipped: %s", name, broken.text())
				case !broken.Failed():
					t.Errorf("%s does not find it", name)
				case !strings.Contains(broken.text(), "the rule: "):
					t.Errorf("%s finds it and does not say the rule: %s", name, broken.text())
				default:
					t.Logf("%s says: %.400s", name, broken.text())
				}
				intact := intact
				if intact.Limits = m.f.Limits; intact.Limits.Append > 0 {
					intact.Open = func(testing.TB, string) checkpoint.Store {
						return bounded{sound{new(memory.Faulty)}, intact.Limits.Append}
					}
				}
				if sound := record(t, r, intact); sound.Failed() {
					t.Errorf("%s finds something in a store that keeps all rules: %s", name, sound.text())
				}
			}
		})
	}
}

// Whatever a store breaks, every case of the suite comes to its end in it, and panics in none. All
// stores are tried with PAWL_EACH=1, some without.
func TestSuiteEndsInBrokenStores(t *testing.T) {
	each := 12
	if os.Getenv("PAWL_EACH") == "1" {
		each = 1
	}
	for i, m := range mistakes {
		if i%each > 0 {
			continue
		}
		t.Run(m.what, func(t *testing.T) {
			t.Parallel()
			for _, g := range groups {
				for _, r := range g.cases {
					if said := record(t, r, m.f).text(); strings.Contains(said, "panic: ") {
						t.Errorf("%s/%s: %s", g.name, r.name, said)
					}
				}
			}
		})
	}
}

// The whole suite runs against a recorder, and a store that keeps all rules passes it, also if it
// makes no larger appends than it says: what stands around their data is small.
func TestSoundStorePasses(t *testing.T) {
	intact := over(func(s sound) checkpoint.Store { return bounded{s, 65 << 10} })
	for _, g := range groups {
		for _, r := range g.cases {
			if rec := record(t, r, intact); rec.Failed() {
				t.Errorf("%s/%s: %s", g.name, r.name, rec.text())
			}
		}
	}
}

// The newest snapshot is all that a store has to keep, and the suite asks for no other.
func TestOneSnapshotIsEnough(t *testing.T) {
	frugal := over(func(s sound) checkpoint.Store { return oneSnapshot{s} })
	for _, g := range groups {
		for _, r := range g.cases {
			if rec := record(t, r, frugal); rec.Failed() {
				t.Errorf("%s/%s: %s", g.name, r.name, rec.text())
			}
		}
	}
}

// What a Factory does not offer is skipped by name, with a reason that names the field.
func TestWhatIsNotOfferedIsSkipped(t *testing.T) {
	f := Factory{Open: func(testing.TB, string) checkpoint.Store { return new(memory.Store) }}
	for name, field := range map[string]string{
		"durability": "Reopen", "crash": "Crash", "corruption": "Corrupt",
	} {
		i := slices.IndexFunc(groups, func(g group) bool { return g.name == name })
		if reason := f.lacks(groups[i]); !strings.Contains(reason, "Factory."+field) {
			t.Errorf("the reason to skip %s is %q", name, reason)
		}
	}
	for name, field := range map[string]string{
		"limits/TooLargeChangesNothing": "Factory.Limits.Append", "limits/FullChangesNothing": "Factory.Fill",
	} {
		if rec := record(t, find(t, name), f); !rec.Skipped() || !strings.Contains(rec.text(), field) {
			t.Errorf("%s, skipped: %v, says %q", name, rec.Skipped(), rec.text())
		}
	}
}

// Every rule is said in the comment of the function that checks it.
func TestEveryRuleIsSaid(t *testing.T) {
	names := make(map[string]bool)
	for _, g := range groups {
		for _, r := range g.cases {
			if text := r.text(); len(text) < 60 {
				t.Errorf("the rule of %s/%s is %q", g.name, r.name, text)
			}
			if text := r.text(); !unicode.IsUpper(rune(text[0])) || strings.HasPrefix(strings.ToLower(text), strings.ToLower(r.name)) {
				t.Errorf("the rule of %s/%s is no sentence of its own: %q", g.name, r.name, text)
			}
			if names[r.name] {
				t.Errorf("two cases are named %s", r.name)
			}
			names[r.name] = true
		}
	}
}
