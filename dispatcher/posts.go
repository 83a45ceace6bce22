package dispatcher

import (
	"encoding/json"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// What was posted becomes entries of the log, oldest first, in as many appends as that takes: a
// store may refuse one that drains too much at once, and each message was accepted by itself. If
// all of them had to share an append nobody could go on with the run.

// postsMost is how many posts share an append at most: each is a key that the store deletes.
const postsMost = 500

// A portion is what shares an append: so many posts, and so many bytes of them and of what else is
// in it.
type portion struct{ posts, bytes int }

// fits reports whether a post of so many bytes may share the append. One that is larger than
// landingBytes has its own.
func (p portion) fits(bytes int) bool {
	return p == portion{} || p.posts < postsMost && p.bytes+bytes <= landingBytes
}

func (p *portion) add(bytes int) {
	p.posts++
	p.bytes += bytes
}

// firstPost is how many of lines, which drain posts, drain the first one, and how many bytes they
// have. All of what a post says counts or none of it, so they share an append.
func firstPost(lines []checkpoint.Entry) (n, bytes int) {
	for n < len(lines) && lines[n].Post == lines[0].Post {
		bytes += sizeOf(&lines[n]) + len(lines[n].Post)
		n++
	}
	return n, bytes
}

// portion is what waits for the next append.
func (r *run) portion() (p portion) {
	for i := range r.facts {
		x := &r.facts[i]
		if p.bytes += x.size(); x.Post != "" {
			p.posts++
		}
	}
	return p
}

// room makes what waits durable if it can't share an append with a post of so many bytes, and
// counts that. It reports whether the caller still owns the run.
func (r *run) room(h *tenure, p *portion, bytes int) bool {
	if !p.fits(bytes) {
		if *p = (portion{}); !r.flush(h) {
			return false
		}
	}
	p.add(bytes)
	return true
}

// takePosts drains what was posted. Every post becomes an entry, which deletes it.
func (r *run) takePosts(h *tenure) bool {
	select {
	case <-r.posted:
		r.journal.posts = true
	default:
	}
	if !r.journal.posts || r.c.store == nil {
		return true
	}
	r.journal.posts = false
	if !h.leave(inCall, doingPosts) {
		return false
	}
	posts, err := r.c.store.Posts(r.stored, r.id)
	if !h.back(inCall) {
		return false
	}
	if err != nil {
		if r.ctx.Err() != nil {
			return true // they stay where they are
		}
		r.breakOff(h, err)
		return false
	}
	return len(posts) == 0 || r.takeAll(h, posts)
}

// takeAll drains posts, behind what their senders may have read in the log. A cancel is heard
// before any append, however many of them there are.
func (r *run) takeAll(h *tenure, posts []checkpoint.Post) bool {
	if !r.catchUp(h) {
		return false
	}
	posts = r.unsaid(posts)
	lines := r.m.queued(posts, nil).line // posts are in the order of their numbers still
	oldestFirst(posts)
	for _, p := range posts {
		r.hearCancel(p)
	}
	shared := r.portion()
	for len(lines) > 0 {
		n, bytes := firstPost(lines)
		if !r.room(h, &shared, bytes) {
			return false
		}
		r.sayAll(lines[:n])
		lines = lines[n:]
	}
	for _, p := range posts {
		if p.Kind != checkpoint.PostAnswer && !r.takePost(h, &shared, p) {
			return false
		}
	}
	return shared.bytes <= landingBytes || r.flush(h) // what is decided next does not come on top of it
}

// drainBefore drains, before the call does anything, what the log has to say before it goes on:
// answers, if there are more of them than can share an append, input that is repeated, and a cancel
// that came when the run was at rest, or about to be; with UnlessCancelled also one that nobody has
// heard of a run which was left. It returns what else was posted.
func (r *run) drainBefore(posts []checkpoint.Post) ([]checkpoint.Post, error) {
	var lines []checkpoint.Entry
	if !shareAppend(posts) {
		lines = r.m.queued(posts, nil).line
	}
	lines = append(lines, r.repeated(r.m, r.journal.head, posts)...)
	if r.m.status.Resting() && r.m.status != checkpoint.StatusCancelled || r.wishes.unlessCancelled && underway(r.m.status) {
		lines = append(lines, r.m.cancelledBy(posts)...)
	}
	if len(lines) == 0 {
		return posts, nil
	}
	if err := r.amend(lines); err != nil {
		return nil, err
	}
	return without(posts, lines), nil
}

// shareAppend reports whether all answers among posts may share an append.
func shareAppend(posts []checkpoint.Post) bool {
	var shared portion
	for _, p := range posts {
		if p.Kind != checkpoint.PostAnswer {
			continue
		}
		if !shared.fits(len(p.Data)) {
			return false
		}
		shared.add(len(p.Data))
	}
	return true
}

// unsaid removes the posts which a fact drains that is not durable yet.
func (r *run) unsaid(posts []checkpoint.Post) []checkpoint.Post {
	return slices.DeleteFunc(posts, func(p checkpoint.Post) bool {
		return slices.ContainsFunc(r.facts, func(x fact) bool { return x.Post == p.ID })
	})
}

func (r *run) sayAll(lines []checkpoint.Entry) {
	for _, e := range lines {
		r.add(r.said(&e, r.m.find(e.Path)))
	}
}

// oldestFirst puts posts, which come in the order of their ids, in that of their posting.
func oldestFirst(posts []checkpoint.Post) {
	slices.SortStableFunc(posts, func(a, b checkpoint.Post) int { return a.At.Compare(b.At) })
}

// passed reports whether p was drained before, or is a cancel of an earlier call.
func (r *run) passed(p checkpoint.Post) bool {
	return r.m.seen[p.ID] || slices.Contains(r.moot, p.ID)
}

// takePost drains a post that is no answer. It reports whether the caller still owns the run.
func (r *run) takePost(h *tenure, shared *portion, p checkpoint.Post) bool {
	switch {
	case p.Kind == checkpoint.PostResolution && r.flies(p): // it may just be happening: poll comes back to it
		return true
	case r.passed(p):
	case p.Kind == checkpoint.PostTurn: // nextTurn takes it
		return true
	case p.Kind == checkpoint.PostCancel: // rest does
		return true
	}
	if !r.room(h, shared, len(p.ID)+len(p.Data)+entryOverhead) {
		return false
	}
	r.sayAll([]checkpoint.Entry{r.m.drained(p)})
	return true
}

// drained is the entry that a post becomes, if it is neither a cancel nor input nor an answer.
func (m *machine) drained(p checkpoint.Post) checkpoint.Entry {
	switch {
	case p.Kind == checkpoint.PostResolution: // also one that was seen when its visit had ended, if the run went back to the doubt since
		if e, ok := m.resolvedBy(p); ok {
			return e
		}
	case m.seen[p.ID]:
	case p.Kind == checkpoint.PostTag:
		var t checkpoint.Tag
		if err := json.Unmarshal(p.Data, &t); err == nil && m.tags[t.Name] == 0 {
			return checkpoint.Entry{Kind: checkpoint.Tagged, Post: p.ID, Data: p.Data}
		}
	case p.Kind == checkpoint.PostNote:
		return noteEntry(p)
	}
	return noted(p.ID, p.Kind)
}

// note drains a post that changes nothing.
func (r *run) note(id, kind string) {
	e := noted(id, kind)
	r.add(r.said(&e, nil))
}

func noted(id, kind string) checkpoint.Entry {
	return checkpoint.Entry{Kind: checkpoint.Noted, Post: id, Data: encode("a post of kind " + kind + " changed nothing")}
}
