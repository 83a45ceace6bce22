package milestone

import (
	"bytes"
	"encoding/json"
	"slices"
)

// lookup is what an object has under a name, nil if nothing. A name with dots is that of a member,
// or of one in a member that is an object.
func lookup(object json.RawMessage, name string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	if m, ok := members[name]; ok {
		return m
	}
	for i, c := range name {
		if c == '.' {
			if m := lookup(members[name[:i]], name[i+1:]); m != nil {
				return m
			}
		}
	}
	return nil
}

// empty reports whether JSON is that of a zero value, or of nothing: it is all that is known of a
// cell before the first superstep, since its type is not. Whatever has members is empty if they
// are.
func empty(cell json.RawMessage) bool {
	var v any
	return cell == nil || json.Unmarshal(cell, &v) == nil && zero(v)
}

func zero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case float64:
		return v == 0
	case string:
		return v == "" || v == "0001-01-01T00:00:00Z"
	case []any:
		return !slices.ContainsFunc(v, func(m any) bool { return !zero(m) })
	case map[string]any:
		for _, m := range v {
			if !zero(m) {
				return false
			}
		}
		return true
	}
	return false
}

// plainly is JSON as a person reads it: a string without quotes and escapes.
func plainly(cell json.RawMessage) string {
	var s string
	if bytes.HasPrefix(cell, []byte{'"'}) && json.Unmarshal(cell, &s) == nil {
		return s
	}
	return string(cell)
}
