package metrics_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/metrics"
	"github.com/pawlgo/pawl/state"
)

type visitor struct {
	Name state.Value[string]
}

// Metrics of runs on an HTTP endpoint, beside the program's own.
func Example() {
	b := dag.New[visitor]("welcome")
	dag.Step(b, "greet", func(_ context.Context, v *visitor) error {
		fmt.Println("hello,", v.Name.Get())
		return nil
	})
	graph, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry)
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{Observe: m.Observe})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()

	for _, name := range []string{"Ada", "Grace"} {
		if _, err := d.Run(context.Background(), "visit of "+name, func(v *visitor) { v.Name.Set(name) }); err != nil {
			fmt.Println(err)
		}
	}
	page, err := http.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer page.Body.Close()
	for lines := bufio.NewScanner(page.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "pawl_runs_") {
			fmt.Println(lines.Text())
		}
	}
	// Output:
	// hello, Ada
	// hello, Grace
	// pawl_runs_in_flight{graph="welcome"} 0
	// pawl_runs_rested_total{graph="welcome",status="completed"} 2
	// pawl_runs_started_total{graph="welcome"} 2
}
