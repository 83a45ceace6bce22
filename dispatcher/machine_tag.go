package dispatcher

import (
	"encoding/json"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
)

// tag gives a position of the log a name, which stays: a second one of that name does not fit.
func (m *machine) tag(x *fact) error {
	var t checkpoint.Tag
	if err := json.Unmarshal(x.Data, &t); err != nil {
		return err
	}
	if seq, ok := m.tags[t.Name]; ok {
		return fmt.Errorf("tag %q is given to entry %d and can't be given to entry %d", t.Name, seq, t.Seq)
	}
	if m.tags == nil {
		m.tags = map[string]uint64{}
	}
	m.tags[t.Name] = t.Seq
	return nil
}
