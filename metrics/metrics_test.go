package metrics_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/metrics"
	"github.com/pawlgo/pawl/supervisor"
)

// A scrape is what a Prometheus server would see: the value of each series.
type scrape map[string]float64

func scraped(t *testing.T, reg *prometheus.Registry) scrape {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("scrape: %d: %s", w.Code, w.Body)
	}
	s := scrape{}
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(strings.TrimSpace(line[i+1:]), 64)
		if err != nil {
			t.Fatalf("scrape: %q: %v", line, err)
		}
		s[line[:i]] = v
	}
	return s
}

// check compares the series named in want.
func (s scrape) check(t *testing.T, want scrape) {
	t.Helper()
	for name, v := range want {
		if got, ok := s[name]; !ok || got != v {
			t.Errorf("%s = %v (there: %v), want %v", name, got, ok, v)
		}
	}
}

func newMetrics(t *testing.T) (*prometheus.Registry, *metrics.Metrics) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	m, err := metrics.New(reg)
	if err != nil {
		t.Fatal(err)
	}
	return reg, m
}

// everything is an event of each kind that is counted, and a group.
func everything(m *metrics.Metrics) {
	for _, e := range []dispatcher.Event{
		{Kind: dispatcher.RunStarted},
		{Kind: dispatcher.RunResumed},
		{Kind: dispatcher.RunRested, Status: checkpoint.StatusCompleted},
		{Kind: dispatcher.VisitDone, Path: "loop/2/a", Node: "loop/a", Attempt: 1, Duration: time.Millisecond},
		{Kind: dispatcher.AttemptFailed, Path: "loop/3/a", Node: "loop/a", Attempt: 1, Failure: dag.FailedPanic},
		{Kind: dispatcher.VisitInterrupted, Outcome: "asked"},
		{Kind: dispatcher.SuperstepEnded, Path: "loop/2", Node: "loop", Step: 1, Duration: 2 * time.Millisecond},
		{Kind: dispatcher.AttemptFailed, Path: "loop/4/a", Node: "loop/a", Failure: dag.FailedDenied, Err: &dispatcher.NodeError{Path: "loop/4/a"}},
		{Kind: dispatcher.AttemptFailed, Path: "loop", Node: "loop", Failure: dag.FailedDenied, Err: &dispatcher.NodeError{Path: "loop/4/a"}},
		{Kind: dispatcher.EffectEnded, Node: "loop/a", ID: "e", Phase: dispatcher.PhaseEnded},
		{Kind: dispatcher.EffectEnded, Node: "loop/a", ID: "f", Phase: dispatcher.PhaseNotDone, Cause: "not done: rain"},
		{Kind: dispatcher.EffectEnded, Node: "loop/a", ID: "h", Phase: dispatcher.PhaseLost, Cause: "done, and its output is lost: too large"},
		{Kind: dispatcher.EffectEnded, Node: "loop/a", ID: "g", Outcome: "resolved", By: "Ada", Phase: dispatcher.PhaseNotDone, Cause: "not done: no such charge"},
		{Kind: dispatcher.Emitted, Node: "loop/a"},
		{Kind: dispatcher.Lagged, Dropped: 7},
		{Kind: dispatcher.TurnBegun},
		{Kind: dispatcher.SettingsChanged},
		{Kind: dispatcher.GraphMigrated},
		{Kind: dispatcher.Warned},
		{Kind: dispatcher.Appended, Entries: 2, Bytes: 300, Duration: 3 * time.Millisecond},
	} {
		e.Graph, e.Run = "g", "r"
		m.Observe(e)
	}
	for _, e := range []supervisor.Event{
		{Kind: supervisor.Queued}, {Kind: supervisor.Began, Waited: time.Second}, {Kind: supervisor.PutBack}, {Kind: supervisor.Began}, {Kind: supervisor.Ended},
		{Kind: supervisor.Queued}, {Kind: supervisor.Began}, {Kind: supervisor.Queued}, {Kind: supervisor.Queued},
		{Kind: supervisor.Dropped}, {Kind: supervisor.Joined}, {Kind: supervisor.Refused, Err: supervisor.ErrQueueFull},
		{Kind: supervisor.Refused, Err: supervisor.ErrDraining}, {Kind: supervisor.Refused, Err: dispatcher.ErrBusy}, {Kind: supervisor.Recovered},
		{Kind: supervisor.Recovered, Err: errors.New("damaged")}, {Kind: supervisor.Drained, Err: supervisor.ErrStuck},
	} {
		e.Graph = "g"
		m.ObserveSupervisor(e)
	}
	m.ObserveGroup(checkpoint.Group{Appends: 3, Bytes: 900, Duration: time.Millisecond})
	m.ObserveGroup(checkpoint.Group{Appends: 1, Err: errors.New("disk")})
}

