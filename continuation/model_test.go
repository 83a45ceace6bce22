package continuation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
)

// A spec is a wait at random: of one part, or Any of several.
type spec struct {
	parts        []continuation.Wait
	expire       string // what OnExpire says
	further      int
	to           dag.Authority
	within       time.Duration // of the escalation
	max          int           // failures
	attempts     int           // of the policy: none beside the first, or as many as it takes
	feeds, frame bool
}

func randomSpec(r *rand.Rand) (s spec) {
	s = spec{expire: "fire", max: 1 + r.IntN(3), attempts: 9 * r.IntN(2), feeds: r.IntN(2) == 0, frame: r.IntN(2) == 0}
	reply := continuation.Wait{Key: "k", Within: 5 * time.Minute}
	result := continuation.Wait{Kind: continuation.KindExternal, Key: "op", Within: 20 * time.Minute, Authority: dag.System}
	approval := continuation.Wait{Kind: continuation.KindApproval, Key: "a", Within: 10 * time.Minute}
	if s.feeds {
		approval.OnDeny = continuation.Feed
	}
	if r.IntN(4) == 0 {
		approval.Authority, approval.SafeToAutoExecute = continuation.Anybody, true
	}
	timer := continuation.Wait{Kind: continuation.KindTimer, Key: "alarm", After: 7 * time.Minute, Within: 4 * time.Minute}
	s.parts = [][]continuation.Wait{
		{reply}, {result}, {approval}, {timer}, {reply, approval}, {approval, result}, {reply, timer}, {timer, approval},
	}[r.IntN(8)]
	first := &s.parts[0]
	first.MaxFailures = s.max
	if s.timer() != nil {
		if r.IntN(2) == 0 && first.Kind != continuation.KindTimer || r.IntN(3) == 0 {
			s.expire, first.OnExpire = "expire", continuation.Expire()
		}
		return s
	}
	switch r.IntN(4) {
	case 0:
		s.expire = "expire"
	case 1:
		s.expire, first.OnExpire = "default", continuation.Default("fine by default")
	case 2:
		s.expire, s.further, s.to, s.within = "escalate", 1, dag.Agent, time.Duration(r.IntN(2))*3*time.Minute
		first.OnExpire = continuation.Escalate(s.to, s.within)
	case 3:
		s.expire, s.further = "again", 1+r.IntN(2)
		first.OnExpire = continuation.Again(s.further)
	}
	return s
}

func (s *spec) wait() continuation.Wait {
	if len(s.parts) == 1 {
		return s.parts[0]
	}
	return continuation.Any(s.parts...)
}

func (s *spec) timer() *continuation.Wait {
	for i := range s.parts {
		if s.parts[i].Kind == continuation.KindTimer {
			return &s.parts[i]
		}
	}
	return nil
}

func (s *spec) String() string {
	return fmt.Sprintf("%+v, %s %d, at most %d failures, %d attempts, feeds %t, in a frame %t", s.parts, s.expire, s.further, s.max, s.attempts, s.feeds, s.frame)
}

// A model is what package continuation says of a wait: no more than its docs do.
type model struct {
	spec
	status   continuation.Status // Pending, or that of its end
	reason   continuation.Reason
	end      continuation.Reason // of the run; "" if it goes on
	asked    time.Time
	until    time.Time
	level    int
	failures int
	lapses   int    // all of them
	dropped  int    // of them: those behind triggers that it has had before
	has      string // the id of its trigger
	woke     bool   // it was ended without one
	failed   bool   // the run has failed behind it, and is to be brought back, which asks again
	dead     bool   // whoever was at work
	said     []string
	took     map[string]continuation.Trigger
	runs     map[string]int // how often the node has had a payload
}

// An alternative is what ends the wait as it is asked now.
type alternative struct {
	kind      continuation.Kind
	key       string
	authority dag.Authority
	until     time.Time // of a part that is over before the wait is
	feeds     bool
}

