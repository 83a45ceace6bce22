package state_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlgo/pawl/state"
)

//lint:ignore U1000 only reflection reads the field
type half struct{ n int }

func (half) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

//lint:ignore U1000 only reflection reads the field
type otherHalf struct{ n int }

func (*otherHalf) UnmarshalJSON([]byte) error { return nil }

//lint:ignore U1000 only reflection reads the field
type textHalf struct{ n int }

func (textHalf) MarshalText() ([]byte, error) { return nil, nil }

type stamped struct {
	time.Time
	Note string
}

// What these have of a marshaller is that of an embedded field.
type (
	wraps      struct{ stamped }
	wrapsAgain struct{ wraps }
	amount     struct{ *big.Int }
	instant    struct{ *time.Time }
	both       interface {
		json.Marshaler
		json.Unmarshaler
	}
	anything struct{ both }
	noted    struct {
		time.Time
		Note string
	}
	slot struct {
		netip.Addr
		Port int
	}
	addr struct{ *netip.Addr }
	bare struct{ netip.Addr }
)

func (n noted) MarshalJSON() ([]byte, error) { return json.Marshal([]any{n.Time, n.Note}) }

// A purse makes what it embeds itself when it is read.
type purse struct{ *big.Int }

func (p *purse) UnmarshalJSON(b []byte) error {
	p.Int = new(big.Int)
	return p.Int.UnmarshalJSON(b)
}

// An option has its own marshaller, for fields of any type.
type option[T any] struct {
	v  T
	ok bool
}

func (o option[T]) MarshalJSON() ([]byte, error) {
	if !o.ok {
		return []byte("[]"), nil
	}
	return json.Marshal([]T{o.v})
}

func (o *option[T]) UnmarshalJSON(b []byte) error {
	var vs []T
	err := json.Unmarshal(b, &vs)
	if o.ok = len(vs) > 0; o.ok {
		o.v = vs[0]
	}
	return err
}

type (
	inner    struct{ Exported int }
	embedder struct {
		inner
		Other string
	}
	pointerEmbedder struct{ *inner }
	//lint:ignore U1000 only reflection reads the field
	unexported struct{ hidden int }
	dashed     struct {
		Gone int `json:"-"`
	}
	twins struct {
		A int `json:"B"`
		B int
	}
	shadow struct {
		inner
		Exported string
	}
	list []list
	node struct {
		Next *node
		Kids map[string][]node
	}
	quoted struct {
		N int `json:"n,string"`
	}
	quotedMarshaler struct {
		N *euros `json:",string"`
	}
	amounts struct {
		By  map[string]amounts
		Sum big.Int
	}
	plainCell struct{ C state.Value[int] }
	group     struct{ In state.Value[int] }
	embedded  struct{ Out state.Value[int] }
	Marked    struct{ Mark state.Value[int] }
	promoting struct{ state.Value[int] }
	renamed   state.List[int]
	broken    struct{ *state.Sum[int] }
	holder    struct{ B broken }
	thaws     struct{ *state.Frozen[int] }
	misplaced struct {
		Group *group
		Many  []state.Sum[int]
		Named map[string]group
		Two   [2]state.Sum[int]
	}
)

func problem[S any]() string {
	_, err := state.Of[S]()
	return fmt.Sprint(err)
}

