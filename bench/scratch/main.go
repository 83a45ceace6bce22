package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

type Page struct {
	Number int
	Title  string
	Text   string
}

type Work struct {
	Page  state.Value[Page]
	Title state.Value[string]
	Notes state.List[string]
	Seen  state.Set[string]
	Score state.Value[float64]
	Count state.Sum[int]
}

func main() {
	n := flag.Int("n", 1000, "nodes")
	mem := flag.Bool("mem", false, "memory store")
	fan := flag.Bool("fan", false, "fan")
	out := flag.String("o", "/tmp/cpu.prof", "")
	d := flag.Duration("d", 3*time.Second, "")
	memp := flag.String("memp", "", "")
	kb := flag.Bool("kb", false, "1 KB")
	flag.BoolVar(&cold, "cold", false, "cold resume")
	res := flag.Bool("res", false, "resume")
	flag.Parse()
	if *kb {
		text := strings.Repeat("a pawl lets a ratchet turn one way; ", 26)
		step0 = func(_ context.Context, w *Work) error {
			n := w.Count.Get() + 1
			w.Count.Set(n)
			w.Page.Set(Page{Number: n, Title: "a page of a thousand bytes", Text: text})
			return nil
		}
	}
	if *res {
		memRes = *memp
		resume(*n, *d, *out)
		return
	}
	step := step0
	b := dag.New[Work]("chain")
	last := dag.Edge[Work](dag.Step(b, "node-1", step))
	if *fan {
		var sides []dag.Edge[Work]
		for i := 2; i <= *n; i++ {
			sides = append(sides, dag.Step(b, fmt.Sprintf("node-%d", i), step, last))
		}
		dag.Step(b, "last", step, sides...)
	} else {
		for i := 2; i <= *n; i++ {
			last = dag.Step(b, fmt.Sprintf("node-%d", i), step, last)
		}
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	var s checkpoint.Store
	if *mem {
		s = new(memory.Store)
	}
	disp, err := dispatcher.New(g, s, dispatcher.Options{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if *memp != "" {
		runtime.MemProfileRate = 1
		for i := range 50 {
			disp.Start(ctx, fmt.Sprint("w", i), nil)
		}
		runtime.GC()
		f, _ := os.Create(*memp)
		pprof.Lookup("allocs").WriteTo(f, 0)
		f.Close()
		var a, b runtime.MemStats
		runtime.ReadMemStats(&a)
		disp.Start(ctx, "chain2", nil)
		runtime.ReadMemStats(&b)
		fmt.Println("per run: allocs", b.Mallocs-a.Mallocs, "bytes", b.TotalAlloc-a.TotalAlloc)
		return
	}
	f, _ := os.Create(*out)
	pprof.StartCPUProfile(f)
	began := time.Now()
	runs := 0
	var all []float64
	for time.Since(began) < *d {
		if *mem && runs%50 == 0 {
			disp, _ = dispatcher.New(g, new(memory.Store), dispatcher.Options{})
		}
		id := "chain"
		if *mem {
			id = fmt.Sprint("r", runs)
		}
		t0 := time.Now()
		if _, err := disp.Start(ctx, id, nil); err != nil {
			panic(err)
		}
		all = append(all, float64(time.Since(t0)))
		runs++
	}
	var ru syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	cpu := time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	took := time.Since(began)
	pprof.StopCPUProfile()
	slices.Sort(all)
	fmt.Printf("min %.0f p10 %.0f p50 %.0f ns per node; ", all[0]/float64(*n), all[len(all)/10]/float64(*n), all[len(all)/2]/float64(*n))
	fmt.Printf("%d runs, %v per run, %.0f ns per node; CPU %v per run\n", runs, took/time.Duration(runs), float64(took)/float64(runs)/float64(*n), cpu/time.Duration(runs))
}

func resume(n int, dur time.Duration, out string) {
	step := func(_ context.Context, w *Work) error { w.Count.Add(1); return nil }
	ask := func(ctx context.Context, w *Work) error {
		if _, err := dag.Ask[bool](ctx, "sure", "Shall I go on?"); err != nil {
			return err
		}
		return step(ctx, w)
	}
	b := dag.New[Work]("chain")
	last := dag.Edge[Work](dag.Step(b, "node-1", step))
	for i := 2; i <= n; i++ {
		f := step
		if i == n-1 {
			f = ask
		}
		last = dag.Step(b, fmt.Sprintf("node-%d", i), f, last)
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	store := new(memory.Store)
	d, err := dispatcher.New(g, store, dispatcher.Options{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if memRes != "" {
		runtime.MemProfileRate = 1
		var a, b, c runtime.MemStats
		for i := range 50 {
			run := fmt.Sprint("r", i)
			r, _ := d.Start(ctx, run, nil)
			runtime.ReadMemStats(&a)
			d.Answer(ctx, run, r.Interrupts[0].ID, true)
			runtime.ReadMemStats(&b)
			d.Run(ctx, run, nil)
			runtime.ReadMemStats(&c)
		}
		fmt.Println("answer: allocs", b.Mallocs-a.Mallocs, "bytes", b.TotalAlloc-a.TotalAlloc, "run: allocs", c.Mallocs-b.Mallocs, "bytes", c.TotalAlloc-b.TotalAlloc)
		runtime.GC()
		f, _ := os.Create(memRes)
		pprof.Lookup("allocs").WriteTo(f, 0)
		f.Close()
		return
	}
	f, _ := os.Create(out)
	pprof.StartCPUProfile(f)
	var starts, answers, resumes []float64
	for began, i := time.Now(), 0; time.Since(began) < dur; i++ {
		run := fmt.Sprint("r", i)
		t0 := time.Now()
		r, _ := d.Start(ctx, run, nil)
		d := d
		if cold {
			d, _ = dispatcher.New(g, store, dispatcher.Options{})
		}
		t1 := time.Now()
		if err := d.Answer(ctx, run, r.Interrupts[0].ID, true); err != nil {
			panic(err)
		}
		t2 := time.Now()
		if _, err := d.Run(ctx, run, nil); err != nil {
			panic(err)
		}
		t3 := time.Now()
		starts, answers, resumes = append(starts, float64(t1.Sub(t0))), append(answers, float64(t2.Sub(t1))), append(resumes, float64(t3.Sub(t2)))
		if err := store.Delete(ctx, run); err != nil {
			panic(err)
		}
	}
	pprof.StopCPUProfile()
	for _, x := range [][]float64{starts, answers, resumes} {
		slices.Sort(x)
		fmt.Printf("min %.1f p10 %.1f p50 %.1f us; ", x[0]/1e3, x[len(x)/10]/1e3, x[len(x)/2]/1e3)
	}
	fmt.Println("start, answer, resume", len(starts))
}

var step0 = func(_ context.Context, w *Work) error { w.Count.Add(1); return nil }

var memRes string

var cold bool
