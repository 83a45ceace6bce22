package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/internal/misuse"
)

// Metrics counts what dispatchers and stores tell it. Make one with [New]. A nil or zero Metrics
// counts nothing, so that a program may do without. It is safe for concurrent use, and its methods
// never block.
type Metrics struct {
	started, resumed, rested *prometheus.CounterVec
	inFlight                 *prometheus.GaugeVec
	supersteps, nodes        *prometheus.HistogramVec
	attempts, interrupts     *prometheus.CounterVec
	appends, appendBytes     *prometheus.HistogramVec

	denials, effects                        *prometheus.CounterVec
	emitted, dropped                        *prometheus.CounterVec
	turns, settings                         *prometheus.CounterVec
	migrations, warnings                    *prometheus.CounterVec
	supervised                              supervised
	groupAppends, groupBytes, groupDuration prometheus.Histogram
	groupErrors                             prometheus.Counter
}

var (
	// From ten microseconds, which a step without a disk takes, to minutes.
	durations = prometheus.ExponentialBuckets(10e-6, 4, 13)
	// From one run alone to more than a store joins.
	joined = prometheus.ExponentialBuckets(1, 2, 11)
	// From one small entry to the largest append.
	sizes = prometheus.ExponentialBuckets(256, 4, 10)
)

// New makes Metrics and registers them with reg, all or none. It returns an error if reg has
// metrics of these names. If these are of another Metrics the error wraps a
// prometheus.AlreadyRegisteredError: one Metrics serves a whole process. A nil reg is an
// [*ArgumentError].
func New(reg prometheus.Registerer) (*Metrics, error) {
	if misuse.Missing(reg) {
		return nil, &ArgumentError{"registerer", "is nil: give prometheus.DefaultRegisterer, or a registry of your own"}
	}
	m := &Metrics{
		started:    counter("runs_started_total", "Runs that were opened, forks apart.", "graph"),
		resumed:    counter("runs_resumed_total", "Calls that went on with a run.", "graph"),
		rested:     counter("runs_rested_total", "Rests: calls and turns that ended, by what became of the run.", "graph", "status"),
		supersteps: histogram("superstep_duration_seconds", "Supersteps of a frame.", durations, "graph", "node"),
		nodes:      histogram("node_duration_seconds", "Attempts of nodes and items that run a function.", durations, "graph", "node"),
		attempts:   counter("attempts_total", "Attempts that ended, of nodes and items that run a function.", "graph", "node", "outcome"),
		interrupts: counter("interrupts_total", "Visits that began to wait.", "graph", "kind"),
		appends:    histogram("append_duration_seconds", "Until entries of a run were durable.", durations, "graph"),
		appendBytes: histogram("append_bytes", "About what the entries of one append take.", sizes,
			"graph"),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "pawl", Name: "runs_in_flight", Help: "Calls that have not ended.",
		}, []string{"graph"}),
		denials:       counter("denials_total", "Visits that were denied: by an interceptor, or because an effect was rejected.", "graph", "node"),
		effects:       counter("effects_total", "Effects that ended.", "graph", "node", "outcome"),
		emitted:       counter("emitted_total", "Values that nodes emitted, as far as they were kept.", "graph", "node"),
		dropped:       counter("notices_dropped_total", "Emitted values that were not kept.", "graph"),
		turns:         counter("turns_total", "Turns that were begun.", "graph"),
		settings:      counter("settings_changed_total", "Changes of the settings of runs.", "graph"),
		migrations:    counter("migrations_total", "Runs that went on with a changed graph.", "graph"),
		warnings:      counter("warnings_total", "Calls of OnEnd that went wrong.", "graph"),
		supervised:    newSupervised(),
		groupAppends:  single("group_appends", "Appends that one write of a store joined.", joined),
		groupBytes:    single("group_bytes", "Keys and values of one write of a store.", sizes),
		groupDuration: single("group_duration_seconds", "Until a write of a store was durable.", durations),
		groupErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "pawl", Name: "group_errors_total", Help: "Writes of a store that failed, or were refused for want of room.",
		}),
	}
	all := collector{
		m.started, m.resumed, m.rested, m.inFlight, m.supersteps, m.nodes, m.attempts,
		m.interrupts, m.denials, m.effects, m.emitted, m.dropped, m.turns, m.settings, m.migrations, m.warnings,
		m.appends, m.appendBytes,
		m.groupAppends, m.groupBytes, m.groupDuration, m.groupErrors,
	}
	all = append(all, m.supervised.collectors()...)
	if err := reg.Register(&all); err != nil {
		return nil, refused(err)
	}
	return m, nil
}

