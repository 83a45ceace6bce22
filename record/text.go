package record

import (
	"fmt"
	"reflect"
	"unicode/utf8"
)

// longestAnswer is how many bytes an answer may have that is given to a ledger. What a run was
// answered is told whole.
const longestAnswer = 1 << 20

// texts adds the texts that are no UTF-8, which JSON would make others of.
func (c *checker) texts(where string, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			c.add("%s: a text is no UTF-8: %.40q", where, v.String())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			c.texts(where+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			c.texts(where, v.Elem())
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if !utf8.Valid(v.Bytes()) {
				c.add("%s: a text is no UTF-8: %.40q", where, v.Bytes())
			}
			return
		}
		for i := range v.Len() {
			c.texts(fmt.Sprintf("%s[%d]", where, i), v.Index(i))
		}
	}
}
