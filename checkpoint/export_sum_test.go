package checkpoint_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// superResum computes the sums of an export anew, as its format says.
func superResum(file []byte) []byte {
	var again []byte
	for line := range bytes.Lines(file) {
		at := bytes.LastIndex(line, []byte(`,"sum":"`))
		if at < 0 {
			return append(again, line...)
		}
		again = append(again, line[:at]...)
		sum := sha256.Sum256(again)
		n := 8
		if bytes.HasPrefix(line, []byte(`{"end":`)) {
			n = len(sum)
		}
		again = append(again, `,"sum":"`...)
		again = hex.AppendEncode(again, sum[:n])
		again = append(again, "\"}\n"...)
	}
	return again
}

// FuzzImport: whatever a file holds, Import returns. What it accepts it exports again, and
// that file it accepts as well. The sums are computed anew, so that what stands behind them
// is reached.
func FuzzImport(f *testing.F) {
	file := superExport(f, superRun(f, "run"), "run")
	f.Add(file)
	f.Add(superExport(f, superPlain{superRun(f, "run")}, "run"))
	f.Add(bytes.Replace(file, []byte(`"epoch":2`), []byte(`"epoch":18446744073709551615`), 1))
	f.Add(bytes.Replace(file, []byte(`"json"`), []byte(`"text"`), 1))
	f.Add([]byte(`{"pawl":"run","format":1,"run":"r","sum":""}` + "\n" + `{"end":"run","sum":""}` + "\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, file := range [][]byte{file, superResum(file)} {
			s := new(memory.Store)
			info, err := checkpoint.Import(t.Context(), s, bytes.NewReader(file), checkpoint.ImportOptions{LineBytes: 1 << 20})
			if err != nil {
				continue
			}
			again := superExport(t, s, info.Run)
			to := new(memory.Store)
			if second := superImport(t, to, again); second.Head != info.Head {
				t.Errorf("the head is %v, was %v", second.Head, info.Head)
			}
			if superLog(t, to, info.Run, true) != superLog(t, s, info.Run, true) {
				t.Error("the log is another one")
			}
		}
	})
}
