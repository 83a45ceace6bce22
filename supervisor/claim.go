package supervisor

// How a submission stands to a ticket of the same run that is there: it joins, or is refused.
type joining uint8

const (
	joins    joining = iota + 1
	revives          // joins, and goes on with a run that was cancelled
	alone            // is refused, and else goes on with such a run too
	recovers         // joins, and nobody has submitted it
)

// A claim is what those who wait for a run want of it.
//
// Invariant: it is of all of them together. Who joins adds to it, and nobody takes anything away
// but a store that had no room (renew).
type claim struct {
	recovers  bool // a Recover waits for the run; behind end none comes to
	submitted bool // so does somebody who has submitted it: it is not left at rest
	revives   bool // one of these goes on with it although it was cancelled, as Submit does
}

// claim is that of one submission.
func (how joining) claim() claim {
	return claim{recovers: how == recovers, submitted: how != recovers, revives: how == revives || how == alone}
}

// add joins another one's.
func (c *claim) add(of claim) {
	c.recovers = c.recovers || of.recovers
	c.submitted = c.submitted || of.submitted
	c.revives = c.revives || of.revives
}

// renew is for a run that was left running: who cancels it from now on, or deletes it, has ended it
// for all who have submitted it before.
func (c *claim) renew() { c.submitted, c.revives = false, false }

// submitted reports whether somebody who waits for a run has submitted it.
func (s *Supervisor) submitted(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tickets[run].claim.submitted
}

// stays reports whether a run that somebody has cancelled is left so when it is its turn: nobody
// who waits for it has submitted it as a cancelled one, to go on with that.
func (s *Supervisor) stays(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.tickets[run].claim.revives
}
