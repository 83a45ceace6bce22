package record

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// A log is what counts of the entries of a run.
type log struct {
	run     string
	trimmed bool // its beginning is gone
	turn    int  // counted from 1
	keys
	last      time.Time
	started   int64 // milliseconds; 0 if the run has not begun, or its beginning is gone
	completed int64
	resting   *checkpoint.Resting // why the run rests, nil if it goes on or nobody has said
	restAt    uint64
	stands    uint64 // the last entry that brought the run on, or changed it: no name, note or trim from outside

	notes     []noted
	frames    []place // that visits hold
	steps     []step
	questions []asked
	effects   []*effect
	effect    map[effectKey]*effect // the last one that was not abandoned
}

// keys are what machines say of idempotency keys. Package dispatcher writes them; they are read
// leniently.
type keys struct {
	Generation int            // how often the run was rewound
	Vacated    map[string]int // how often migrations have taken a node's name from it
}

type noted struct {
	place
	checkpoint.Note
}

// A step is a visit that is done, or an attempt that failed.
type step struct {
	place
	outcome string
	failed  *checkpoint.FailedAttempt
}

type asked struct {
	place
	id string
	checkpoint.Interrupt
	answer    *checkpoint.Answer // nil if there is none
	answerSeq uint64
}

// newLog begins with what is known of the run where its log begins. What a base says of that is
// read leniently: it is the machine of package dispatcher.
func newLog(ctx context.Context, s checkpoint.Store, info checkpoint.Info) (*log, error) {
	l := &log{run: info.Run, trimmed: info.First > 1, turn: 1, effect: map[effectKey]*effect{}}
	if info.Base == "" {
		return l, nil
	}
	base, err := s.Base(ctx, info.Run, info.Base)
	if err != nil {
		return nil, err
	}
	var machine struct {
		Turn int
		keys
	}
	if json.Unmarshal(base, &machine) == nil {
		l.turn, l.keys = max(machine.Turn, 1), machine.keys
		if !l.trimmed { // a fork begins a count of its own
			l.Generation = 0
		}
	}
	return l, nil
}

// hear follows the log by an entry, whose memory it does not keep.
func (l *log) hear(e *checkpoint.Entry) error {
	l.last = e.At
	if e.Kind != checkpoint.Tagged && e.Kind != checkpoint.Trimmed && (e.Kind != checkpoint.Noted || e.Path != "") {
		l.stands = e.Seq
	}
	at := place{seq: e.Seq, turn: l.turn, path: e.Path, at: e.At, is: e.Path}
	switch e.Kind {
	case checkpoint.Entered, checkpoint.Resumed:
		l.resting = nil
		if l.started == 0 && !l.trimmed {
			l.started = millis(e.At)
		}
		if e.Path != "" { // that of a visit
			l.frames = append(l.frames, at)
		}
	case checkpoint.TurnBegun:
		var d checkpoint.Turn
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		l.turn = max(d.Number, l.turn+1)
	case checkpoint.Noted:
		n := noted{place: at}
		if json.Unmarshal(e.Data, &n.Note) == nil && n.Name != "" { // else it is no note
			l.notes = append(l.notes, n)
		}
	case checkpoint.Done:
		l.steps = append(l.steps, step{place: at, outcome: e.Outcome})
	case checkpoint.AttemptFailed:
		x := step{place: at, failed: new(checkpoint.FailedAttempt)}
		l.steps = append(l.steps, x)
		return json.Unmarshal(e.Data, x.failed)
	case checkpoint.Interrupted:
		l.questions = append(l.questions, asked{place: at, id: e.ID})
		return json.Unmarshal(e.Data, &l.questions[len(l.questions)-1].Interrupt)
	case checkpoint.Answered:
		return l.answered(e)
	case checkpoint.EffectBegun:
		return l.begun(e, at)
	case checkpoint.EffectEnded:
		return l.ended(e, at)
	default:
		return l.turned(e)
	}
	return nil
}

// turned hears what ends or takes back.
func (l *log) turned(e *checkpoint.Entry) error {
	switch e.Kind {
	case checkpoint.Voided:
		var paths []string
		if err := json.Unmarshal(e.Data, &paths); err != nil {
			return err
		}
		l.void(e.Seq, paths)
	case checkpoint.Edited:
		var d checkpoint.Edit
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		l.void(e.Seq, d.Voids)
	case checkpoint.Rewound:
		return l.rewound(e)
	case checkpoint.Migrated:
		return l.migrated(e)
	case checkpoint.Completed:
		l.completed, l.resting = millis(e.At), nil
	case checkpoint.Cancelled, checkpoint.TimedOut, checkpoint.Failed:
		l.resting, l.restAt = nil, e.Seq
		if len(e.Data) > 0 {
			l.resting = new(checkpoint.Resting)
			return json.Unmarshal(e.Data, l.resting)
		}
	}
	return nil
}

// retries makes final failures attempts, of the visits that were tried again.
func (l *log) retries() {
	type visit struct {
		turn int
		path string
	}
	again := map[visit]bool{}
	for i := range slices.Backward(l.steps) {
		x := &l.steps[i]
		v := visit{x.turn, x.is}
		if x.forgotten() {
			v.path += x.path
		}
		if x.failed != nil && again[v] {
			x.failed.Final = false
		}
		again[v] = true
	}
}

