package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// A chart is well-formed, and names its axes and lines for who can't see it.
func TestChartIsSVG(t *testing.T) {
	var c chart
	for _, n := range []float64{1, 10, 100} {
		c.point("pawl", n, 3*n)
		c.point("a < b", n, 2)
		c.point("nothing", n, 0) // has no place
	}
	svg := c.svg(look{title: "a title & more", x: "nodes", y: "µs", logX: true, logY: true})
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(string(svg), "nothing") || strings.Contains(string(svg), "NaN") {
		t.Error("the chart shows what has no place on its axis")
	}
	for _, want := range []string{"a title &amp; more", "nodes", "µs", "pawl", "a &lt; b", "prefers-color-scheme: dark"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the chart does not have %q", want)
		}
	}
}

// Ticks are round numbers that the axis has, and values lie between the ends of the axis.
func TestAxis(t *testing.T) {
	for _, test := range []struct {
		axis axis
		want []float64
	}{
		{axis{low: 10, high: 10_000, log: true}, []float64{10, 100, 1_000, 10_000}},
		{axis{low: 3, high: 40, log: true}, []float64{2, 5, 10, 20, 50}},
		{axis{low: 0.5, high: 8}, []float64{0, 2, 4, 6, 8}},
		{axis{low: 7, high: 7, log: true}, []float64{5, 10, 20}},
	} {
		a := test.axis
		a.from, a.to = 0, 100
		a.scale(true)
		if !slices.Equal(a.ticks, test.want) {
			t.Errorf("ticks of %v to %v: %v, want %v", test.axis.low, test.axis.high, a.ticks, test.want)
		}
		if at := a.place(test.axis.high); at < 0 || at > 100 {
			t.Errorf("%v is placed at %v of an axis of 100", test.axis.high, at)
		}
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0.5: "0.5", 20: "20", 3_000: "3k", 1e6: "1M", 2_500_000: "2.5M"} {
		if got := short(v); got != want {
			t.Errorf("short(%v) = %q, want %q", v, got, want)
		}
	}
}
