package record_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/record"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(record.Schema()))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("schema.json")
})

// conforms checks a record's JSON against the schema.
func conforms(t *testing.T, data []byte) {
	t.Helper()
	s, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(doc); err != nil {
		t.Errorf("%s\ndoes not conform: %v", data, err)
	}
}

// Every member that a record can have is in the schema, and the schema refuses what it does not
// know: a full record conforms, and none of a member more.
func TestSchemaKnowsEveryMember(t *testing.T) {
	r := full(t)
	data, err := r.Encode()
	done(t, err)
	conforms(t, data)
	s, err := compiled()
	done(t, err)
	for was, is := range map[string]string{
		`{"blockers"`: `{"note":1,"blockers"`, `"version":"1.0"`: `"version":"2.0"`, `"abandoned":true,`: `"abandoned":1,`,
		`"type":"human"`: `"type":"any"`, `"reversible":true,`: ``,
	} {
		other := bytes.Replace(data, []byte(was), []byte(is), 1)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(other))
		if err != nil || s.Validate(doc) == nil || bytes.Equal(other, data) {
			t.Errorf("conforms with %s for %s, %v", is, was, err)
		}
	}
}