// DESIGN section 6: a field that is no cell is an error that says what to write.
func TestOfSaysWhatToWrite(t *testing.T) {
	type inquiry struct {
		Query   string
		Books   []book
		Ratings map[string]int
		Seen    map[string]bool
		Raw     []byte
		Addr    book
		Cost    *state.Sum[int]
		Any     any
		Do      func()
		Renamed renamed
		Group   struct {
			N int
			state.Sum[int]
		}
		hidden state.Value[int]
		closed group
		Gone   state.Value[int] `json:"-"`
		group  `json:"-"`
		Left   group            `json:"-"`
		Same   state.Value[int] `json:"Again"`
		Again  state.Sum[int]
	}
	_ = inquiry{}.hidden
	_ = inquiry{}.closed
	got := problem[inquiry]()
	want := []string{
		"state: inquiry.Query is a string: write state.Value[string]",
		"state: inquiry.Books is a []state_test.book: write state.List[state_test.book]",
		"state: inquiry.Ratings is a map[string]int: write state.Map[string, int]",
		"state: inquiry.Seen is a map[string]bool: write state.Set[string]",
		"state: inquiry.Raw is a []uint8: write state.Value[[]uint8]",
		"state: inquiry.Addr is a state_test.book: write state.Value[state_test.book]",
		"state: inquiry.Cost is a *state.Sum[int]: write state.Sum[int], without the pointer",
		"state: inquiry.Any is an interface {}: JSON can't bring it back, and a state holds data: give clients, loggers and locks to nodes by a method or a closure",
		"state: inquiry.Do is a func(): JSON can't bring it back, and a state holds data: give clients, loggers and locks to nodes by a method or a closure",
		"state: inquiry.Renamed is a state_test.renamed: write the type of the cell itself",
		"state: inquiry.Group.N is an int: write state.Value[int]",
		"state: inquiry.Group.Sum is embedded: give the cell a name",
		"state: inquiry.hidden is not exported: write Hidden",
		"state: inquiry.closed is not exported, so its cells can't be reached: write Closed",
		`state: inquiry.Gone has the tag json:"-": a cell needs a name`,
		`state: inquiry.group has the tag json:"-": its cells need a name`,
		`state: inquiry.Left has the tag json:"-": its cells need a name`,
		`state: inquiry.Same and inquiry.Again have the same name "Again"`,
	}
	if got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	for got, want := range map[string]string{
		problem[int]():               "state: int is no state: write a struct of cells, or state.Whole[int]",
		problem[*inquiry]():          "state: *state_test.inquiry is no state: write state_test.inquiry, without the pointer",
		problem[*state.Whole[int]](): "state: *state.Whole[int] is no state: write state.Whole[int], without the pointer",
		problem[state.List[int]]():   "state: state.List[int] is a cell: make it a field of a struct",
		problem[promoting]():         "state: promoting.Value is embedded: give the cell a name",
		problem[broken]():            "state: broken.Sum is a *state.Sum[int]: write state.Sum[int], without the pointer",
		problem[holder]():            "state: holder.B is a state_test.broken: write the type of the cell itself",
		problem[misplaced](): "state: misplaced.Group is a *state_test.group: write state_test.group, without the pointer\n" +
			"state: misplaced.Many is a []state.Sum[int]: cells stand in the state itself: write a List, Map or Set of plain values\n" +
			"state: misplaced.Named is a map[string]state_test.group: cells stand in the state itself: write a List, Map or Set of plain values\n" +
			"state: misplaced.Two is a [2]state.Sum[int]: cells stand in the state itself: write a List, Map or Set of plain values",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A cell is recommended only if it would be accepted; of what is no data it is said where that
// belongs.
func TestOfRecommendsNoCellThatIsRefused(t *testing.T) {
	type service struct {
		Lock   sync.Mutex
		Client *http.Client
		Log    *slog.Logger
		Own    unexported
		Many   []*slog.Logger
		By     map[string]any
		Seen   map[textHalf]bool
		Wait   time.Duration
		At     *time.Time
	}
	got := strings.Split(problem[service](), "\n")
	const data = "; a state holds data: give clients, loggers and locks to nodes by a method or a closure"
	for i, want := range []struct{ begin, end string }{
		{"state: service.Lock is a sync.Mutex: service.Lock.", " is not exported, so JSON can't bring it back" + data},
		{"state: service.Client is a *http.Client: service.Client.Transport is an interface, ", data},
		{"state: service.Log is a *slog.Logger: service.Log.handler is not exported, ", data},
		{"state: service.Own is a state_test.unexported: service.Own.hidden is not exported, ", data},
		{"state: service.Many is a []*slog.Logger: service.Many.handler is not exported, ", data},
		{"state: service.By is a map[string]interface {}: service.By is an interface, ", data},
		{"state: service.Seen is a map[state_test.textHalf]bool: service.Seen is a state_test.textHalf, ", data},
		{"state: service.Wait is a time.Duration: ", "write state.Value[time.Duration]"},
		{"state: service.At is a *time.Time: ", "write state.Value[*time.Time]"},
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], want.begin) || !strings.HasSuffix(got[i], want.end) {
			t.Fatalf("got\n%s\nwant in line %d\n%s … %s", strings.Join(got, "\n"), i, want.begin, want.end)
		}
	}
}

