package main

import (
	"encoding/json"
	"testing"

	"github.com/pawlgo/pawl/dag"
)

// What is called 1 KB is that: a Page as JSON, whoever writes it, and a superstep of text, which a
// store keeps as it is. One of longText is more than it keeps without trying to compress it.
func TestSizes(t *testing.T) {
	for _, n := range []int{1, 10_000} {
		data, err := json.Marshal(page(n, pageText))
		if err != nil || len(data) < 1_000 || len(data) > 1_030 {
			t.Errorf("page %d is %d bytes, %v; want 1 000 to 1 030", n, len(data), err)
		}
	}
	const triesAbove = 1_152
	s := session{dir: t.TempDir()}
	for _, test := range []struct {
		name        string
		g           *dag.Graph[Work]
		least, most int
	}{
		{"text", chain(20, write), 1_000, triesAbove},
		{"longText", chain(20, writeLong), triesAbove + keySize + 1, 1_501},
	} {
		if n, err := sizeOf(s, test.g); err != nil || n < test.least || n > test.most {
			t.Errorf("a superstep of %s is %d bytes, %v; want %d to %d", test.name, n, err, test.least, test.most)
		}
	}
}

// Noise is as long as it is asked to be, and nobody who writes it as JSON has to escape any of it.
func TestNoise(t *testing.T) {
	text := noise(7, 10_000)
	data, err := json.Marshal(text)
	if err != nil || len(text) != 10_000 || string(data) != `"`+text+`"` {
		t.Errorf("noise of %d bytes is %d bytes of JSON, %v; want 10000 and two more", len(text), len(data), err)
	}
}
