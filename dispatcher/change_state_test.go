package dispatcher_test

import (
	"testing"

	"github.com/pawlgo/pawl/state"
)

// The states of the edited programs. What a program needs of its state does not change, so
// that runs of two programs can be compared.

type changeBase struct {
	Seen  state.Map[string, string]
	Order state.List[string]
	Total state.Sum[int]
	Word  state.Value[string]
	Spare state.Value[string]
}

func (s *changeBase) cells() changeCells { return changeCells{&s.Seen, &s.Order, &s.Total, s.Word.Set} }

// The type of a cell that is written is another.
type changeRetyped struct {
	Seen  state.Map[string, string]
	Order state.List[string]
	Total state.Sum[int]
	Word  state.Value[int]
	Spare state.Value[string]
}

func (s *changeRetyped) cells() changeCells {
	return changeCells{&s.Seen, &s.Order, &s.Total, func(word string) { s.Word.Set(len(word)) }}
}

// The type of a cell that nobody writes is another.
type changeIdleRetyped struct {
	Seen  state.Map[string, string]
	Order state.List[string]
	Total state.Sum[int]
	Word  state.Value[string]
	Spare state.List[int]
}

func (s *changeIdleRetyped) cells() changeCells {
	return changeCells{&s.Seen, &s.Order, &s.Total, s.Word.Set}
}

// The kind of a cell that is written is another.
type changeOtherKind struct {
	Seen  state.Map[string, string]
	Order state.List[string]
	Total state.Sum[int]
	Word  state.List[string]
	Spare state.Value[string]
}

func (s *changeOtherKind) cells() changeCells {
	return changeCells{&s.Seen, &s.Order, &s.Total, func(word string) { s.Word.Append(word) }}
}

type changeAdded struct {
	Seen  state.Map[string, string]
	New   state.Set[string]
	Order state.List[string]
	Total state.Sum[int]
	Word  state.Value[string]
	Spare state.Value[string]
}

func (s *changeAdded) cells() changeCells {
	return changeCells{&s.Seen, &s.Order, &s.Total, s.Word.Set}
}

type changeIdleRemoved struct {
	Seen  state.Map[string, string]
	Order state.List[string]
	Total state.Sum[int]
	Word  state.Value[string]
}

func (s *changeIdleRemoved) cells() changeCells {
	return changeCells{&s.Seen, &s.Order, &s.Total, s.Word.Set}
}

type changeRemoved struct {
	Seen  state.Map[string, string]
	Order state.List[string]
	Total state.Sum[int]
	Spare state.Value[string]
}

func (s *changeRemoved) cells() changeCells {
	return changeCells{&s.Seen, &s.Order, &s.Total, func(string) {}}
}

type changeRenamed struct {
	Seen  state.Map[string, string]
	Order state.List[string]
	Total state.Sum[int]
	Motto state.Value[string]
	Spare state.Value[string]
}

func (s *changeRenamed) cells() changeCells {
	return changeCells{&s.Seen, &s.Order, &s.Total, s.Motto.Set}
}

type changeReordered struct {
	Word  state.Value[string]
	Total state.Sum[int]
	Spare state.Value[string]
	Order state.List[string]
	Seen  state.Map[string, string]
}

func (s *changeReordered) cells() changeCells {
	return changeCells{&s.Seen, &s.Order, &s.Total, s.Word.Set}
}

// changeStates compiles a graph over each of them.
var changeStates = map[string]func(testing.TB, *changeGraph) *changeProgram{
	"":             changeCompile[changeBase],
	"retyped":      changeCompile[changeRetyped],
	"idle retyped": changeCompile[changeIdleRetyped],
	"other kind":   changeCompile[changeOtherKind],
	"added":        changeCompile[changeAdded],
	"idle removed": changeCompile[changeIdleRemoved],
	"removed":      changeCompile[changeRemoved],
	"renamed":      changeCompile[changeRenamed],
	"reordered":    changeCompile[changeReordered],
}