// An ArgumentError says which argument New can't do without. Nothing was registered.
type ArgumentError struct {
	Argument, Reason string
}

func (e *ArgumentError) Error() string { return "metrics: the " + e.Argument + " " + e.Reason }

// refused says what to do about an error of a registry.
func refused(err error) error {
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		return fmt.Errorf("metrics: already registered with this registerer: "+
			"share the one Metrics, or wrap the registerer with a label or prefix for each: %w", err)
	}
	return fmt.Errorf("metrics: the registerer refuses them: %w", err)
}

// idle reports whether m was not made by New.
func (m *Metrics) idle() bool { return m == nil || m.started == nil }

// Observe counts an event. It is meant for dispatcher.Options.Observe.
func (m *Metrics) Observe(e dispatcher.Event) {
	if m.idle() {
		return
	}
	switch e.Kind {
	case dispatcher.RunStarted:
		m.started.WithLabelValues(e.Graph).Inc()
		m.inFlight.WithLabelValues(e.Graph).Inc()
	case dispatcher.RunResumed:
		m.resumed.WithLabelValues(e.Graph).Inc()
		m.inFlight.WithLabelValues(e.Graph).Inc()
	case dispatcher.RunRested:
		m.rested.WithLabelValues(e.Graph, string(e.Status)).Inc()
		m.inFlight.WithLabelValues(e.Graph).Dec()
	case dispatcher.VisitDone:
		m.attempt(e, "done")
	case dispatcher.AttemptFailed:
		m.attempt(e, string(e.Failure))
		if denied(e) {
			m.denials.WithLabelValues(e.Graph, e.Node).Inc()
		}
	case dispatcher.EffectEnded:
		outcome := "kept"
		switch {
		case e.Outcome == "resolved":
			outcome = "resolved"
		case e.Phase == dispatcher.PhaseNotDone:
			outcome = "not_done"
		case e.Phase == dispatcher.PhaseLost:
			outcome = "lost"
		}
		m.effects.WithLabelValues(e.Graph, e.Node, outcome).Inc()
	case dispatcher.Emitted:
		m.emitted.WithLabelValues(e.Graph, e.Node).Inc()
	case dispatcher.Lagged:
		m.dropped.WithLabelValues(e.Graph).Add(float64(e.Dropped))
	case dispatcher.TurnBegun:
		m.turns.WithLabelValues(e.Graph).Inc()
		m.inFlight.WithLabelValues(e.Graph).Inc() // of a run that was completed
	case dispatcher.SettingsChanged:
		m.settings.WithLabelValues(e.Graph).Inc()
	case dispatcher.GraphMigrated:
		m.migrations.WithLabelValues(e.Graph).Inc()
	case dispatcher.Warned:
		m.warnings.WithLabelValues(e.Graph).Inc()
	case dispatcher.VisitInterrupted:
		m.interrupts.WithLabelValues(e.Graph, e.Outcome).Inc()
	case dispatcher.SuperstepEnded:
		m.supersteps.WithLabelValues(e.Graph, e.Node).Observe(e.Duration.Seconds())
	case dispatcher.Appended:
		m.appends.WithLabelValues(e.Graph).Observe(e.Duration.Seconds())
		m.appendBytes.WithLabelValues(e.Graph).Observe(float64(e.Bytes))
	}
}

// denied reports whether the event is of a visit that was denied itself, and not of one that
// holds it.
func denied(e dispatcher.Event) bool {
	var n *dispatcher.NodeError
	return e.Failure == dag.FailedDenied && (!errors.As(e.Err, &n) || n.Path == e.Path)
}

// attempt counts an attempt of user code. Loops and Embeds have none: what they take is
// told by the supersteps of their frames.
func (m *Metrics) attempt(e dispatcher.Event, outcome string) {
	if e.Attempt == 0 {
		return
	}
	m.attempts.WithLabelValues(e.Graph, e.Node, outcome).Inc()
	m.nodes.WithLabelValues(e.Graph, e.Node).Observe(e.Duration.Seconds())
}

// ObserveGroup counts a write of a store. It is meant for badgerstore.Options.Observe.
func (m *Metrics) ObserveGroup(g checkpoint.Group) {
	if m.idle() {
		return
	}
	if g.Err != nil {
		m.groupErrors.Inc()
		return
	}
	m.groupAppends.Observe(float64(g.Appends))
	m.groupBytes.Observe(float64(g.Bytes))
	m.groupDuration.Observe(g.Duration.Seconds())
}
