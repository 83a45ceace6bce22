package dispatcher

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// A settling tells a machine that was replayed up to an entry what came, behind it, of the
// effects that it knows and that had not ended. It reads the log to its head, since what was
// abandoned in it has happened all the same: the other side knows an effect by its key, which
// is that of a visit in a generation of the run.
type settling struct {
	run        string
	m          *machine
	generation int            // of the run, at the entry
	vacated    map[string]int // the machine's, at the entry
	open       []*unsettled
	head       uint64 // of the log
}

// An unsettled effect is one of m that has not ended, as far as it was followed.
type unsettled struct {
	path, key string
	// ids are the idempotency keys under which it has begun. Another effect that a migration has
	// brought under its path and key, or that begins there while this one is not followed, has none
	// of them.
	ids []string
	// followed is whether the effect of this path and key is this one, here in the log.
	followed bool
}

// settleEffects tells a machine that was replayed up to an entry how the effects ended that
// had not ended there.
func (c *core) settleEffects(ctx context.Context, id string, m *machine, from, to uint64) error {
	s := &settling{run: id, m: m, generation: m.generation, vacated: m.vacated, head: to}
	for path, of := range m.effects {
		for key, e := range of {
			if e.state == effectBegun || e.state == effectNotDone {
				s.open = append(s.open, &unsettled{path, key, []string{effectID(id, m.turn, path, key, e)}, true})
			}
		}
	}
	if len(s.open) == 0 || from == to {
		return nil
	}
	info, err := c.store.Stat(ctx, id)
	if err != nil {
		return err
	}
	if from+1 < info.First { // the checkpoint was kept for its name, and entries behind it are gone
		z, err := c.base(ctx, id, info.Base)
		if err != nil {
			return err
		}
		s.leap(z, within(led(z.Lineage, info.First-1), from))
		from = info.First - 1
	}
	for e, err := range c.store.Read(ctx, id, from+1, to) {
		if err != nil {
			return err
		}
		if err := s.hear(&e); err != nil {
			return &checkpoint.CorruptError{Run: id, Seq: e.Seq, Reason: err.Error()}
		}
	}
	return nil
}

// leap goes on where the log begins that is left, as z: led is whether the run came there from the
// entry, however often it went back to that. What came of an effect that the run does not know
// there is gone: that one is in doubt, also if it had not happened at the entry, for it may have
// been tried again.
func (s *settling) leap(z *frozenMachine, led bool) {
	s.generation, s.vacated = z.Generation, z.Vacated
	same := slices.EqualFunc(z.Renames, s.m.renames, maps.Equal[map[string]string])
	led = led && z.Turn == s.m.turn // then one of its path and key is the one of the entry, in whatever generation it has begun
	for _, u := range s.open {
		is, there := z.Effects[u.path][u.key]
		e := is.thaw()
		if u.followed = same && (led && there || s.known(u, z)); u.followed {
			u.ids = append(u.ids, effectID(s.run, z.Turn, u.path, u.key, e))
		} else {
			e = s.m.effects[u.path][u.key].doubted(s.head, s.m.generationOf(u.path))
		}
		s.m.setEffect(&fact{Path: u.path, extra: &extra{ID: u.key}}, e)
	}
}

// known reports whether z knows the effect, under its path and key.
func (s *settling) known(u *unsettled, z *frozenMachine) bool {
	is, there := z.Effects[u.path][u.key]
	return there && slices.Contains(u.ids, effectID(s.run, z.Turn, u.path, u.key, is.thaw()))
}

// doubted is an effect of which nobody knows any more whether it happened, as a rewind finds behind
// head. One that had not happened at the entry, where its visit was in that generation, has begun
// behind it under the key that it had there.
func (was *effect) doubted(head uint64, generation int) *effect {
	e := *was
	if e.state == effectNotDone {
		e.generation, e.at = generation, ""
	}
	e.state, e.why, e.resolved, e.by, e.anew = effectBegun, "", false, "", head
	return &e
}

// hear follows the log by an entry. Whether the visit of an effect is open does not matter: it
// may have finished where m stands, and may run again when a frame around it is voided.
func (s *settling) hear(e *checkpoint.Entry) error {
	switch e.Kind {
	case checkpoint.TurnBegun: // the same path is another visit from here on
		for _, u := range s.open {
			u.followed = false
		}
	case checkpoint.Rewound:
		return s.rewound(e)
	case checkpoint.Migrated:
		return s.migrated(e)
	case checkpoint.EffectBegun, checkpoint.EffectEnded:
		for _, u := range s.open {
			if u.followed && u.path == e.Path && u.key == e.ID {
				return s.settle(u, e)
			}
		}
	}
	return nil
}

// rewound finds which of the effects the run knows where it goes on.
func (s *settling) rewound(e *checkpoint.Entry) error {
	var d checkpoint.Rewinding
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return err
	}
	z, err := parseMachine(d.Machine)
	if err != nil {
		return err
	}
	s.generation, s.vacated = z.Generation, z.Vacated
	for _, u := range s.open {
		u.followed = s.known(u, z)
	}
	return nil
}

// migrated no longer follows effects of visits that have another path from here on: what begins
// there has another key, and what begins under the path is another visit's. A path that is followed
// has kept its name, and so its keys.
func (s *settling) migrated(e *checkpoint.Entry) error {
	var d checkpoint.Migration
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return err
	}
	for _, u := range s.open {
		if is, there := d.Renamed(u.path); !there || is != u.path {
			u.followed = false
		}
	}
	return nil
}

// settle takes over an entry of an effect. Under which approval it began does not matter: the
// visit begins anew, and has none that is not spent.
func (s *settling) settle(u *unsettled, e *checkpoint.Entry) error {
	is := s.m.effects[u.path][u.key]
	switch {
	case e.Kind == checkpoint.EffectBegun && is.state != effectEnded && is.state != effectLost:
		var b checkpoint.BegunEffect
		if err := json.Unmarshal(e.Data, &b); err != nil {
			return err
		}
		is = is.begin(&b, e.Attempt, generationIn(s.generation, s.vacated, u.path))
		u.ids = append(u.ids, effectID(s.run, s.m.turn, u.path, u.key, is))
	case e.Kind == checkpoint.EffectEnded && is.state == effectBegun:
		var end checkpoint.EndedEffect
		if err := json.Unmarshal(e.Data, &end); err != nil {
			return err
		}
		is = is.end(&end)
	}
	s.m.setEffect(&fact{Path: u.path, extra: &extra{ID: u.key}}, is)
	return nil
}

// under reports whether the effect, which may be nil, was begun in a generation of the run and
// is not known to have ended.
func (was *effect) under(generation int) bool {
	return was != nil && was.state == effectBegun && was.generation == generation
}
