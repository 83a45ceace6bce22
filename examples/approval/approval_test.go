package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

const secret = "correct-horse-battery"

// program is the service, built once.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "approval")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "approval")
		if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// A house is the service as a program, which is killed and started again, and who gets its
// follow-ups.
type house struct {
	t    *testing.T
	dir  string
	args []string
	url  string
	kill func()
	stop func() error // as who runs it does: the error of its exit

	followUps *httptest.Server
	mu        sync.Mutex
	told      map[string][]string // bodies, by idempotency key
	refuse    int                 // follow-ups that are left to refuse
	news      chan struct{}
}

func newHouse(t *testing.T, args ...string) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), args: args, told: map[string][]string{}, news: make(chan struct{}, 100)}
	h.followUps = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		h.told[key] = append(h.told[key], string(body))
		if h.refuse > 0 {
			h.refuse--
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		h.news <- struct{}{}
	}))
	t.Cleanup(h.followUps.Close)
	h.start()
	t.Cleanup(func() { h.kill() })
	return h
}

// start starts the program, and waits until it serves.
func (h *house) start() {
	h.t.Helper()
	args := append([]string{
		"-listen", "localhost:0", "-dir", filepath.Join(h.dir, "data"), "-secret", secret,
		"-follow-up", h.followUps.URL, "-redeliver", "10ms",
	}, h.args...)
	c := exec.Command(program, args...)
	stderr, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.kill = sync.OnceFunc(func() { // as the machine would, if its power went
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	h.stop = func() error {
		return errors.Join(c.Process.Signal(syscall.SIGTERM), c.Wait())
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), "taken at "); ok {
			h.url = url
			go func() { _, _ = io.Copy(io.Discard, stderr) }() // ends with the program
			return
		}
		h.t.Log(lines.Text())
	}
	h.t.Fatal("the program ended before it served")
}

// again kills the program and starts it.
func (h *house) again() {
	h.t.Helper()
	h.kill()
	h.start()
}

// send makes a request, of the method POST if it has a body, and returns the body and the status of
// what is answered.
func (h *house) send(path, body string, header http.Header) (answer string, status int) {
	h.t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer a.Body.Close()
	raw, err := io.ReadAll(a.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(raw), a.StatusCode
}

func (h *house) ask(order string, cents int) standing {
	h.t.Helper()
	body, status := h.send("/refunds", fmt.Sprintf(`{"order":%q,"cents":%d,"reason":"broken"}`, order, cents), nil)
	if status != http.StatusOK {
		h.t.Fatalf("asking for a refund: %d %s", status, body)
	}
	return h.read(body)
}

func (h *house) read(body string) (s standing) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		h.t.Fatalf("%v: %s", err, body)
	}
	return s
}

func (h *house) stands(order string) standing {
	h.t.Helper()
	body, status := h.send("/refunds/"+order, "", nil)
	if status != http.StatusOK {
		h.t.Fatalf("%s: %d %s", order, status, body)
	}
	return h.read(body)
}

// pull sends a trigger, signed.
func (h *house) pull(trigger continuation.Trigger) (body string, status int) {
	h.t.Helper()
	raw, err := json.Marshal(trigger)
	if err != nil {
		h.t.Fatal(err)
	}
	now := time.Now()
	header := http.Header{}
	header.Set(continuation.TimestampHeader, strconv.FormatInt(now.Unix(), 10))
	header.Set(continuation.SignatureHeader, continuation.Sign([]byte(secret), now, raw))
	return h.send("/triggers", string(raw), header)
}

// follow waits until n follow-ups have come.
func (h *house) follow(n int) {
	h.t.Helper()
	late, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	for range n {
		select {
		case <-h.news:
		case <-late.Done():
			h.t.Fatal("no follow-up comes")
		}
	}
}

// settled waits until the refund is over and its follow-up was delivered.
func (h *house) settled(order string) standing {
	h.t.Helper()
	for late := time.Now().Add(time.Minute); time.Now().Before(late); {
		if s := h.stands(order); s.Delivery == continuation.Delivered {
			return s
		}
	}
	h.t.Fatalf("%s: the follow-up was not delivered: %+v", order, h.stands(order))
	return standing{}
}