type circle *circle

// DESIGN section 6: what JSON can't bring back is refused, naming the field path.
func TestOfRefusesWhatJSONCannotBringBack(t *testing.T) {
	for got, want := range map[string]string{
		problem[struct{ V state.Value[func()] }]():           ".V is a func(), which JSON can't bring back",
		problem[struct{ V state.Value[any] }]():              ".V is an interface, which JSON can't bring back: name a concrete type, or json.RawMessage",
		problem[struct{ V state.Value[error] }]():            ".V is an interface, which JSON can't bring back: name a concrete type, or json.RawMessage",
		problem[struct{ V state.List[chan int] }]():          ".V is a chan int, which JSON can't bring back",
		problem[struct{ V state.Value[complex128] }]():       ".V is a complex128, which JSON can't bring back",
		problem[struct{ V state.Value[uintptr] }]():          ".V is a uintptr, which JSON can't bring back",
		problem[struct{ V state.Value[map[string][]any] }](): ".V[][] is an interface, which JSON can't bring back: name a concrete type, or json.RawMessage",
		problem[struct{ V state.Value[circle] }]():           ".V is a state_test.circle, which points to nothing but itself",
		problem[struct{ V state.Value[*unexported] }]():      ".V.hidden is not exported, so JSON can't bring it back",
		problem[struct{ V state.Map[string, dashed] }]():     `.V.Gone has the tag json:"-", so JSON can't bring it back`,
		problem[struct{ V state.Value[[2]twins] }]():         `.V[] has two fields whose JSON name is "B"`,
		problem[struct{ V state.Value[shadow] }]():           `.V has two fields whose JSON name is "Exported"`,
		problem[struct{ V state.Value[pointerEmbedder] }]():  ".V.inner embeds a pointer to an unexported struct, which JSON can't bring back",
		problem[struct{ V state.Value[half] }]():             ".V is a state_test.half, which has a marshaller without the unmarshaller that belongs to it",
		problem[struct{ V state.Value[otherHalf] }]():        ".V is a state_test.otherHalf, which has an unmarshaller without the marshaller that belongs to it",
		problem[struct{ V state.Value[textHalf] }]():         ".V is a state_test.textHalf, which has a marshaller without the unmarshaller that belongs to it",
		problem[struct{ V state.Value[stamped] }]():          ".V is a state_test.stamped, whose MarshalJSON is that of an embedded field, which leaves out the others",
		problem[struct{ V state.Value[wraps] }]():            ".V is a state_test.wraps, which embeds a state_test.stamped, whose MarshalJSON is that of an embedded field, which leaves out the others",
		problem[struct{ V state.Value[wrapsAgain] }](): ".V is a state_test.wrapsAgain, which embeds a state_test.wraps, which embeds a state_test.stamped, " +
			"whose MarshalJSON is that of an embedded field, which leaves out the others",
		problem[struct{ V state.Value[noted] }]():    ".V is a state_test.noted, whose UnmarshalJSON is that of an embedded field, which leaves out the others",
		problem[struct{ V state.List[amount] }]():    ".V is a state_test.amount, whose UnmarshalJSON is that of an embedded *big.Int, which is nil when a value is read",
		problem[struct{ V state.Value[instant] }]():  ".V is a state_test.instant, whose UnmarshalJSON is that of an embedded *time.Time, which is nil when a value is read",
		problem[struct{ V state.Value[anything] }](): ".V is a state_test.anything, whose UnmarshalJSON is that of an embedded state_test.both, which is nil when a value is read",
		problem[struct {
			V state.Value[map[string]big.Int]
		}](): ".V[] is a big.Int, whose marshaller has a pointer receiver, which encoding/json does not call for the values of a map",
		problem[struct{ V state.Value[amounts] }]():         ".V.By[].Sum is a big.Int, whose marshaller has a pointer receiver, which encoding/json does not call for the values of a map",
		problem[struct{ V state.Value[quotedMarshaler] }](): `.V.N has the option ",string", by which encoding/json does not read back what a marshaller wrote`,
		problem[struct{ V state.Value[map[[1]int]int] }]():  ".V has keys of type [1]int: write a string, an integer, or a type with MarshalText and UnmarshalText",
		problem[struct{ V state.Map[bool, int] }]():         ".V has keys of type bool: write a string, an integer, or a type with MarshalText and UnmarshalText",
		problem[struct{ V state.Map[textHalf, int] }]():     ".V has keys of type state_test.textHalf: write a string, an integer, or a type with MarshalText and UnmarshalText",
		problem[struct{ V state.Map[slot, int] }]():         ".V has keys of type state_test.slot, whose MarshalText is that of an embedded field, which leaves out the others",
		problem[struct{ V state.Map[*slot, int] }]():        ".V has keys of type *state_test.slot, whose MarshalText is that of an embedded field, which leaves out the others",
		problem[struct{ V state.Value[map[slot]int] }]():    ".V has keys of type state_test.slot, whose MarshalText is that of an embedded field, which leaves out the others",
		problem[struct{ V state.Map[addr, int] }]():         ".V has keys of type state_test.addr, whose UnmarshalText is that of an embedded *netip.Addr, which is nil when a value is read",
		problem[struct{ V state.Value[map[addr]int] }]():    ".V has keys of type state_test.addr, whose UnmarshalText is that of an embedded *netip.Addr, which is nil when a value is read",
		problem[struct{ V state.Value[broken] }]():          ".V is a cell: cells stand in the state itself, not in values",
		problem[struct{ V state.Value[thaws] }]():           ".V is a state_test.thaws, whose UnmarshalJSON is that of an embedded *state.Frozen[int], which is nil when a value is read",
		problem[struct{ V state.List[[]struct{ bare }] }](): ".V[] is a struct { state_test.bare }, whose unmarshaller encoding/json does not call there: give the struct a name",
		problem[struct{ V state.Value[when] }]():            ".V is a state_test.when, behind which encoding/json does not call the unmarshaller: write *time.Time",
		problem[struct{ V state.Value[plainCell] }]():       ".V.C is a cell: cells stand in the state itself, not in values",
		problem[struct {
			V state.Value[state.Frozen[func()]]
		}](): ".V is a func(), which JSON can't bring back",
		problem[struct {
			V state.Whole[struct{ F func() }]
		}](): ".V.F is a func(), which JSON can't bring back",
		problem[struct {
			G struct{ V state.Value[chan<- int] }
		}](): ".G.V is a chan<- int, which JSON can't bring back",
		problem[state.Whole[struct{ A, B func() }]](): "Whole.A is a func(), which JSON can't bring back",
		problem[struct {
			V state.Value[struct{ A struct{ B chan int } }]
		}](): ".V.A.B is a chan int, which JSON can't bring back",
	} {
		first, _, _ := strings.Cut(got, "\n")
		if !strings.HasSuffix(first, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

type (
	money  struct{ cents int }
	priced struct{ money }
	when   *time.Time
	whens  **time.Time
	tally  *json.Number
	icy    *state.Frozen[[]int]
	sealed *struct{ money }
)

func (m money) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `{"c":%d}`, m.cents), nil }

func (m *money) UnmarshalJSON(b []byte) error {
	_, err := fmt.Sscanf(string(b), `{"c":%d}`, &m.cents)
	return err
}

// Unmarshallers are those that encoding/json calls, so a type is refused if it does not bring back
// one of its values.
func TestOfKnowsWhichUnmarshallersAreCalled(t *testing.T) {
	at, n, m := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), json.Number("1.50"), money{150}
	p := &at
	isAsJSON(t, struct{ time.Time }{at}, true)
	isAsJSON(t, []struct{ time.Time }{{at}}, false)
	isAsJSON(t, []struct{ money }{{m}}, false)
	isAsJSON(t, [1]struct{ money }{{m}}, false)
	isAsJSON(t, map[string]struct{ money }{"a": {m}}, false)
	isAsJSON(t, struct{ M struct{ money } }{struct{ money }{m}}, false)
	isAsJSON(t, struct{ M *struct{ money } }{&struct{ money }{m}}, true)
	isAsJSON(t, map[string][]*struct{ money }{"a": {{m}}}, true)
	isAsJSON(t, []priced{{m}}, true)
	isAsJSON(t, struct{ priced }{priced{m}}, true)
	isAsJSON(t, []state.Frozen[struct{ money }]{{V: struct{ money }{m}}}, true)
	isAsJSON(t, when(&at), false)
	isAsJSON(t, []when{&at}, false)
	isAsJSON(t, sealed(&struct{ money }{m}), false)
	isAsJSON(t, icy(&state.Frozen[[]int]{V: []int{1}}), false)
	isAsJSON(t, &state.Frozen[[]int]{V: []int{1}}, true)
	isAsJSON(t, whens(&p), true)
	isAsJSON(t, &p, true)
	isAsJSON(t, tally(&n), true)
}

