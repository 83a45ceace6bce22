package record

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// A number is kept as one if it is what the double next to it prints, however it is written.
func TestExactNumbers(t *testing.T) {
	for number, want := range map[string]bool{
		"0": true, "-0": true, "0.000": true, "0e99999999999999999999": true, "1e-400": false, "1e400": false,
		"0.1": true, "1e-1": true, "10E-2": true, "0.10000": true, "100e-3": true, "-2.5E+3": true,
		"9007199254740992": true, "9007199254740993": false, "0.1000000000000000055": false,
		"1e99999999999999999999": false, "1e-99999999999999999999": false,
		"1" + strings.Repeat("0", 30) + "e-30": true, "0." + strings.Repeat("3", 1<<20): false,
	} {
		if exact(number) != want {
			t.Errorf("exact(%.40s) = %t", number, !want)
		}
	}
	r := rand.New(rand.NewPCG(1, 3))
	for range 5000 {
		number := fmt.Sprintf("%d.%0*de%d", r.IntN(1000), r.IntN(12), r.IntN(1_000_000), r.IntN(40)-20)
		f, err := strconv.ParseFloat(number, 64)
		shown, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
		told, _ := new(big.Rat).SetString(number)
		if want := err == nil && told.Cmp(shown) == 0; exact(number) != want {
			t.Fatalf("exact(%s) = %t", number, !want)
		}
	}
}
