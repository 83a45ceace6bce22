package supervisor

import (
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
)

// The defaults are those that the comments of Options tell.
func TestDefaultsAreWhatTheyAreSaidToBe(t *testing.T) {
	s, err := New(new(memory.Store), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if o := s.options; o.Cap != 64 || o.Queue != 10_000 || o.PerKey != 10_000 || o.Grace != 6*time.Second {
		t.Errorf("the options are %+v", o)
	}
	s, err = New(new(memory.Store), Options{Queue: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	if o := s.options; o.PerKey != 20_000 {
		t.Errorf("with a larger queue the options are %+v", o)
	}
}