// isAsJSON checks that encoding/json brings v back if it should, and that a cell may hold a T if it
// does.
func isAsJSON[T any](t *testing.T, v T, comesBack bool) {
	t.Helper()
	raw, err := json.Marshal(&v)
	if err != nil {
		t.Fatal(err)
	}
	var back T
	if err := json.Unmarshal(raw, &back); comesBack != (err == nil && reflect.DeepEqual(back, v)) {
		t.Errorf("%T comes back from %s as %+v, %v", v, raw, back, err)
	}
	if text := problem[struct{ V state.Value[T] }](); comesBack != (text == "<nil>") {
		t.Errorf("of %T it says %q", v, text)
	}
}

type (
	holdsBig      struct{ Sum big.Int }
	embedsBig     struct{ holdsBig }
	HoldsBig      struct{ Sum big.Int }
	embedsPointer struct{ *HoldsBig }
)

// In a map a value can't be addressed, but what it points to can, and what is Frozen.
func TestMarshallersWithPointerReceiversInMaps(t *testing.T) {
	type fine struct {
		P state.Value[map[string]embedsPointer]
		F state.Value[map[string]state.Frozen[big.Int]]
	}
	s := schemaOf[fine](t)
	view := s.New()
	write(t, view, func(f *fine) {
		f.P.Set(map[string]embedsPointer{"k": {&HoldsBig{*big.NewInt(7)}}})
		f.F.Set(map[string]state.Frozen[big.Int]{"k": {V: *big.NewInt(8)}})
	})
	back := reparse(t, s, view).Value().(*fine)
	p, f := back.P.Get()["k"], back.F.Get()["k"]
	if p.HoldsBig == nil || p.Sum.Int64() != 7 || f.V.Int64() != 8 {
		t.Errorf("%s came back", natural(t, back))
	}
	if text := problem[struct {
		V state.Value[map[string]embedsBig]
	}](); !strings.Contains(text, ".V[].holdsBig.Sum is a big.Int, whose marshaller has a pointer receiver") {
		t.Error(text)
	}
}

