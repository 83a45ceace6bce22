package continuation_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
)

var secret = []byte("0123456789abcdef")

// post sends a trigger, signed now.
func post(h http.Handler, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	q := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	now := time.Now()
	q.Header.Set(continuation.TimestampHeader, strconv.FormatInt(now.Unix(), 10))
	q.Header.Set(continuation.SignatureHeader, continuation.Sign(secret, now, []byte(body)))
	if change != nil {
		change(q)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, q)
	return w
}

// signed signs a body as of another time.
func signed(body string, away time.Duration) func(*http.Request) {
	return func(q *http.Request) {
		at := time.Now().Add(away)
		q.Header.Set(continuation.TimestampHeader, strconv.FormatInt(at.Unix(), 10))
		q.Header.Set(continuation.SignatureHeader, continuation.Sign(secret, at, []byte(body)))
	}
}

func body(t continuation.Trigger) string {
	raw, _ := json.Marshal(t)
	return string(raw)
}

// A trigger that comes over HTTP is signed, young and small, or is refused; each refusal has its
// status and changes nothing; what is sent again has the same receipt.
func TestHandler(t *testing.T) {
	w := continuation.Wait{Kind: continuation.KindApproval, Key: "X"}
	p := talk(t, waiting(t, w, dag.Policy{}, says))
	h, err := p.rt.Handler(continuation.HandlerOptions{
		Secret: secret, Authorities: []dag.Authority{dag.Human, dag.System}, MaxBytes: 4096,
	})
	if err != nil {
		t.Fatal(err)
	}
	good := decide("t1", continuation.Approved)
	good.Key = "X"
	change := func(f func(*continuation.Trigger)) string {
		x := good
		f(&x)
		return body(x)
	}
	for _, c := range []struct {
		name, body string
		change     func(*http.Request)
		status     int
	}{
		{"a get", body(good), func(q *http.Request) { q.Method = http.MethodGet }, 405},
		{"no signature", body(good), func(q *http.Request) { q.Header.Del(continuation.SignatureHeader) }, 401},
		{"another body", body(good), func(q *http.Request) {
			q.Header.Set(continuation.SignatureHeader, continuation.Sign(secret, time.Now(), nil))
		}, 401},
		{"another time", body(good), func(q *http.Request) { q.Header.Set(continuation.TimestampHeader, "17") }, 401},
		{"a later time than was signed", body(good), func(q *http.Request) {
			q.Header.Set(continuation.TimestampHeader, strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 10))
		}, 401},
		{"an old one", body(good), signed(body(good), -6*time.Minute), 401},
		{"one of the future", body(good), signed(body(good), 6*time.Minute), 401},
		{"too large", strings.Repeat(" ", 5000), nil, 413},
		{"no JSON", "hello", nil, 400},
		{"no UTF-8", strings.Replace(body(good), `"t1"`, "\"\xff\"", 1), nil, 400},
		{"a member that there is not", strings.Replace(body(good), `"decision"`, `"payloads":"x","decision"`, 1), nil, 400},
		{"one of its actor", strings.Replace(body(good), `"authority"`, `"name":"x","authority"`, 1), nil, 400},
		{"a member twice", strings.Replace(body(good), `"decision"`, `"decision":"denied","decision"`, 1), nil, 400},
		{"one twice in two cases", strings.Replace(body(good), `"decision"`, `"Decision":"denied","decision"`, 1), nil, 400},
		{"one of its actor twice", strings.Replace(body(good), `"authority"`, `"authority":"agent","authority"`, 1), nil, 400},
		{"another authority here", change(func(x *continuation.Trigger) { x.Actor = robot }), nil, 403},
		{"another authority", change(func(x *continuation.Trigger) { x.Actor.Authority = dag.System }), nil, 403},
		{"no such run", change(func(x *continuation.Trigger) { x.Run = "nobody" }), nil, 404},
		{"another key", change(func(x *continuation.Trigger) { x.Key = "Y" }), nil, 409},
		{"no decision", change(func(x *continuation.Trigger) { x.Decision = "" }), nil, 422},
		{"another payload", change(func(x *continuation.Trigger) { x.Payload = json.RawMessage(`[1]`) }), nil, 422},
	} {
		p.unchanged(run, func() {
			w := post(h, c.body, c.change)
			var said struct{ Error string }
			if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || w.Code != c.status || said.Error == "" {
				t.Errorf("%s: %d %s, want %d", c.name, w.Code, w.Body, c.status)
			}
			if c.status == 401 && !strings.Contains(said.Error, "in the header Pawl-") {
				t.Errorf("%s: %q names no header", c.name, said.Error)
			}
		})
	}
	first := post(h, body(good), nil)
	var out continuation.Outcome
	if err := json.Unmarshal(first.Body.Bytes(), &out); err != nil || first.Code != 200 || out.Status != continuation.StatusResolved {
		t.Fatalf("accepted: %d %s", first.Code, first.Body)
	}
	p.unchanged(run, func() {
		if again := post(h, body(good), nil); again.Code != 200 || !bytes.Equal(again.Body.Bytes(), first.Body.Bytes()) {
			t.Errorf("again: %d %s", again.Code, again.Body)
		}
		if other := post(h, change(func(x *continuation.Trigger) { x.ID = "t2" }), nil); other.Code != 410 {
			t.Errorf("another: %d %s", other.Code, other.Body)
		}
	})
	if _, err := p.rt.Handler(continuation.HandlerOptions{Secret: secret[:15]}); err == nil {
		t.Error("a secret of 15 bytes is accepted")
	}
}

