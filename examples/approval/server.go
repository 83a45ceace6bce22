package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A service answers for refunds. Each is a run whose id is its order.
type service struct {
	d   *dispatcher.Dispatcher[Refund]
	rt  *continuation.Runtime
	mux *http.ServeMux
}

// newService makes the service over a store. Refunds that are asked for go on until ctx ends, not
// until whoever asks hangs up.
func newService(ctx context.Context, store checkpoint.Store, c *config) (*service, error) {
	graph, err := flow(c.waits, treasury{c.books()})
	if err != nil {
		return nil, err
	}
	s := &service{mux: http.NewServeMux()}
	if s.d, err = dispatcher.New(graph, store, dispatcher.Options{}); err != nil {
		return nil, err
	}
	o := continuation.Options{Redeliver: c.redeliver, Deliveries: 1000}
	if c.followUp != "" {
		o.Deliverer = &webhook{s.d, c.followUp, &http.Client{Timeout: 10 * time.Second}}
	}
	if s.rt, err = continuation.New(s.d, o); err != nil {
		return nil, err
	}
	triggers, err := s.rt.Handler(continuation.HandlerOptions{
		Secret: []byte(c.secret), Authorities: []dag.Authority{dag.Human, dag.Agent},
	})
	if err != nil {
		return nil, err
	}
	s.mux.HandleFunc("POST /refunds", func(w http.ResponseWriter, r *http.Request) { s.ask(ctx, w, r) })
	s.mux.HandleFunc("GET /refunds/{order}", s.tell)
	s.mux.Handle("POST /triggers", triggers)
	return s, nil
}

// A request asks for a refund.
type request struct {
	Order  string `json:"order"`
	Cents  int    `json:"cents"`
	Reason string `json:"reason"`
}

var orders = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// ask begins a run, once for each order, that ends with ctx. It answers when the refund rests or is
// paid: what a small one takes is a moment, and a large one comes to wait as fast.
func (s *service) ask(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	var q request
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<10))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil || d.More() || !orders.MatchString(q.Order) || q.Cents <= 0 {
		problem(w, http.StatusBadRequest, `wanted: {"order": letters, digits and -, "cents": more than 0, "reason": text}`)
		return
	}
	_, err := s.d.Run(ctx, q.Order, func(f *Refund) {
		f.Order.Set(q.Order)
		f.Cents.Set(q.Cents)
		f.Reason.Set(q.Reason)
	}, dispatcher.Labels(continuation.Owed(nil)))
	s.rt.Look()
	if err != nil && !errors.Is(err, dispatcher.ErrInterrupted) && !errors.Is(err, checkpoint.ErrBusy) {
		problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	if at, err := s.d.State(r.Context(), q.Order); err == nil && at.State.Cents.Get() != q.Cents {
		problem(w, http.StatusConflict, fmt.Sprintf("order %s has a refund of %s", q.Order, money(at.State.Cents.Get())))
		return
	}
	s.status(w, r, q.Order)
}

// recover goes on with refunds that were on their way, and waited for nothing, when the last
// process ended. One that can't be gone on with keeps no other from it.
func (s *service) recover(ctx context.Context) error {
	f := checkpoint.Filter{Graph: s.d.Graph(), Status: []checkpoint.Status{
		checkpoint.StatusPending, checkpoint.StatusRunning, checkpoint.StatusCancelled,
	}}
	var errs []error
	for info, err := range checkpoint.Runs(ctx, s.d.Store(), f) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		_, err := s.d.Continue(ctx, info.Run)
		if err != nil && ctx.Err() == nil && !errors.Is(err, dispatcher.ErrInterrupted) && !errors.Is(err, checkpoint.ErrBusy) {
			errs = append(errs, fmt.Errorf("refund %s: %w", info.Run, err))
		}
	}
	return errors.Join(errs...)
}

func (s *service) tell(w http.ResponseWriter, r *http.Request) { s.status(w, r, r.PathValue("order")) }

// A standing is where a refund stands.
type standing struct {
	Order    string                      `json:"order"`
	Status   checkpoint.Status           `json:"status"`
	Decision string                      `json:"decision,omitempty"`
	By       string                      `json:"by,omitempty"`
	Why      string                      `json:"why,omitempty"`
	Receipt  string                      `json:"receipt,omitempty"`
	Failures []dag.Failure               `json:"failures,omitempty"` // of a run that failed
	Waits    []continuation.View         `json:"waits,omitempty"`
	Delivery continuation.DeliveryStatus `json:"delivery,omitempty"`
}

func (s *service) status(w http.ResponseWriter, r *http.Request, order string) {
	if !orders.MatchString(order) {
		problem(w, http.StatusNotFound, fmt.Sprintf("no order is called %q", order))
		return
	}
	// A run that is over stays so: what is read behind its delivery is no older than that.
	up, err := s.rt.DeliveryOf(r.Context(), order)
	if errors.Is(err, continuation.ErrNotFound) {
		problem(w, http.StatusNotFound, "there is no refund for order "+order)
		return
	}
	res, unread := s.d.State(r.Context(), order)
	waits, unlisted := s.rt.List(r.Context(), continuation.Filter{Run: order})
	if err := errors.Join(err, unread, unlisted); err != nil {
		problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	at := standing{
		Order: order, Status: res.Status, Decision: res.State.Decision.Get(), By: res.State.By.Get(),
		Why: res.State.Why.Get(), Receipt: res.State.Receipt.Get(), Failures: res.Failures, Delivery: up.Status,
	}
	for _, v := range waits {
		if !v.Status.Terminal() {
			at.Waits = append(at.Waits, v)
		}
	}
	reply(w, http.StatusOK, at)
}

// A webhook posts follow-ups.
type webhook struct {
	d      *dispatcher.Dispatcher[Refund]
	url    string
	client *http.Client
}

// Deliver implements [continuation.Deliverer].
func (h *webhook) Deliver(ctx context.Context, d continuation.Delivery) (continuation.DeliveryStatus, error) {
	res, err := h.d.State(ctx, d.End.Run)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(map[string]any{
		"order": d.End.Run, "status": d.End.Status, "decision": res.State.Decision.Get(), "receipt": res.State.Receipt.Get(),
	})
	if err != nil {
		return "", err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Idempotency-Key", d.Key)
	a, err := h.client.Do(q)
	if err != nil {
		return "", err
	}
	defer a.Body.Close()
	if a.StatusCode/100 != 2 {
		return "", fmt.Errorf("the follow-up was answered with %s", a.Status)
	}
	return continuation.Delivered, nil
}

func reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the other side is gone
}

func problem(w http.ResponseWriter, code int, text string) {
	reply(w, code, map[string]string{"error": text})
}
