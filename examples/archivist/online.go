package main

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/examples/archivist/catalogue"
	"github.com/pawlgo/pawl/examples/archivist/model"
	"github.com/pawlgo/pawl/examples/archivist/openlibrary"
	"github.com/pawlgo/pawl/examples/archivist/search"
)

const (
	onlineFinds = 8
	// What is said of a book that nobody here has described.
	fromOpenLibrary = "Open Library knows it; my catalogue does not describe it."
)

// equip gives the library what is outside the program: Open Library, and the language model that
// the environment names.
func (lib *Library) equip(online bool, getenv func(string) string) error {
	if online {
		lib.online = (&openlibrary.Client{URL: getenv("OPENLIBRARY_BASE_URL")}).Search
	}
	m, err := model.FromEnv(getenv)
	if err != nil {
		return usagef("%v", err)
	}
	if m != nil {
		lib.model, lib.modelName = m.Write, m.Name()
	}
	return nil
}

// Online asks Open Library. What it knows of a book that is in the catalogue too, the catalogue
// knows better.
func (lib *Library) Online(ctx context.Context, s *Quest) error {
	if lib.online == nil {
		return errors.New("the run was planned with -online, and goes on without")
	}
	if err := lib.pause(ctx); err != nil {
		return err
	}
	field, query := onlineQuery(s)
	books, err := lib.online(ctx, field, query, onlineFinds)
	if err != nil {
		return err
	}
	for i, b := range books {
		s.Finds.Append(Find{Online, i + 1, lib.described(b)})
	}
	return nil
}

// onlineQuery is what to look up, and where. Open Library wants every word to be there, so of many
// subjects one is asked for.
func onlineQuery(s *Quest) (openlibrary.Field, string) {
	w := s.Wish.Get()
	switch {
	case w.Intent == Describe:
		return openlibrary.Title, w.Subject
	case w.Intent == ByAuthor:
		return openlibrary.Author, w.Subject
	case s.Like.Len() > 0 && len(s.Like.At(0).Subjects) > 0:
		return openlibrary.Subject, s.Like.At(0).Subjects[0]
	}
	return openlibrary.Everywhere, strings.Join(search.Terms(s.Words.Get()), " ")
}

func (lib *Library) described(b catalogue.Book) catalogue.Book {
	for _, own := range lib.titles[titleKey(b.Title)] {
		if named(b.Author, own.Author) || named(own.Author, b.Author) {
			return own
		}
	}
	b.About = fromOpenLibrary
	return b
}

// onlinePolicy is for a service that may be slow, busy or away. When it has failed for good, its
// failure edge is taken like that of any scout.
func (lib *Library) onlinePolicy() dag.Policy {
	return dag.Policy{
		Attempts: 3,
		Timeout:  lib.slow + cmp.Or(lib.onlineTimeout, 5*time.Second),
		Backoff:  dag.Exponential(250*time.Millisecond, 2*time.Second).Jitter(0.5),
		Retry: func(err error) bool {
			var refused *openlibrary.StatusError
			return lib.online != nil && (!errors.As(err, &refused) || refused.Temporary())
		},
	}
}
