package record_test

import (
	"testing"
	"time"

	"github.com/pawlgo/pawl/record"
)

// A question whose time was over before there was a record of it is asked again for a moment to
// come, and not for one that is past as well.
func TestAQuestionThatCameTooLateIsAskedAgain(t *testing.T) {
	b := newBook(t)
	b.create(t, asks("r", record.ResumePoint{OnTimeout: record.TimeoutRetry}, 1000))
	v, err := b.Expire(t.Context(), "r")
	done(t, err)
	same(t, "asked again", ids(v.Record.QuestionsForUser, func(q record.Question) string { return q.ID }), []string{"q", "q~2"})
	if q := v.Record.QuestionsForUser[1]; q.ExpiresAt <= b.now.UnixMilli() {
		t.Errorf("it is asked at %d, and was to be answered by %d", b.now.UnixMilli(), q.ExpiresAt)
	}
	if again, err := b.Expire(t.Context(), "r"); err != nil || again.Number != v.Number {
		t.Errorf("it has expired at once: %+v, %v", again, err)
	}
	b.now = b.now.Add(time.Second)
	if again, err := b.Expire(t.Context(), "r"); err != nil || len(again.Record.QuestionsForUser) != 3 {
		t.Errorf("it does not expire: %+v, %v", again, err)
	}
}
