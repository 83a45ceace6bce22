package main

import (
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

func BenchmarkNoStore(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d, err := dispatcher.New(chain(n, step), nil, dispatcher.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Start(b.Context(), "r", nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		})
	}
}
func BenchmarkFan(b *testing.B) {
	for _, n := range []int{2, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d, err := dispatcher.New(fan(n), nil, dispatcher.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Start(b.Context(), "r", nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := chain(n, step)
			var s memory.Store
			d, err := dispatcher.New[Work](g, &s, dispatcher.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				id := fmt.Sprint("r", i)
				i++
				if _, err := d.Start(b.Context(), id, nil); err != nil {
					b.Fatal(err)
				}
				if err := s.Delete(b.Context(), id); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		})
	}
}

var _ checkpoint.Store