// The table in doc.go is what the registry says.
func TestNamesAreAsDocumented(t *testing.T) {
	reg, m := newMetrics(t)
	everything(m)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		got = append(got, fmt.Sprintf("%s %s %v", f.GetName(), strings.ToLower(f.GetType().String()), labels))
	}
	want := documented(t)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("registered:\n%s\ndocumented:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// documented reads the table of names in doc.go: name, type, and labels up to the column of
// explanations, which is set off by two spaces.
func documented(t *testing.T) []string {
	t.Helper()
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(string(source)) {
		row, ok := strings.CutPrefix(line, "//	pawl_")
		if !ok {
			continue
		}
		const labelColumn, whatColumn = 45, 67
		row = "pawl_" + row
		labels := strings.FieldsFunc(row[labelColumn:whatColumn], func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(labels)
		fields := strings.Fields(row[:labelColumn])
		rows = append(rows, fmt.Sprintf("%s %s %v", fields[0], fields[1], labels))
	}
	return rows
}

func TestTwoOnOneRegistry(t *testing.T) {
	reg, m := newMetrics(t)
	_, err := metrics.New(reg)
	var already prometheus.AlreadyRegisteredError
	if !errors.As(err, &already) || !strings.HasPrefix(err.Error(), "metrics: ") {
		t.Errorf("New on a registry that has one = %v, want an AlreadyRegisteredError of ours", err)
	} else if !strings.Contains(err.Error(), "already registered") || !strings.Contains(err.Error(), "share the one Metrics") {
		t.Errorf("New on a registry that has one does not say what to do: %v", err)
	}
	everything(m)
	scraped(t, reg).check(t, scrape{`pawl_runs_started_total{graph="g"}`: 1})
}

// Two programs in one process keep theirs apart by a label.
func TestTwoUnderLabelsOfTheirOwn(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	for _, tenant := range []string{"a", "b"} {
		m, err := metrics.New(prometheus.WrapRegistererWith(prometheus.Labels{"tenant": tenant}, reg))
		if err != nil {
			t.Fatalf("New for tenant %s = %v", tenant, err)
		}
		everything(m)
	}
	scraped(t, reg).check(t, scrape{
		`pawl_runs_started_total{graph="g",tenant="a"}`: 1,
		`pawl_runs_started_total{graph="g",tenant="b"}`: 1,
	})
}

// A name that somebody else has leaves the registry as it was.
func TestAllOrNoneIsRegistered(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	other := prometheus.NewCounter(prometheus.CounterOpts{Name: "pawl_group_errors_total", Help: "Another's."})
	reg.MustRegister(other)
	if _, err := metrics.New(reg); err == nil {
		t.Fatal("New with a name that is taken: no error")
	}
	// If ours were there, this one, which has other labels, would be refused.
	sound := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pawl_runs_started_total", Help: "Another's."}, []string{"x"})
	if err := reg.Register(sound); err != nil {
		t.Errorf("the New that failed left something behind: %v", err)
	}
}

func TestNoRegisterer(t *testing.T) {
	var nobody *prometheus.Registry
	for _, reg := range []prometheus.Registerer{nil, nobody} {
		var argument *metrics.ArgumentError
		if _, err := metrics.New(reg); !errors.As(err, &argument) || !strings.Contains(err.Error(), "registerer is nil: give") {
			t.Errorf("New(%T(nil)): %v", reg, err)
		}
	}
}

func TestValues(t *testing.T) {
	reg, m := newMetrics(t)
	everything(m)
	values := scraped(t, reg)
	if n, there := values[`pawl_denials_total{graph="g",node="loop"}`]; there {
		t.Errorf("a frame that holds a visit which was denied counts as %v that were", n)
	}
	values.check(t, scrape{
		`pawl_group_appends_sum`:                                         3,
		`pawl_group_appends_count`:                                       1,
		`pawl_group_bytes_sum`:                                           900,
		`pawl_group_duration_seconds_bucket{le="0.00064"}`:               0,
		`pawl_group_duration_seconds_bucket{le="0.00256"}`:               1,
		`pawl_group_errors_total`:                                        1,
		`pawl_append_bytes_sum{graph="g"}`:                               300,
		`pawl_append_duration_seconds_sum{graph="g"}`:                    0.003,
		`pawl_superstep_duration_seconds_sum{graph="g",node="loop"}`:     0.002,
		`pawl_node_duration_seconds_sum{graph="g",node="loop/a"}`:        0.001,
		`pawl_node_duration_seconds_count{graph="g",node="loop/a"}`:      2,
		`pawl_attempts_total{graph="g",node="loop/a",outcome="done"}`:    1,
		`pawl_attempts_total{graph="g",node="loop/a",outcome="panic"}`:   1,
		`pawl_denials_total{graph="g",node="loop/a"}`:                    1,
		`pawl_effects_total{graph="g",node="loop/a",outcome="kept"}`:     1,
		`pawl_effects_total{graph="g",node="loop/a",outcome="lost"}`:     1,
		`pawl_effects_total{graph="g",node="loop/a",outcome="not_done"}`: 1,
		`pawl_effects_total{graph="g",node="loop/a",outcome="resolved"}`: 1,
		`pawl_notices_dropped_total{graph="g"}`:                          7,
		`pawl_supervisor_working{graph="g"}`:                             1,
		`pawl_supervisor_waiting{graph="g"}`:                             1,
		`pawl_supervisor_wait_seconds_sum{graph="g"}`:                    1,
		`pawl_supervisor_refused_total{graph="g",reason="full"}`:         1,
		`pawl_supervisor_refused_total{graph="g",reason="draining"}`:     1,
		`pawl_supervisor_refused_total{graph="g",reason="busy"}`:         1,
		`pawl_supervisor_recovered_total{graph="g",outcome="failed"}`:    1,
		`pawl_supervisor_drains_total{outcome="stuck"}`:                  1,
	})
}

// A program that does without metrics may hold none, and be told of everything all the same.
func TestMetricsOfNobodyCountNothing(t *testing.T) {
	for _, m := range []*metrics.Metrics{nil, {}} {
		for kind := dispatcher.RunStarted; kind <= dispatcher.RunRewound; kind++ {
			m.Observe(dispatcher.Event{Kind: kind, Attempt: 1})
		}
		for kind := supervisor.Queued; kind <= supervisor.Recovered; kind++ {
			m.ObserveSupervisor(supervisor.Event{Kind: kind})
		}
		m.ObserveGroup(checkpoint.Group{})
	}
}