// Nine types that all point to each other.
type (
	nine struct {
		A *nineA
		B *nineB
		C *nineC
		D *nineD
		E *nineE
		F *nineF
		G *nineG
		H *nineH
		I *nineI
	}
	nineA nine
	nineB nine
	nineC nine
	nineD nine
	nineE nine
	nineF nine
	nineG nine
	nineH nine
	nineI nine
)

// A type is described once for every way to it, of which there are very many where types all point
// to each other.
func TestOfRefusesTypesWithTooManyWays(t *testing.T) {
	got := problem[struct{ V state.Value[nineA] }]()
	if want := "a state_test.nineA, which is too large to be described"; strings.Count(got, "\n") > 0 || !strings.Contains(got, want) {
		t.Errorf("got %.400s, want %s", got, want)
	}
}

func TestOfAcceptsWhatJSONBringsBack(t *testing.T) {
	type fine struct {
		A state.Value[embedder]
		B state.Value[node]
		C state.Value[list]
		D state.Value[time.Time]
		E state.Value[map[netip.Addr]json.RawMessage]
		F state.List[big.Int]
		G state.Value[map[string]*big.Int]
		H state.Map[netip.Addr, []byte]
		I state.Value[json.Number]
		J state.Value[[2]struct{}]
		K state.Value[quoted]
		L state.Map[*big.Int, int]
		M state.Value[purse]
		N state.Value[option[int]]
		O state.Map[struct{ bare }, int]
	}
	s := schemaOf[fine](t)
	want := []string{
		"A value {Exported: int, Other: string}",
		"B value {Kids: map[string][]^^^, Next: *^^}",
		"C value []^",
		"D value time.Time",
		"E value map[net/netip.Addr]encoding/json.RawMessage",
		"F list []math/big.Int",
		"G value map[string]*math/big.Int",
		"H map map[net/netip.Addr]bytes",
		"I value encoding/json.Number",
		"J value [2]{}",
		"K value {n: int}",
		"L map map[*math/big.Int]int",
		"M value github.com/pawlgo/pawl/state_test.purse",
		"N value github.com/pawlgo/pawl/state_test.option[int]",
		"O map map[struct { state_test.bare }]int",
	}
	for i, c := range s.Cells() {
		if got := fmt.Sprint(c.Name, " ", c.Kind, " ", c.Type); got != want[i] {
			t.Errorf("%s, want %s", got, want[i])
		}
	}
	view := s.New()
	seven := big.NewInt(7)
	write(t, view, func(f *fine) {
		f.A.Set(embedder{inner{1}, "o"})
		f.B.Set(node{Next: &node{}, Kids: map[string][]node{"k": {{}}}})
		f.C.Set(list{{}, {{}}})
		f.D.Set(time.Unix(0, 0).UTC())
		f.E.Set(map[netip.Addr]json.RawMessage{netip.MustParseAddr("::1"): json.RawMessage(`[1]`)})
		f.F.Append(*seven)
		f.G.Set(map[string]*big.Int{"s": seven})
		f.H.Put(netip.MustParseAddr("::1"), []byte("bytes"))
		f.I.Set("12e3")
		f.K.Set(quoted{5})
		f.L.Put(seven, 1)
		f.M.Set(purse{seven})
		f.N.Set(option[int]{3, true})
		f.O.Put(struct{ bare }{bare{netip.MustParseAddr("::1")}}, 1)
	})
	back := reparse(t, s, view).Value().(*fine)
	if got, want := natural(t, back), natural(t, view.Value()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if back.A.Get().Exported != 1 || back.K.Get().N != 5 || !back.L.Has(seven) || back.M.Get().Int64() != 7 ||
		back.N.Get() != (option[int]{3, true}) || !back.O.Has(struct{ bare }{bare{netip.MustParseAddr("::1")}}) {
		t.Error("a value did not come back")
	}
	for k := range back.L.All() {
		if k.Int64() != 7 {
			t.Errorf("key %s", k)
		}
	}
	raw := view.AppendJSON(nil)
	var cells map[string]json.RawMessage
	if err := json.Unmarshal(raw, &cells); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Cells() {
		if err := c.Type.Accepts(cells[c.Name]); cells[c.Name] != nil && err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

func TestCellsAreNamedAsInJSON(t *testing.T) {
	type deep struct {
		Query state.Value[string] `json:"query"`
		Cost  state.Sum[int]      `json:",omitempty"`
		Group struct {
			Inner struct{ X state.Value[int] } `json:"in"`
		}
		group
		embedded `json:",inline"`
		Marked   `json:",omitempty"`
	}
	var names []string
	for _, c := range schemaOf[deep](t).Cells() {
		names = append(names, c.Name)
	}
	if got, want := strings.Join(names, " "), "query Cost Group.in.X In Out Mark"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := natural(t, deep{}), `{"query":"","Cost":0,"Group":{"in":{"X":0}},"In":0,"Out":0,"Mark":0}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestParseSchemaGivesTheSameSchema(t *testing.T) {
	for _, s := range []*state.Schema{schemaOf[mixed](t), schemaOf[struct{}](t), schemaOf[state.Whole[node]](t)} {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := state.ParseSchema(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		again, err := json.Marshal(back)
		if err != nil || string(again) != string(raw) {
			t.Errorf("%s, %v, want %s", again, err, raw)
		}
		if back.New().Value() != nil || back.New().Check() != nil {
			t.Error("an untyped image has a typed value")
		}
	}
	for _, in := range []string{
		``, `[]`, `{"cells":[{}]}`,
		`{"cells":[{"name":"a","kind":"value"}]}`,
		`{"cells":[{"name":"a","kind":"valu","type":{"kind":"int"}}]}`,
		`{"cells":[{"name":"a","kind":"value","type":{"kind":"in"}}]}`,
		`{"cells":[{"name":"a","kind":"value","type":{"kind":"ref","up":1}}]}`,
		`{"cells":[{"name":"a","kind":"value","type":{"kind":"list","elem":{"kind":"ref","up":2}}}]}`,
		`{"cells":[{"name":"a","kind":"value","type":{"kind":"list"}}]}`,
		`{"cells":[{"name":"a","kind":"list","type":{"kind":"int"}}]}`,
		`{"cells":[{"name":"a","kind":"map","type":{"kind":"list","elem":{"kind":"int"}}}]}`,
		`{"cells":[{"name":"a","kind":"map","type":{"kind":"map","key":{"kind":"bool"},"elem":{"kind":"int"}}}]}`,
		`{"cells":[{"name":"a","kind":"sum","type":{"kind":"uint8"}}]}`,
		`{"cells":[{"name":"a","kind":"value","type":{"kind":"object","fields":[{"name":"f"}]}}]}`,
		`{"cells":[{"name":"a","kind":"sum","type":{"kind":"int"}},{"name":"a","kind":"sum","type":{"kind":"int"}}]}`,
	} {
		if _, err := state.ParseSchema([]byte(in)); err == nil {
			t.Errorf("%s is a schema", in)
		}
	}
}

func TestSchemasOfOneTypeAgree(t *testing.T) {
	a, b := schemaOf[every](t), schemaOf[every](t)
	view := a.New()
	if err := view.Apply(draft(t, b.New(), func(e *every) { e.Sum.Add(1) })); err != nil {
		t.Error(err)
	}
	other := b.New()
	other.CopyFrom(view)
	if got := other.Value().(*every).Sum.Get(); got != 1 {
		t.Errorf("the copy shows %d", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("an image was copied into one of another schema")
		}
	}()
	schemaOf[inquiry](t).New().CopyFrom(view)
}
