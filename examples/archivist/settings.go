package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Settings are what a person sets for a run. They are no part of what the run knows: another model
// may write the next draft of one that is resumed.
type Settings struct {
	Model   string `json:"model,omitempty"`   // that is asked; "" is the one of the environment
	Books   int    `json:"books,omitempty"`   // at most in an answer; 0 is the usual number
	Approve bool   `json:"approve,omitempty"` // a person has to, before the answer goes out
}

// settingsOf are those of the run that ctx belongs to.
func settingsOf(ctx context.Context) (Settings, error) { return dag.Settings[Settings](ctx) }

// settings are the flags that were given over what holds for the run, as options of a call; none if
// nothing changes.
func (c *config) settings(holds json.RawMessage) ([]dispatcher.RunOption, error) {
	var old Settings
	if len(holds) > 0 {
		if err := json.Unmarshal(holds, &old); err != nil {
			return nil, fmt.Errorf("the settings of run %q: %w", c.run, err)
		}
	}
	now := Settings{
		Model:   cmp.Or(c.model, old.Model),
		Books:   cmp.Or(c.most, old.Books),
		Approve: old.Approve,
	}
	if c.approve != nil {
		now.Approve = *c.approve
	}
	if now == old {
		return nil, nil
	}
	return []dispatcher.RunOption{dispatcher.Settings(now, "the command line")}, nil
}