// void drops what visits, and all inside them, have done and said in the turn. Their effects have
// happened. The answers to a visit's own questions stay: it has them when it runs again. What was
// approved of it, and what was answered inside it, is asked anew.
func (l *log) void(seq uint64, paths []string) {
	inside := func(p *place) bool {
		return p.turn == l.turn && slices.ContainsFunc(paths, func(v string) bool { return strings.HasPrefix(p.is, v+"/") })
	}
	drop := func(p *place, itself bool) {
		if inside(p) || itself && p.turn == l.turn && slices.Contains(paths, p.is) {
			p.drop(seq)
		}
	}
	for i := range l.notes {
		drop(&l.notes[i].place, true)
	}
	for i := range l.steps {
		drop(&l.steps[i].place, true)
	}
	for i := range l.questions {
		q := &l.questions[i]
		drop(&q.place, q.answer == nil || q.Kind != string(dispatcher.KindAsked) && !l.spent(q))
	}
}

// spent reports whether a question was about an effect that has begun, or ended, by the answer.
func (l *log) spent(q *asked) bool {
	switch dispatcher.InterruptKind(q.Kind) {
	case dispatcher.KindDoubt:
		return true
	case dispatcher.KindEffect:
		return slices.ContainsFunc(l.effects, func(x *effect) bool { return x.Approval == q.id && !x.gone() })
	}
	return false
}

// settle leaves out what does not count where the log ends. Effects have happened.
func (l *log) settle() {
	l.notes = slices.DeleteFunc(l.notes, func(n noted) bool { return n.gone() })
	l.steps = slices.DeleteFunc(l.steps, func(x step) bool { return x.gone() })
	l.questions = slices.DeleteFunc(l.questions, func(q asked) bool { return q.gone() })
}

// rewound drops what was abandoned, and has count again what an earlier entry took back that did
// count at the checkpoint. A question that was open there is asked anew, and so is every other one
// of a visit that begins anew.
func (l *log) rewound(e *checkpoint.Entry) error {
	var d checkpoint.Rewinding
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return err
	}
	was := l.Generation
	l.keys = keys{}
	if err := json.Unmarshal(d.Machine, &l.keys); err != nil {
		return err
	}
	l.Generation, l.turn = max(l.Generation, was+1), max(d.Turn, 1)
	l.each(func(p *place) { p.back(e.Seq, d.To) })
	stays := l.stays()
	for i := range l.questions {
		if q := &l.questions[i]; q.answer == nil || q.answerSeq > d.To || !stays(q) {
			q.drop(e.Seq)
		}
	}
	l.underWay()
	l.resting = nil
	return nil
}

// stays tells which answered questions a run that goes back does not ask anew: those of visits that
// have ended since, or hold a frame that goes on, or are no more, and those about effects that have
// begun.
func (l *log) stays() func(*asked) bool {
	since := map[string]uint64{} // by paths, the last entry of an end or a frame
	for i := range l.steps {
		if x := &l.steps[i]; !x.gone() && (x.failed == nil || x.failed.Final && !x.failed.Unfollowed) {
			since[x.is] = x.seq
		}
	}
	for i := range l.frames {
		for path := l.frames[i].is; !l.frames[i].gone() && path != ""; path = around(path) {
			since[path] = l.frames[i].seq
		}
	}
	return func(q *asked) bool { return since[q.is] > q.seq || q.forgotten() || l.spent(q) }
}

// migrated has what was said go with its visits: the log tells of them by other paths from here on.
func (l *log) migrated(e *checkpoint.Entry) error {
	var d checkpoint.Migration
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return err
	}
	is := keys{Generation: l.Generation}
	if err := json.Unmarshal(d.Machine, &is); err != nil {
		return err
	}
	l.Vacated = is.Vacated
	l.each(func(p *place) {
		if !p.gone() {
			p.migrated(e.Seq, &d)
		}
	})
	l.underWay()
	return nil
}

// each does something with the places of all that was said, also of what does not count.
func (l *log) each(do func(*place)) {
	for i := range l.notes {
		do(&l.notes[i].place)
	}
	for i := range l.frames {
		do(&l.frames[i])
	}
	for i := range l.steps {
		do(&l.steps[i].place)
	}
	for i := range l.questions {
		do(&l.questions[i].place)
	}
	for _, x := range l.effects {
		do(&x.place)
	}
}

func (l *log) answered(e *checkpoint.Entry) error {
	q := l.question(e.ID)
	if q == nil {
		return nil
	}
	q.answer, q.answerSeq = new(checkpoint.Answer), e.Seq
	return json.Unmarshal(e.Data, q.answer)
}

// question is the one that was asked last under an id, nil if there is none, or it was trimmed.
func (l *log) question(id string) *asked {
	for i := range slices.Backward(l.questions) {
		if q := &l.questions[i]; q.id == id {
			return q
		}
	}
	return nil
}

func (x *step) action() Action {
	a := Action{Description: x.path, Timestamp: millis(x.at), Outcome: OutcomeSuccess}
	if x.turn > 1 {
		a.Description = strconv.Itoa(x.turn) + "/" + a.Description
	}
	switch {
	case x.failed != nil && x.failed.Final:
		a.Outcome = OutcomeFailure
		a.Description += ": " + x.failed.Message
	case x.failed != nil:
		a.Outcome = OutcomePartial
		a.Description += ": " + x.failed.Message
	case x.outcome != "":
		a.Description += " (" + x.outcome + ")"
	}
	return a
}

// millis is an instant as records tell it. One that nobody set, or that a clock set before 1970,
// is not told.
func millis(t time.Time) int64 { return max(t.UnixMilli(), 0) }