func (m *model) alternatives() (all []alternative) {
	for _, p := range m.parts {
		a := alternative{kind: p.Kind, key: p.Key, authority: p.Authority, feeds: p.OnDeny == continuation.Feed}
		if a.kind == "" {
			a.kind = continuation.KindReply
		}
		switch {
		case m.expire == "escalate" && m.level > 1:
			a.authority = m.to
		case a.authority != "":
		case a.kind == continuation.KindApproval:
			a.authority = dag.Human
		case a.kind == continuation.KindTimer:
			a.authority = dag.System
		default:
			a.authority = continuation.Anybody
		}
		if a.kind != continuation.KindTimer && len(m.parts) > 1 {
			a.until = m.asked.Add(m.takes(&p))
		}
		all = append(all, a)
	}
	return all
}

// takes is how long a part may take at this level.
func (m *model) takes(p *continuation.Wait) time.Duration {
	if m.expire == "escalate" && m.level > 1 && m.within > 0 {
		return m.within
	}
	return p.Within
}

func (m *model) ask(now time.Time, level int) {
	m.status, m.reason, m.end, m.asked, m.level = continuation.StatusPending, "", "", now, level
	m.has, m.woke, m.failed, m.dropped = "", false, false, m.lapses
	m.until = now
	for i := range m.parts {
		if until := now.Add(m.takes(&m.parts[i])); until.After(m.until) {
			m.until = until
		}
	}
	if t := m.timer(); t != nil {
		m.until = now.Add(t.After)
	}
}

func (m *model) pends() bool                { return m.end == "" && m.has == "" }
func (m *model) overdue(now time.Time) bool { return m.pends() && !now.Before(m.until) }
func (m *model) used() int                  { return m.failures + m.lapses - m.dropped }

func (m *model) ends(reason, end continuation.Reason) {
	m.status, m.reason, m.end = reason.Status(), reason, end
}

// expires has the instant of the wait end it.
func (m *model) expires(now time.Time) {
	switch {
	case m.expire == "fire", m.expire == "expire" && m.timer() != nil && now.Before(m.until.Add(m.timer().Within)):
		m.woke = true
		m.node("", false, now)
	case m.expire == "default":
		m.woke = true
		m.node("fine by default", false, now)
	case m.level <= m.further:
		m.ask(now, m.level+1)
	default:
		m.woke = true
		m.ends(continuation.Expired, continuation.RunFailed)
	}
}

// node goes on behind the wait.
func (m *model) node(payload string, denied bool, now time.Time) {
	n := m.runs[payload]
	m.runs[payload]++
	switch word, _, _ := strings.Cut(payload, " "); {
	case dies(word, n):
		m.dead, m.lapses = true, m.lapses+1
	case !fails(word):
		m.said = append(m.said, payload)
		m.ends(continuation.Completed, continuation.Completed)
	case denied:
		m.ends(continuation.RunFailed, continuation.RunFailed)
	default:
		switch m.failures++; {
		case m.failures >= m.max:
			m.ends(continuation.MaxAttempts, continuation.RunFailed)
		case m.attempts > 0:
			m.ask(now, m.level)
		case m.used() >= m.max: // a Runtime goes on no more often
			m.ends(continuation.RunFailed, continuation.RunFailed)
		default:
			m.failed = true
		}
	}
}

// goes has the node get the trigger that the wait has; a Runtime brings back a run that fails so.
func (m *model) goes(now time.Time) {
	if t := m.took[m.has]; !m.failed {
		m.node(payload(&t), t.Decision == continuation.Denied, now)
	}
	if m.failed {
		m.ask(now, m.level)
	}
}

