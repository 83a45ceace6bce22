package continuation

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawlgo/pawl/dag"
)

// The headers of a signed trigger.
const (
	TimestampHeader = "Pawl-Timestamp" // seconds since 1970
	SignatureHeader = "Pawl-Signature" // what Sign returns
)

// HandlerOptions configure [Runtime.Handler].
type HandlerOptions struct {
	// Secret is what senders sign with, of 16 bytes at least.
	Secret []byte
	// Authorities are those that actors may have who come this way: whoever knows the secret may
	// say to be anybody. Nil means dag.System alone.
	Authorities []dag.Authority
	// Window is how far the time of a request may be from ours. Zero means 5 minutes.
	Window time.Duration
	// MaxBytes is how large a request may be. Zero means 1 MiB.
	MaxBytes int64
	// LeaveIt: the answer is sent when a trigger is accepted, and Serve or Recover goes on with the
	// run; but for what [Trigger].LeaveIt goes on with all the same. Else it is sent when the run
	// rests; a client that hangs up leaves the run for Recover.
	LeaveIt bool
}

// Sign returns the signature of a body that is sent at an instant, whose seconds are in the header
// Pawl-Timestamp.
func Sign(secret []byte, at time.Time, body []byte) string {
	return sign(secret, strconv.FormatInt(at.Unix(), 10), body)
}

func sign(secret []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// Handler takes triggers over HTTP: the JSON of a [Trigger], posted and signed. It answers with the
// JSON of the [Outcome]; or of an error, with the status 401 for a signature or time that is not
// right, 403 for an authority, 404 for no such wait, 409 for a mismatch, a wait that has its
// trigger, or no attempts left, 410 for a wait that has ended, 422 for what can't be a trigger or
// its payload, 413 for one that is too large, 400 for what can't be read or has a member that no
// Trigger has, 405 for what is not posted, and 500, which says no more, for a store that fails.
//
// The signature is the HMAC-SHA256 of the timestamp, a dot and the body, under the secret, in hex
// behind "sha256=", as [Sign] makes it. In a shell, with dag.Human among the Authorities:
//
//	body='{"id":"msg-7","run":"order-7","kind":"user_reply","actor":{"id":"ann","authority":"human"},"payload":"yes"}'
//	now=$(date +%s)
//	sum=$(printf %s "$now.$body" | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d' ' -f1)
//	curl -H "Pawl-Timestamp: $now" -H "Pawl-Signature: sha256=$sum" --data-binary "$body" "$URL"
//
// A request that is sent again is one trigger, since its id is the same: replays do nothing, inside
// the window of time and out of it.
func (r *Runtime) Handler(o HandlerOptions) (http.Handler, error) {
	if err := r.made(); err != nil {
		return nil, err
	}
	if len(o.Secret) < 16 {
		return nil, &ArgumentError{"the secret of a handler", "has less than 16 bytes"}
	}
	if o.Window < 0 || o.MaxBytes < 0 {
		return nil, &ArgumentError{"an option of a handler", "is negative: zero means the default"}
	}
	for _, a := range o.Authorities {
		if !slices.Contains([]dag.Authority{dag.Human, dag.Agent, dag.System}, a) {
			return nil, &ArgumentError{"an option of a handler", fmt.Sprintf("lets in the authority %q, which nobody has", a)}
		}
	}
	o.Window = cmp.Or(o.Window, 5*time.Minute)
	o.MaxBytes = cmp.Or(o.MaxBytes, 1<<20)
	if o.Authorities == nil {
		o.Authorities = []dag.Authority{dag.System}
	}
	o.Secret, o.Authorities = slices.Clone(o.Secret), slices.Clone(o.Authorities)
	return &handler{r, o}, nil
}

type handler struct {
	r *Runtime
	o HandlerOptions
}

// A refused is an error that is no error of a Runtime.
type refused struct {
	status int
	text   string
}

func (e *refused) Error() string { return "continuation: " + e.text }

func (h *handler) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	out, err := h.serve(w, q)
	status, body := http.StatusOK, any(out)
	if err != nil && out.Trigger == "" { // else it was accepted, and something went wrong behind it
		var text string
		status, text = told(err)
		body = map[string]string{"error": text}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}

func (h *handler) serve(w http.ResponseWriter, q *http.Request) (Outcome, error) {
	if q.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return Outcome{}, &refused{http.StatusMethodNotAllowed, "triggers are posted"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, h.o.MaxBytes))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return Outcome{}, &refused{http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more than %d bytes", h.o.MaxBytes)}
	}
	if err != nil {
		return Outcome{}, &refused{http.StatusBadRequest, "the request can't be read"}
	}
	if err := h.signed(q.Header, body); err != nil {
		return Outcome{}, err
	}
	if !utf8.Valid(body) { // encoding/json would take it, with other characters in its place
		return Outcome{}, &refused{http.StatusBadRequest, "the body is no trigger: it is no UTF-8"}
	}
	t, err := parseTrigger(body)
	if err != nil {
		return Outcome{}, &refused{http.StatusBadRequest, "the body is no trigger: " + err.Error()}
	}
	if !slices.Contains(h.o.Authorities, t.Actor.Authority) {
		return Outcome{}, &refused{http.StatusForbidden, fmt.Sprintf("nobody with the authority %q comes this way", t.Actor.Authority)}
	}
	t.LeaveIt = h.o.LeaveIt
	return h.r.Trigger(q.Context(), t)
}

