package dispatcher

import "fmt"

// Author says who does it: who answers, edits, tags, resolves, cancels, goes back. The name is kept in
// the entry that the call leads to. It has 1 to 1024 bytes of UTF-8 without control characters.
// It is for calls that change a run and run nothing.
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

// author reads the options of a call that changes a run and runs nothing: who does it, ""
// if nobody said so.
func (c *core) author(options []RunOption) (string, error) {
	w, err := c.wish(modeAct, options)
	if err != nil {
		return "", err
	}
	return w.by, nil
}