// trigger is the word for how a trigger is refused, "" if it is not, and whether it changes
// anything.
func (m *model) trigger(t *continuation.Trigger, now time.Time) (refused string, changes bool) {
	if was, ok := m.took[t.ID]; ok {
		if string(was.Payload) != string(t.Payload) {
			return "mismatch", false
		}
		if t.LeaveIt || m.end != "" { // else the run is gone on with, whatever it has to go on with
			return "", false
		}
		return "", m.goesOn(now)
	}
	known := false // whether it takes a trigger of the key
	for _, a := range m.alternatives() {
		known = known || a.key == t.Key
	}
	switch {
	case m.end != "" && (t.Wait != "" || known):
		return "ended", false
	case m.end != "":
		return "not found", false
	case t.Wait == "" && !known:
		return "mismatch", false
	}
	if m.overdue(now) {
		fires := t.Kind == continuation.KindTimer && m.timer() != nil && t.Key == m.timer().Key
		if m.expires(now); fires {
			return "", true
		}
		if m.end != "" {
			return "expired", true
		}
		refused, _ := m.trigger(t, now)
		return refused, true
	}
	for _, a := range m.alternatives() {
		if a.kind != t.Kind || a.key != t.Key {
			continue
		}
		switch {
		case m.pends() && !a.until.IsZero() && !now.Before(a.until):
			return "expired", false
		case m.pends() && t.Kind == continuation.KindTimer:
			return "mismatch", false
		case a.authority != continuation.Anybody && a.authority != t.Actor.Authority:
			return "authority", false
		case m.used() >= m.max:
			return "attempts", false
		case m.failed:
			m.ask(now, m.level)
			refused, _ := m.trigger(t, now)
			return refused, true
		case m.has != "":
			return "taken", false
		case string(t.Payload) == "5":
			return "payload", false
		}
		m.accepts(t, a.feeds, now)
		return "", true
	}
	return "mismatch", false
}

func (m *model) accepts(t *continuation.Trigger, feeds bool, now time.Time) {
	m.took[t.ID], m.has = *t, t.ID
	switch {
	case t.Decision == continuation.Denied && !feeds:
		m.ends(continuation.ApprovalDenied, continuation.ApprovalDenied)
	case !t.LeaveIt:
		m.goes(now)
	}
}

// sweep ends what is due, and approves what is safe.
func (m *model) sweep(now time.Time) bool {
	if m.overdue(now) {
		m.expires(now)
		return true
	}
	for i, a := range m.alternatives() {
		safe := m.parts[i].SafeToAutoExecute && (a.authority == continuation.Anybody || a.authority == dag.System)
		if safe && m.pends() && m.used() < m.max && (a.until.IsZero() || now.Before(a.until)) {
			m.accepts(&continuation.Trigger{ID: "safe", Decision: continuation.Approved}, false, now)
			return true
		}
	}
	return false
}

// safe reports whether a sweep might approve.
func (m *model) safe() bool {
	return slices.ContainsFunc(m.parts, func(p continuation.Wait) bool { return p.SafeToAutoExecute })
}

// recovers goes on with what was left.
func (m *model) recovers(now time.Time) bool {
	some := m.end == "" && m.has != "" && m.used() < m.max
	if some {
		m.goes(now)
	}
	return some
}

// goesOn goes on with a run that has something to go on with.
func (m *model) goesOn(now time.Time) bool {
	if m.overdue(now) {
		m.expires(now)
		return true
	}
	return m.recovers(now)
}

// serve does both until an instant, each time that something is due, and after a minute.
func (m *model) serve(now, end time.Time) {
	for now.Before(end) && !m.dead {
		if !m.sweep(now) {
			m.recovers(now)
		}
		recheck := now.Add(time.Minute)
		if now = m.until; !m.pends() || recheck.Before(now) {
			now = recheck
		}
	}
}

func (m *model) stop(reason continuation.Reason) {
	if m.end == "" {
		m.ends(reason, reason)
	}
}

// stopped reports whether the run was stopped, or cancelled by a denial: a call of the dispatcher
// brings it back.
func (m *model) stopped() bool {
	return m.end != "" && m.end != continuation.Completed && m.end != continuation.RunFailed
}

// run is a call of the dispatcher, which goes on whatever the bounds say.
func (m *model) run(now time.Time) {
	if m.end == continuation.ApprovalDenied { // its node is told
		m.end = continuation.RunFailed
		return
	}
	if m.stopped() {
		m.status, m.reason, m.end = continuation.StatusPending, "", ""
	}
	switch t := m.took[m.has]; {
	case m.failed:
		m.ask(now, m.level)
	case m.has != "":
		m.node(payload(&t), t.Decision == continuation.Denied, now)
	case m.overdue(now):
		m.expires(now)
	}
}

// void has the frame of the wait begin anew, and the run go on.
func (m *model) void(now time.Time) {
	m.failures, m.lapses = 0, 0
	m.ask(now, 1)
}
