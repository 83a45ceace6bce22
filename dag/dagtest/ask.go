package dagtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlgo/pawl/dag"
)

// ErrUnanswered is what dag.Ask returns if the script has no answer. The node has to return it: in
// a run the visit waits then, whatever the node returns.
var ErrUnanswered = errors.New("dagtest: the question has no answer")

// An Answer is one of Visit.Answers for which the script says more than the value.
type Answer struct {
	Value any       // what JSON can say, or a json.RawMessage, or the error that the question ends with
	By    string    // who gave it
	At    time.Time // when
}

// says returns what the script says of a question, if it does.
func (v *Visit) says(key string) (Answer, bool) {
	said, ok := v.Answers[key]
	if a, more := said.(Answer); more {
		return a, true
	}
	return Answer{Value: said}, ok
}

// Ask implements dag.Visit.
func (s visit) Ask(call dag.AskCall) (json.RawMessage, error) {
	info, ended := s.Reply(call.Key)
	s.v.mu.Lock()
	if first, again := s.heard[call.Key]; !again {
		s.heard[call.Key] = call
	} else if err := call.Repeats(&first); err != nil {
		s.v.mu.Unlock()
		return nil, err
	}
	s.v.asked = append(s.v.asked, Question{
		Key: call.Key, Question: call.Question, Want: call.Want, Answered: ended,
		Within: call.Within, Until: call.Until, Default: call.Default,
	})
	s.v.mu.Unlock()
	answer, _ := s.v.says(call.Key)
	switch {
	case !ended:
		return nil, fmt.Errorf("%w: %q", ErrUnanswered, call.Key)
	case info.How == dag.AnswerSkipped:
		return nil, fmt.Errorf("%w: %q", dag.ErrSkipped, call.Key)
	case info.How == dag.AnswerExpired && !call.Expires():
		return nil, fmt.Errorf("dagtest: question %q is to have expired, and it never does", call.Key)
	case info.How == dag.AnswerExpired && call.Default == nil:
		return nil, fmt.Errorf("%w: %q", dag.ErrExpired, call.Key)
	case info.How == dag.AnswerExpired, info.How == dag.AnswerDefault:
		s.v.defaulted(call.Key)
		return call.Default, nil
	}
	if end, ends := answer.Value.(error); ends {
		return nil, fmt.Errorf("dagtest: question %q can't end with %w, but with dag.ErrSkipped or dag.ErrExpired", call.Key, end)
	}
	raw, err := encode(answer.Value)
	if err == nil {
		err = call.Want.Accepts(raw)
	}
	if err == nil && call.Fits != nil {
		err = call.Fits(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("dagtest: answer to %q: %w", call.Key, err)
	}
	return raw, nil
}

// Reply implements dag.Visit.
func (s visit) Reply(key string) (dag.AnswerInfo, bool) {
	answer, ended := s.v.says(key)
	if !ended {
		return dag.AnswerInfo{}, false
	}
	info := dag.AnswerInfo{How: dag.AnswerGiven, By: answer.By, At: answer.At}
	switch end, _ := answer.Value.(error); {
	case errors.Is(end, dag.ErrSkipped):
		info.How = dag.AnswerSkipped
	case errors.Is(end, dag.ErrExpired):
		info.How = dag.AnswerExpired
	}
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	if s.v.defaults[key] {
		info.How = dag.AnswerDefault
	}
	return info, true
}

// Answers implements dag.Replier: in the order of the instants that the script says, and of keys.
func (s visit) Answers() []dag.Answered {
	var all []dag.Answered
	for key := range s.v.Answers {
		info, _ := s.Reply(key)
		all = append(all, dag.Answered{Key: key, AnswerInfo: info})
	}
	slices.SortFunc(all, func(a, b dag.Answered) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Key, b.Key))
	})
	return all
}

// defaulted remembers that a question ended with its default.
func (v *Visit) defaulted(key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.defaults == nil {
		v.defaults = map[string]bool{}
	}
	v.defaults[key] = true
}
