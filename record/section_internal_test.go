package record

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A list that a record has is a section under the name of its member: whatever is done to one of
// them is done to all.
func TestEveryListIsASection(t *testing.T) {
	var lists int
	for i := range reflect.TypeFor[Record]().NumField() {
		f := reflect.TypeFor[Record]().Field(i)
		if f.Type.Kind() != reflect.Slice {
			continue
		}
		lists++
		name := f.Tag.Get("json")
		t.Run(name, func(t *testing.T) {
			of := func(r *Record) reflect.Value { return reflect.ValueOf(r).Elem().Field(i) }
			with := func(id string) *Record {
				r := new(Record)
				of(r).Set(reflect.MakeSlice(f.Type, 1, 1))
				of(r).Index(0).FieldByName("ID").SetString(id)
				return r
			}
			none, one := new(Record), with("x")
			none.plain()
			one.plain()
			for _, r := range []*Record{none, one} {
				if list := say(of(r).Interface()); strings.Contains(list, "null") {
					t.Errorf("plain leaves what is nil and has to be there: %s", list)
				}
			}
			if all, err := Diff(none, one); err != nil || len(all) != 1 || all[0].Section != name || all[0].ID != "x" {
				t.Errorf("Diff tells %v, %v of a new one", all, err)
			}
			merged, _, err := Merge(nil, none, one, Manual)
			if err != nil {
				t.Fatal(err)
			}
			for what, r := range map[string]*Record{
				"Merge": merged, "onto": none.onto(one, none), "heard": heard(none, none, one),
				"told": agreement{none, one, one, one, one}.told(),
			} {
				if of(r).Len() != 1 || content(r) != content(one) {
					t.Errorf("%s makes %s of a new one", what, say(of(r).Interface()))
				}
			}
			of(one.Clone()).Index(0).FieldByName("ID").SetString("of the clone")
			if id := of(one).Index(0).FieldByName("ID").String(); id != "x" {
				t.Errorf("Clone shares the list: the id is %s", id)
			}
			invalid, _ := with("").Check().(*InvalidError)
			if want := name + ": an id is missing"; invalid == nil || !slices.Contains(invalid.Problems, want) {
				t.Errorf("Check says %v, want %s", invalid, want)
			}
		})
	}
	if lists != len(sections) {
		t.Errorf("a record has %d lists and %d sections", lists, len(sections))
	}
}