// approval is the trigger of somebody who has decided about an order.
func approval(id, order string, d continuation.Decision, who string, authority dag.Authority) continuation.Trigger {
	return continuation.Trigger{
		ID: id, Kind: continuation.KindApproval, Key: order, Decision: d,
		Actor: continuation.Actor{ID: who, Authority: authority},
	}
}

// A small refund is paid at once; a large one waits for a person, and is paid once, when it was
// held for a while. The service is killed before and after each step, and the follow-up is refused
// twice.
func TestApproved(t *testing.T) {
	h := newHouse(t, "-hold", "100ms")
	h.mu.Lock()
	h.refuse = 2
	h.mu.Unlock()
	if s := h.ask("A-1", 5_00); s.Status != checkpoint.StatusCompleted || s.Receipt != "receipt 1" {
		t.Errorf("a small refund: %+v", s)
	}
	h.follow(3) // two are refused
	h.again()
	if s := h.ask("A-2", 900_00); s.Status != checkpoint.StatusInterrupted || len(s.Waits) != 1 || s.Waits[0].Expects[0].Key != "A-2" {
		t.Errorf("a large refund: %+v", s)
	}
	h.again()
	if s := h.ask("A-2", 900_00); s.Status != checkpoint.StatusInterrupted { // asked again
		t.Errorf("a large refund that is asked for again: %+v", s)
	}
	yes := approval("t-1", "A-2", continuation.Approved, "mia", dag.Human)
	first, status := h.pull(yes)
	if status != http.StatusOK {
		t.Fatalf("approved: %d %s", status, first)
	}
	h.again()
	body, status := h.pull(yes) // whoever does not know whether it came repeats it
	var was, is continuation.Outcome
	if err := errors.Join(json.Unmarshal([]byte(first), &was), json.Unmarshal([]byte(body), &is)); err != nil || status != http.StatusOK || was.Receipt != is.Receipt {
		t.Errorf("the same trigger again: %d %s, and first %s (%v)", status, body, first, err)
	}
	h.again()
	s := h.settled("A-2")
	if s.Status != checkpoint.StatusCompleted || s.Decision != "approved" || s.By != "mia" || s.Receipt != "receipt 2" {
		t.Errorf("in the end: %+v", s)
	}
	h.settled("A-1")
	h.again()
	if body, status := h.pull(approval("t-2", "A-2", continuation.Denied, "joe", dag.Human)); status != http.StatusGone {
		t.Errorf("a denial that comes too late: %d %s", status, body)
	}
	paid, err := treasury{filepath.Join(h.dir, "data", "payments.jsonl")}.payments()
	if err != nil || len(paid) != 2 || paid[0].Order != "A-1" || paid[1].Cents != 900_00 {
		t.Errorf("paid %+v, %v", paid, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.told) != 2 {
		t.Errorf("follow-ups have the keys and bodies %q", h.told)
	}
	for key, bodies := range h.told {
		for _, body := range bodies {
			if body != bodies[0] {
				t.Errorf("under the key %s came %q", key, bodies)
			}
		}
	}
}

// What nobody may do is refused, and changes nothing: no signature, no authority, another order,
// another kind.
func TestRefused(t *testing.T) {
	h := newHouse(t)
	before := h.ask("B-1", 900_00)
	h.again()
	body, status := h.send("/triggers", `{"id":"x","kind":"approval_resolution","key":"B-1","decision":"approved","actor":{"authority":"human"}}`, nil)
	if status != http.StatusUnauthorized {
		t.Errorf("without a signature: %d %s", status, body)
	}
	reply := continuation.Trigger{ID: "y", Kind: continuation.KindReply, Run: "B-1", Actor: continuation.Actor{ID: "mia", Authority: dag.Human}}
	for name, c := range map[string]struct {
		trigger continuation.Trigger
		status  int
	}{
		"a program":     {approval("a", "B-1", continuation.Approved, "bot", dag.Agent), http.StatusForbidden},
		"another order": {approval("b", "B-2", continuation.Approved, "mia", dag.Human), http.StatusNotFound},
		"a reply":       {reply, http.StatusConflict},
		"no decision":   {approval("c", "B-1", "", "mia", dag.Human), http.StatusUnprocessableEntity},
	} {
		if body, status := h.pull(c.trigger); status != c.status {
			t.Errorf("%s: %d %s, want %d", name, status, body, c.status)
		}
	}
	if body, status := h.send("/refunds", `{"order":"B-1","cents":1}`, nil); status != http.StatusConflict {
		t.Errorf("another amount for one order: %d %s", status, body)
	}
	for _, bad := range []string{`{"order":"../x","cents":1}`, `{"order":"B-3","cents":0}`, `{`, `{"order":"B-4","cents":1}{}`} {
		if body, status := h.send("/refunds", bad, nil); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, status, body)
		}
	}
	for _, order := range []string{"B-9", "%00"} {
		if body, status := h.send("/refunds/"+order, "", nil); status != http.StatusNotFound {
			t.Errorf("a refund that nobody asked for: %d %s", status, body)
		}
	}
	for _, args := range [][]string{{"-manager", "-5s"}, {"-follow-up", "nowhere"}, {"-secret", "short"}, {"x"}} {
		c := exec.Command(program, append([]string{"-dir", t.TempDir(), "-secret", secret}, args...)...)
		if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "approval:") {
			t.Errorf("%q: %v %s", args, err, out)
		}
	}
	if after := h.stands("B-1"); !reflect.DeepEqual(after, before) {
		t.Errorf("it was\n%+v\nand is\n%+v", before, after)
	}
}