// parseTrigger reads a trigger, and refuses members that it has not, since misspelt, what one was
// to say would not be said; and those that stand twice, of which encoding/json takes the last, and
// who looked at the request before may have taken the first.
func parseTrigger(body []byte) (t Trigger, err error) {
	if err := json.Unmarshal(body, &t); err != nil {
		return Trigger{}, err
	}
	known := json.NewDecoder(bytes.NewReader(body))
	known.DisallowUnknownFields()
	if err := known.Decode(&Trigger{}); err != nil {
		return Trigger{}, err
	}
	return t, once(body)
}

// once refuses an object, and an actor in it, of which a member stands twice, in whatever case:
// encoding/json tells none apart. A payload is looked at by who knows its type.
func once(object []byte) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return err // null says nothing twice
	}
	var seen []string
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if slices.ContainsFunc(seen, func(other string) bool { return strings.EqualFold(other, name) }) {
			return fmt.Errorf("%q stands twice", name)
		}
		seen = append(seen, name)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if !strings.EqualFold(name, "actor") {
			continue
		}
		if err := once(value); err != nil {
			return err
		}
	}
	return nil
}

// signed checks the signature before the time: whoever can't sign learns nothing of our clock.
func (h *handler) signed(header http.Header, body []byte) error {
	timestamp := header.Get(TimestampHeader)
	want := sign(h.o.Secret, timestamp, body)
	if !hmac.Equal([]byte(want), []byte(header.Get(SignatureHeader))) {
		return &refused{http.StatusUnauthorized, "the signature in the header " + SignatureHeader + " is not that of " + TimestampHeader + " and the body"}
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || h.r.options.Now().Sub(time.Unix(seconds, 0)).Abs() > h.o.Window {
		return &refused{http.StatusUnauthorized, "the time in the header " + TimestampHeader + " is not ours: sign the request anew"}
	}
	return nil
}

// told is the status and the text of an error.
func told(err error) (int, string) {
	var (
		own       *refused
		argument  *ArgumentError
		payload   *PayloadError
		authority *AuthorityError
		expired   *ExpiredError
		mismatch  *MismatchError
		attempts  *AttemptsError
	)
	status := http.StatusInternalServerError
	switch {
	case errors.As(err, &own):
		status = own.status
	case errors.As(err, &payload) && tooLarge(err):
		status = http.StatusRequestEntityTooLarge
	case errors.As(err, &argument), errors.As(err, &payload):
		status = http.StatusUnprocessableEntity
	case errors.As(err, &authority):
		status = http.StatusForbidden
	case errors.Is(err, ErrNotFound):
		status = http.StatusNotFound
	case errors.As(err, &expired), errors.Is(err, ErrTerminal):
		status = http.StatusGone
	case errors.As(err, &mismatch), errors.As(err, &attempts), errors.Is(err, ErrTaken):
		status = http.StatusConflict
	default:
		return status, "continuation: the trigger could not be taken: send it again"
	}
	return status, err.Error()
}
