package bank

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// keyHeader carries the idempotency key of a request.
const keyHeader = "Idempotency-Key"

// longest is how many bytes a request may have.
const longest = 64 << 10

// ServeHTTP serves the operations, each by a POST to its name, GET /statement and POST /faults.
func (b *Bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, longest)
	name := Operation(r.URL.Path[min(1, len(r.URL.Path)):])
	switch {
	case r.Method == http.MethodGet && name == "statement":
		reply(w, http.StatusOK, b.Statement())
	case r.Method == http.MethodPost && name == "faults":
		b.serveFault(w, r)
	case r.Method == http.MethodPost && slices.Contains(Operations, name):
		b.serve(w, r, name)
	default:
		refuse(w, http.StatusNotFound, fmt.Errorf("there is no %s %s", r.Method, r.URL.Path))
	}
}

func (b *Bank) serveFault(w http.ResponseWriter, r *http.Request) {
	var f Fault
	if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	if err := b.Misbehave(f); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	reply(w, http.StatusOK, f)
}

// serve does an operation, or what a fault makes of it.
func (b *Bank) serve(w http.ResponseWriter, r *http.Request, o Operation) {
	var in Request
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	f, out, err := b.meet(o, r.Header.Get(keyHeader), in)
	switch f.Kind {
	case LoseRequest, LoseReply:
		panic(http.ErrAbortHandler) // which cuts the connection, and says nothing
	case Refuse:
		refuse(w, http.StatusUnprocessableEntity, fmt.Errorf("%s is refused", o))
		return
	case Unavailable:
		refuse(w, http.StatusServiceUnavailable, fmt.Errorf("%s is out of service", o))
		return
	case Slow:
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
		}
	}
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, err)
		return
	}
	reply(w, http.StatusOK, out)
}

// meet takes the fault that the request meets, and does what is asked unless the fault forbids it.
func (b *Bank) meet(o Operation, key string, in Request) (Fault, Reply, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.fault(o)
	switch f.Kind {
	case LoseRequest, Refuse, Unavailable:
		return f, Reply{}, nil
	}
	out, err := b.do(o, key, in)
	return f, out, err
}

// A problem is the body of a refusal.
type problem struct {
	Error string `json:"error"`
}

func refuse(w http.ResponseWriter, status int, err error) { reply(w, status, problem{err.Error()}) }

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has gone, and does not miss it
}