// A denial, and a payment that is called off, end without one, and the customer is told why.
func TestDenied(t *testing.T) {
	h := newHouse(t)
	h.ask("C-1", 900_00)
	h.ask("C-2", 900_00)
	h.again()
	no := approval("n", "C-1", continuation.Denied, "mia", dag.Human)
	no.Reason = "it was used"
	if body, status := h.pull(no); status != http.StatusOK {
		t.Fatalf("denied: %d %s", status, body)
	}
	if body, status := h.pull(approval("y", "C-2", continuation.Approved, "mia", dag.Human)); status != http.StatusOK {
		t.Fatalf("approved: %d %s", status, body)
	}
	h.again()
	off := continuation.Trigger{
		ID: "off", Kind: continuation.KindReply, Key: "call-off C-2", Payload: json.RawMessage(`"it was found"`),
		Actor: continuation.Actor{ID: "joe", Authority: dag.Human},
	}
	if body, status := h.pull(off); status != http.StatusOK {
		t.Fatalf("called off: %d %s", status, body)
	}
	h.again()
	for order, want := range map[string]standing{
		"C-1": {Decision: "denied", By: "mia", Why: "it was used"},
		"C-2": {Decision: "called off", By: "joe", Why: "it was found"},
	} {
		if s := h.settled(order); s.Status != checkpoint.StatusCompleted || s.Decision != want.Decision || s.By != want.By || s.Why != want.Why || s.Receipt != "" {
			t.Errorf("%s: %+v", order, s)
		}
	}
	if paid, err := (treasury{filepath.Join(h.dir, "data", "payments.jsonl")}).payments(); err != nil || len(paid) > 0 {
		t.Errorf("paid %+v, %v", paid, err)
	}
}

// If no person decides in time whoever is on duty may, a program included.
func TestEscalated(t *testing.T) {
	h := newHouse(t, "-manager", "10ms", "-duty", "1h", "-hold", "1ms")
	h.ask("D-1", 900_00)
	h.again()
	for late := time.Now().Add(time.Minute); ; {
		if s := h.stands("D-1"); len(s.Waits) == 1 && s.Waits[0].Level == 2 {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("it was not escalated: %+v", h.stands("D-1"))
		}
	}
	h.again()
	if body, status := h.pull(approval("d", "D-1", continuation.Approved, "bot", dag.Agent)); status != http.StatusOK {
		t.Fatalf("approved on duty: %d %s", status, body)
	}
	h.again()
	if s := h.settled("D-1"); s.By != "bot" || s.Receipt != "receipt 1" {
		t.Errorf("in the end: %+v", s)
	}
}

// Told to stop the program ends well, and what waits waits.
func TestStopped(t *testing.T) {
	h := newHouse(t)
	h.ask("F-1", 900_00)
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	h.start()
	if s := h.stands("F-1"); s.Status != checkpoint.StatusInterrupted || len(s.Waits) != 1 {
		t.Errorf("after a stop: %+v", s)
	}
}

