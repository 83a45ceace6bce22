package metrics

import "github.com/prometheus/client_golang/prometheus"

// A collector is several collectors that are registered as one, because a Registerer
// promises all or nothing for one only.
type collector []prometheus.Collector

// Describe implements [prometheus.Collector].
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, one := range *c {
		one.Describe(descs)
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	for _, one := range *c {
		one.Collect(metrics)
	}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "pawl", Name: name, Help: help,
	}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "pawl", Name: name, Help: help,
	}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "pawl", Name: name, Help: help, Buckets: buckets,
	}, labels)
}

func single(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: "pawl", Name: name, Help: help, Buckets: buckets,
	})
}