// A handler has a secret and a list of authorities of its own, whatever becomes of the memory in
// which they were given.
func TestHandlerKeepsItsSecret(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
	given, who := bytes.Clone(secret), []dag.Authority{dag.Human}
	h, err := p.rt.Handler(continuation.HandlerOptions{Secret: given, Authorities: who})
	if err != nil {
		t.Fatal(err)
	}
	clear(given)
	clear(who)
	if w := post(h, body(reply("t", "hello")), nil); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Whoever knows the secret is the system, unless the handler says that others come this way.
func TestHandlerAuthorities(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says)) // for anybody
	h, err := p.rt.Handler(continuation.HandlerOptions{Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	tr := reply("t", "hello")
	p.unchanged(run, func() {
		if w := post(h, body(tr), nil); w.Code != 403 {
			t.Errorf("a person: %d %s", w.Code, w.Body)
		}
	})
	tr.Actor.Authority = dag.System
	if w := post(h, body(tr), nil); w.Code != 200 {
		t.Errorf("the system: %d %s", w.Code, w.Body)
	}
}

// A handler may answer as soon as a trigger is accepted: Serve goes on with the run.
func TestHandlerLeavesTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
		h, err := p.rt.Handler(continuation.HandlerOptions{Secret: secret, Authorities: []dag.Authority{dag.Human}, LeaveIt: true})
		if err != nil {
			t.Fatal(err)
		}
		if w := post(h, body(reply("t", "hello")), nil); w.Code != 200 || !strings.Contains(w.Body.String(), `"pending"`) {
			t.Fatalf("accepted: %d %s", w.Code, w.Body)
		}
		if len(p.said(run)) > 0 {
			t.Error("the run has gone on")
		}
		stop := p.serves(t.Context())
		synctest.Wait()
		stop()
		p.stands(run, continuation.StatusResolved, continuation.Completed)
	})
}

// Signatures are what openssl makes of the timestamp, a dot and the body:
//
//	printf %s '1700000000.{"id":"msg-7","run":"order-7"}' | openssl dgst -sha256 -hmac 0123456789abcdef -r
func TestSignIsWhatOpensslSays(t *testing.T) {
	const want = "sha256=ccb9bfcbe7677c3c8a6703e9ce1ebfcbd812f638be8f7da8c2652f2aa3bbee0c"
	if got := continuation.Sign(secret, time.Unix(1700000000, 0), []byte(`{"id":"msg-7","run":"order-7"}`)); got != want {
		t.Errorf("signed %s, want %s", got, want)
	}
}

// A handler for an authority that nobody has is a mistake.
func TestHandlerOfNoAuthority(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
	for _, a := range []dag.Authority{"", "god", continuation.Anybody} {
		_, err := p.rt.Handler(continuation.HandlerOptions{Secret: secret, Authorities: []dag.Authority{dag.Human, a}})
		var bad *continuation.ArgumentError
		if !errors.As(err, &bad) {
			t.Errorf("the authority %q: %v", a, err)
		}
	}
}