// A refund that was on its way when the service ended, before it waited for anything, is gone on
// with when the service is there again: nobody has to ask twice.
func TestRecovered(t *testing.T) {
	h := newHouse(t)
	h.kill()
	store, err := badgerstore.Open(t.Context(), filepath.Join(h.dir, "data", "store"), badgerstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := newService(t.Context(), store, &config{dir: filepath.Join(h.dir, "data"), secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	_, err = s.d.Run(gone, "G-1", func(r *Refund) { r.Order.Set("G-1"); r.Cents.Set(5_00) }, dispatcher.Labels(continuation.Owed(nil)))
	if at, stat := store.Stat(t.Context(), "G-1"); err == nil || stat != nil || at.Status == checkpoint.StatusCompleted {
		t.Fatalf("the run is %s, %v, %v", at.Status, err, stat)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	h.start()
	if s := h.settled("G-1"); s.Status != checkpoint.StatusCompleted || s.Receipt != "receipt 1" {
		t.Errorf("in the end: %+v", s)
	}
}

// A refund that can't be gone on with keeps no other from it.
func TestRecoveredBesideOneThatFails(t *testing.T) {
	dir := t.TempDir()
	s, err := newService(t.Context(), &memory.Store{}, &config{dir: dir, secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	orders := []string{"H-1", "H-2"}
	for _, order := range orders {
		if _, err := s.d.Run(gone, order, func(r *Refund) { r.Order.Set(order); r.Cents.Set(5_00) }); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "payments.jsonl"), []byte("torn\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = s.recover(t.Context())
	for _, order := range orders {
		if err == nil || !strings.Contains(err.Error(), "refund "+order) {
			t.Errorf("it is not told that %s fails: %v", order, err)
		}
		if at, stat := s.d.Store().Stat(t.Context(), order); stat != nil || at.Status != checkpoint.StatusFailed {
			t.Errorf("%s is %s, %v", order, at.Status, stat)
		}
	}
}

// A refund goes on though whoever has asked for it hangs up.
func TestAskedByWhoHangsUp(t *testing.T) {
	s, err := newService(t.Context(), &memory.Store{}, &config{dir: t.TempDir(), secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	r := httptest.NewRequestWithContext(gone, http.MethodPost, "/refunds", strings.NewReader(`{"order":"I-1","cents":500}`))
	s.mux.ServeHTTP(httptest.NewRecorder(), r)
	if at, err := s.d.State(t.Context(), "I-1"); err != nil || at.Status != checkpoint.StatusCompleted || at.State.Receipt.Get() != "receipt 1" {
		t.Errorf("it is %s, with %q, %v", at.Status, at.State.Receipt.Get(), err)
	}
}

// The secret comes from the command line or from the environment, and is printed by nothing.
func TestTheSecretStays(t *testing.T) {
	t.Setenv("APPROVAL_SECRET", secret)
	var said strings.Builder
	if _, err := parse([]string{"-help"}, &said); !errors.Is(err, flag.ErrHelp) || strings.Contains(said.String(), secret) {
		t.Errorf("%v: -help prints\n%s", err, said.String())
	}
	const other = "another-horse-battery"
	for want, args := range map[string][]string{secret: nil, other: {"-secret", other}} {
		if c, err := parse(args, io.Discard); err != nil || c.secret != want {
			t.Errorf("%q: the secret is %q, %v, want %q", args, c.secret, err, want)
		}
	}
	if _, err := newService(t.Context(), &memory.Store{}, &config{dir: t.TempDir(), secret: "short"}); err == nil {
		t.Error("a short secret makes a service")
	}
}

// A refund that nobody decides about is denied when its time is over, also if the service was not
// there then.
func TestNobodyDecides(t *testing.T) {
	h := newHouse(t, "-manager", "1ms", "-duty", "1ms")
	h.ask("E-1", 900_00)
	h.again()
	if s := h.settled("E-1"); s.Decision != "denied" || s.Why != "nobody has decided in time" || s.Receipt != "" {
		t.Errorf("in the end: %+v", s)
	}
}
