package dispatcher

import "fmt"

// Author says who answers, edits, tags, resolves, cancels or rewinds. The name is kept in the entry
// that the call leads to. It has 1 to 1024 bytes of UTF-8 without control characters. Author is for
// calls that change a run and run nothing, and beside [Answering].
func Author(name string) RunOption {
	return RunOption{"Author", func(w *wishes) error {
		if name == "" {
			return &OptionError{"Author", "has no name"}
		}
		if reason := badText(name, maxLabel); reason != "" {
			return &OptionError{"Author", fmt.Sprintf("has a name that %s", reason)}
		}
		w.by = name
		return nil
	}}
}

// Because says why somebody answers: why an approval was given, or was not. The reason is kept in
// the entry beside the [Author]; the event of the entry tells it, and so do Open of an effect and
// the failure that a rejection leads to. It has 1 to 1024 bytes of UTF-8 without control
// characters.
//
// Because is for Answer, Answers and Skip, and beside [Answering]. A [Resolution] has a reason of
// its own, and so have EditOptions, ForkOptions and RewindOptions.
func Because(reason string) RunOption {
	return RunOption{"Because", func(w *wishes) error {
		if reason == "" {
			return &OptionError{"Because", "has no reason"}
		}
		if what := badText(reason, maxLabel); what != "" {
			return &OptionError{"Because", fmt.Sprintf("has a reason that %s", what)}
		}
		w.because = reason
		return nil
	}}
}

const becauseIsFor = "is for Answer, Answers and Skip, and beside Answering"

// author reads the options of a call that changes a run and runs nothing: who does it, ""
// if nobody said so.
func (c *core) author(options []RunOption) (string, error) {
	w, err := c.wish(modeAct, options)
	if err != nil {
		return "", err
	}
	if w.because != "" {
		return "", &OptionError{"Because", becauseIsFor}
	}
	return w.by, nil
}
