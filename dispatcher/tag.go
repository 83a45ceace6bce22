package dispatcher

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// Tag gives a checkpoint of a run a name, by which [Dispatcher.At] and whatever else takes an
// address finds it: "tag:NAME". It returns when the name is durable and can be found. The address
// is one as At takes it; "" is the last checkpoint. The run may be in any status, and live, and of
// another graph than the dispatcher's. [Author] says who gives the name.
//
// A name has 1 to 128 bytes of UTF-8 without control characters and without an @. It stays where it
// was given, so that nothing is lost by using it again: giving it to another checkpoint is a
// [*TagError], giving it to the same one changes nothing.
//
// Tag waits for a Trim that is under way. If that takes longer than Options.Grace the error is
// checkpoint.ErrBusy, or ErrStillRunning if it is a Trim by Options.Retention that a call of this
// dispatcher has abandoned; Tag may be called again. If the Trim has dropped the checkpoint the
// error is checkpoint.ErrCursor. The log may have the name then, and it is spent: it leads nowhere
// and can't be given to another checkpoint. [ErrNotFound] if the run is deleted meanwhile, also if
// it is begun anew under its id: that one may have the name then. Any other error that is no
// refusal, such as one of the store, may leave the name to the checkpoint: call Tag again to find
// out.
func (d *Dispatcher[S]) Tag(ctx context.Context, run, address, name string, options ...RunOption) error {
	return d.inside().tag(ctx, run, address, name, options)
}

// A TagError says that a name is given to another checkpoint of the run. Nothing has changed.
type TagError struct {
	Run  string
	Name string
	Seq  uint64 // where the name is
}

func (e *TagError) Error() string {
	return fmt.Sprintf("dispatcher: run %q: the tag %q is given to %s@%d and stays there: use another name",
		e.Run, e.Name, e.Run, e.Seq)
}

// maxTag is how many bytes a tag may have.
const maxTag = 128

// tagAddress is what an address begins with that is a tag. No other address does and has no @.
const tagAddress = "tag:"

func checkTag(name string) error {
	reason := badText(name, maxTag)
	switch {
	case name == "":
		reason = "is empty"
	case strings.ContainsRune(name, '@'):
		reason = "holds an @, as no name does that is part of an address"
	}
	if reason != "" {
		return &OptionError{fmt.Sprintf("tag %.40q", name), reason}
	}
	if reason := secretForm(name); reason != "" {
		return &SecretError{"tag", ".", reason}
	}
	return nil
}

// tagPost is the id under which a run's name for a checkpoint is posted. The name itself is no part
// of it: it may say what the run says, and a store that is encrypted keeps ids in the clear.
func tagPost(run, name string) string {
	sum := sha256.Sum256([]byte(run + "\x00" + name))
	return "tag:" + hex.EncodeToString(sum[:16])
}

// tag is Tag. The name is posted first, under an id made of it, so that of two different
// checkpoints that are given it at once the store refuses the second. Then whoever has the
// lease, a live run or Tag itself, drains it into the log.
func (c *core) tag(ctx context.Context, id, address, name string, options []RunOption) error {
	if err := c.calledFor(ctx, id); err != nil {
		return err
	}
	info, err := c.store.Stat(ctx, id)
	if err != nil {
		return c.refuse(id, missing(err))
	}
	err = c.tagIn(ctx, id, address, name, options)
	if gone := c.remains(ctx, &info); errors.Is(gone, checkpoint.ErrNotFound) {
		return c.refuse(id, gone) // what came of it is of another run
	}
	return err
}

// tagIn is tag in the run that is there.
func (c *core) tagIn(ctx context.Context, id, address, name string, options []RunOption) error {
	by, err := c.author(options)
	if err == nil {
		err = checkTag(name)
	}
	if err != nil {
		return c.refuse(id, err)
	}
	point, err := c.locate(ctx, id, address)
	if err != nil {
		return err
	}
	if done, err := c.hasTag(ctx, id, name, point.Seq, c.tagsInLog); done || err != nil { // one that is posted may not have been heard of
		return err
	}
	post := checkpoint.Post{
		ID: tagPost(id, name), Kind: checkpoint.PostTag,
		Data: encode(checkpoint.Tag{Name: name, Seq: point.Seq, Author: by}),
	}
	if err = c.store.Post(ctx, id, post); err == nil || errors.Is(err, checkpoint.ErrConflict) {
		err = c.drainTag(ctx, id, &posted{Post: post})
	}
	if err != nil && !errors.Is(err, checkpoint.ErrConflict) {
		return c.refuse(id, err)
	}
	done, err := c.hasTag(ctx, id, name, point.Seq, c.tags) // of somebody else, meanwhile
	switch {
	case err != nil:
		return err
	case !done:
		return c.refuse(id, fmt.Errorf("%w: the tag %q was left to the run, which has it no more: "+
			"perhaps it was deleted and begun anew meanwhile: call Tag again", checkpoint.ErrConflict, name))
	}
	_, err = c.locate(ctx, id, tagAddress+name) // a Trim was under way, and has dropped it
	return err
}

// drainTag drains a tag that was posted, or leaves it to who has the run. Who is trimming it may
// have read its tags before: that is waited for.
func (c *core) drainTag(ctx context.Context, id string, p *posted) error {
	began := time.Now()
	for wait := time.Millisecond; ; wait = min(2*wait, 64*time.Millisecond) {
		_, err := c.drain(ctx, id, p, standing{})
		if !busy(err) {
			return err
		}
		info, failed := c.store.Stat(ctx, id)
		switch {
		case failed != nil:
			return failed
		case !checkpoint.Amends(info.Owner) || !strings.HasSuffix(info.Owner, trims): // who trims it from here on reads the post
			return nil
		case time.Since(began) >= c.opts.Grace:
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// hasTag reports whether a name is given to the entry seq; if it is to another, by an error.
func (c *core) hasTag(ctx context.Context, id, name string, seq uint64, given func(context.Context, string) (map[string]uint64, error)) (bool, error) {
	tags, err := given(ctx, id)
	if err != nil {
		return false, c.refuse(id, err)
	}
	at, ok := tags[name]
	if ok && at != seq {
		return false, &TagError{id, name, at}
	}
	return ok, nil
}

// tags are the names that checkpoints of a run have: those of its log, and those that were
// posted and not drained yet. Those are read first, so that none is missed that is drained
// meanwhile.
func (c *core) tags(ctx context.Context, id string) (map[string]uint64, error) {
	tags, err := c.postedTags(ctx, id)
	if err != nil {
		return nil, err
	}
	said, err := c.tagsInLog(ctx, id)
	maps.Copy(tags, said)
	return tags, err
}

// tagsInLog are those of its log alone.
func (c *core) tagsInLog(ctx context.Context, id string) (map[string]uint64, error) {
	h, err := c.hindsight(ctx, id)
	if err != nil {
		return nil, err
	}
	return h.tags, nil
}

// postedTags are the names that wait to be drained into the log.
func (c *core) postedTags(ctx context.Context, id string) (map[string]uint64, error) {
	posts, err := c.store.Posts(ctx, id)
	if err != nil {
		return nil, err
	}
	tags := map[string]uint64{}
	for _, p := range posts {
		var t checkpoint.Tag
		if p.Kind == checkpoint.PostTag && json.Unmarshal(p.Data, &t) == nil {
			tags[t.Name] = t.Seq
		}
	}
	return tags, nil
}
