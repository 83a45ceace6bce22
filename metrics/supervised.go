package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// supervised is what is counted of supervisors.
type supervised struct {
	working, waiting                   *prometheus.GaugeVec
	waits                              *prometheus.HistogramVec
	joined, refused, recovered, drains *prometheus.CounterVec
	ended, putBack                     *prometheus.CounterVec
}

func newSupervised() supervised {
	return supervised{
		working:   gauge("supervisor_working", "Runs at work.", "graph"),
		waiting:   gauge("supervisor_waiting", "Runs that wait for their turn.", "graph"),
		waits:     histogram("supervisor_wait_seconds", "Until a run had its turn.", durations, "graph"),
		joined:    counter("supervisor_joined_total", "Submissions of runs that were there already.", "graph"),
		refused:   counter("supervisor_refused_total", "Submissions that were refused.", "graph", "reason"),
		recovered: counter("supervisor_recovered_total", "Runs that had been left, and went on or could not.", "graph", "outcome"),
		ended:     counter("supervisor_ended_total", "Runs on which the work is over.", "graph", "outcome"),
		putBack:   counter("supervisor_put_back_total", "Runs that wait again, since the store had no room.", "graph"),
		drains:    counter("supervisor_drains_total", "Drains that ended.", "outcome"),
	}
}

func (s *supervised) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.working, s.waiting, s.waits, s.joined, s.refused, s.recovered, s.drains, s.ended, s.putBack}
}

// ObserveSupervisor counts an event of a supervisor. It is meant for
// supervisor.Options.Observe.
func (m *Metrics) ObserveSupervisor(e supervisor.Event) {
	if m.idle() {
		return
	}
	s := &m.supervised
	switch e.Kind {
	case supervisor.Queued:
		s.waiting.WithLabelValues(e.Graph).Inc()
	case supervisor.Joined:
		s.joined.WithLabelValues(e.Graph).Inc()
	case supervisor.Refused:
		reason := "full"
		switch {
		case errors.Is(e.Err, supervisor.ErrDraining):
			reason = "draining"
		case errors.Is(e.Err, dispatcher.ErrBusy):
			reason = "busy"
		}
		s.refused.WithLabelValues(e.Graph, reason).Inc()
	case supervisor.Began:
		s.waiting.WithLabelValues(e.Graph).Dec()
		s.working.WithLabelValues(e.Graph).Inc()
		s.waits.WithLabelValues(e.Graph).Observe(e.Waited.Seconds())
	case supervisor.Ended:
		s.working.WithLabelValues(e.Graph).Dec()
		s.ended.WithLabelValues(e.Graph, endOf(e.Err)).Inc()
	case supervisor.PutBack:
		s.working.WithLabelValues(e.Graph).Dec()
		s.waiting.WithLabelValues(e.Graph).Inc()
		s.putBack.WithLabelValues(e.Graph).Inc()
	case supervisor.Dropped:
		s.waiting.WithLabelValues(e.Graph).Dec()
	case supervisor.Recovered:
		s.recovered.WithLabelValues(e.Graph, either(e.Err, "rested", "failed")).Inc()
	case supervisor.Drained:
		s.drains.WithLabelValues(either(e.Err, "ended", "stuck")).Inc()
	}
}

// endOf is what the work on a run has come to: it rests, whether completed or not, or stands in the
// store as it was left.
func endOf(err error) string {
	var rest *dispatcher.Rest
	switch {
	case err == nil, errors.As(err, &rest) && rest.Status.Resting():
		return "rested"
	case errors.Is(err, dispatcher.ErrDrain):
		return "drained"
	case errors.Is(err, checkpoint.ErrFull):
		return "full"
	}
	return "failed"
}

func either(err error, well, ill string) string {
	if err != nil {
		return ill
	}
	return well
}
