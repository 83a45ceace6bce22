package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/metrics"
)

// An exporter serves the metrics of a session over HTTP until it is closed.
type exporter struct {
	observe      func(dispatcher.Event)
	observeGroup func(checkpoint.Group)
	close        func() error
}

// export listens on addr, and says where.
func export(addr string, stderr io.Writer) (*exporter, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, usagef("-metrics: %v", err)
	}
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("-metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }() // until close, which waits for it
	fmt.Fprintf(stderr, "metrics at http://%s/metrics\n", listener.Addr())
	return &exporter{m.Observe, m.ObserveGroup, func() error { return stop(server, ended) }}, nil
}

// stop lets a scrape under way end, but not for long.
func stop(server *http.Server, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
