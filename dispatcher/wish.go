package dispatcher

import (
	"github.com/pawlgo/pawl/checkpoint"
)

// A RunOption is one more wish of a call that runs something. See [From]. The zero
// RunOption wishes nothing.
type RunOption struct {
	wish func(*wishes) error
}

// From lets Resume go on only from this cursor: [ErrStaleCursor] if it is no longer where
// the run stands, checkpoint.ErrCursor if it is another run's or names nothing. It is for
// Resume alone; other calls refuse it.
func From(c checkpoint.Cursor) RunOption {
	return RunOption{func(w *wishes) error {
		if w.how != modeResume {
			return &OptionError{"From", "is for Resume only"}
		}
		w.from = append(w.from, c)
		return nil
	}}
}

// wishes are what the options of a call say together.
type wishes struct {
	how  mode
	from []checkpoint.Cursor // every one of them has to be where the run stands
	ears *listener           // of the Stream that the call belongs to
}

// wish reads the options of a call. A bad one refuses the call before anything happens.
func (c *core) wish(how mode, options []RunOption) (*wishes, error) {
	w := &wishes{how: how}
	for _, o := range options {
		if o.wish == nil {
			continue
		}
		if err := o.wish(w); err != nil {
			return nil, err
		}
	}
	return w, nil
}
