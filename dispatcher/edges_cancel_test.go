package dispatcher_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// cancelsTold are who cancelled a run and why, by its events and by its past.
func cancelsTold(t *testing.T, d *dispatcher.Dispatcher[Tale]) (events, past []string) {
	t.Helper()
	for e, err := range d.Events(t.Context(), run, dispatcher.Listen{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == dispatcher.RunRested && e.Status == checkpoint.StatusCancelled {
			events = append(events, e.By+": "+e.Cause)
		}
	}
	all, err := d.HistoryOf(t.Context(), run, dispatcher.HistoryFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		for _, c := range p.Cancels {
			if c.At.IsZero() {
				t.Errorf("%+v does not say when", c)
			}
			past = append(past, p.String()+" "+c.Author+": "+c.Reason)
		}
	}
	return events, past
}

// Who has cancelled a run is kept in its entry, whether the run was live or at rest, and told by
// events, by the past, and to whoever ran it.
func TestEdgesCancelAuthor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		d := process(t, line(t, &w, idles), &store, dispatcher.Options{})
		ended := beginRun(t, d)
		if err := d.Cancel(t.Context(), run, errors.New("the museum closes"), dispatcher.Author("Ada")); err != nil {
			t.Fatal(err)
		}
		e := <-ended
		rests(t, e.res, e.err, checkpoint.StatusCancelled, "b")
		var rest *dispatcher.Rest
		if !errors.As(e.err, &rest) || rest.By != "Ada" || !strings.Contains(e.err.Error(), "was cancelled by Ada at b: the museum closes") {
			t.Errorf("the call returned %v", e.err)
		}
		events, past := cancelsTold(t, d)
		if !slices.Equal(events, []string{"Ada: the museum closes"}) || !slices.Equal(past, []string{"@1 Ada: the museum closes"}) {
			t.Errorf("events tell %q, the past %q", events, past)
		}
		unchanged(t, &store, run, func() { // a run is cancelled once
			if err := d.Cancel(t.Context(), run, nil, dispatcher.Author("Bob")); err != nil {
				t.Error(err)
			}
		})
	})
}

// The same of a run at rest, without a cause and without an author.
func TestEdgesCancelAuthorAtRest(t *testing.T) {
	quiet(t)
	for _, c := range []struct {
		cause   error
		options []dispatcher.RunOption
		want    string
	}{
		{errors.New("enough"), []dispatcher.RunOption{dispatcher.Author("Ada")}, "Ada: enough"},
		{nil, []dispatcher.RunOption{dispatcher.Author("Ada")}, "Ada: "},
		{nil, nil, ": "},
	} {
		var w witness
		var store memory.Store
		d := process(t, line(t, &w, nil), &store, dispatcher.Options{InterruptBefore: []string{"b"}})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "b")
		if err := d.Cancel(t.Context(), run, c.cause, c.options...); err != nil {
			t.Fatal(err)
		}
		events, past := cancelsTold(t, d)
		if !slices.Equal(events, []string{c.want}) || !slices.Equal(past, []string{"@1 " + c.want}) {
			t.Errorf("events tell %q, the past %q, want %q", events, past, c.want)
		}
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
	}
}

// A cancel that cannot be signed so, or is given another option, changes nothing.
func TestEdgesCancelRefused(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	d := process(t, line(t, &w, nil), &store, dispatcher.Options{InterruptBefore: []string{"b"}})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	unchanged(t, &store, run, func() {
		for _, o := range []dispatcher.RunOption{dispatcher.Author(""), dispatcher.Author("a\nb"), dispatcher.OrStart(), dispatcher.Manual()} {
			var option *dispatcher.OptionError
			if err := d.Cancel(t.Context(), run, nil, o); !errors.As(err, &option) {
				t.Errorf("Cancel returned %v, want an OptionError", err)
			}
		}
	})
}

// A cancel that a version without authors has posted, the text of the cause alone, is understood.
func TestEdgesCancelOfAnEarlierVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		d := process(t, line(t, &w, idles), &store, dispatcher.Options{})
		ended := beginRun(t, d)
		post := checkpoint.Post{ID: "cancel:of old", Kind: "cancel", Data: []byte(`"the museum closes"`)}
		if err := store.Post(t.Context(), run, post); err != nil {
			t.Fatal(err)
		}
		e := <-ended
		rests(t, e.res, e.err, checkpoint.StatusCancelled, "b")
		if events, _ := cancelsTold(t, d); !slices.Equal(events, []string{": the museum closes"}) {
			t.Errorf("events tell %q", events)
		}
	})
}
