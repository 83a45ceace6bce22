package badgerstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// While a message is being posted an append that claims waits for it, whatever id that has; one
// that claims nothing doesn't. If its context ends meanwhile nothing has happened.
func TestClaimsWaitForWhatIsBeingPosted(t *testing.T) {
	t.Parallel()
	s, l, head := inboxRun(t)
	letGo, err := s.HoldPosts(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	claim := []checkpoint.Entry{{Kind: checkpoint.Noted, Post: "a", Claims: true}}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.Append(toldContext{ctx, cancel}, l, head, claim); !errors.Is(err, context.Canceled) || errors.Is(err, checkpoint.ErrCommitUnknown) {
		t.Errorf("an append that claims beside a message = %v, want the error of its context", err)
	}
	if head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{{Kind: checkpoint.Noted, Post: "a"}}); err != nil {
		t.Errorf("an append that claims nothing, and what was given up changed nothing: %v", err)
	}
	letGo()
	if _, err := s.Append(t.Context(), l, head, claim); err != nil {
		t.Errorf("behind it: %v", err)
	}
	if err := s.Post(t.Context(), "run", checkpoint.Post{ID: "b"}); err != nil {
		t.Errorf("a message behind a claim: %v", err)
	}
}
