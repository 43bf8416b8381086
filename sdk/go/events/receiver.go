package events

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	mostBody = 512 << 10
	// mostPeeked bounds what is read of a delivery for nobody.
	mostPeeked = 8 << 10
	// mostDeliveries is how many deliveries are read and stored at a time.
	mostDeliveries = 64
	// deliveryTime bounds reading a delivery.
	deliveryTime = 10 * time.Second
	// timeTolerance is how far off a delivery's clock may be.
	timeTolerance = 5 * time.Minute
	// mostRetired is how many ended subscriptions are remembered.
	mostRetired = 1000
	mostHeader  = 4096
)

const subscriptionHeader = "X-MCP-Subscription-Id"

// A Receiver takes webhooks, for any number of clients. It is an [http.Handler]
// to be served at its URL and everything under it, and must be served before
// anything is subscribed, since servers verify it first.
//
// It answers 2xx once a delivery is in the Store or was before; 401 to what is
// not signed with the subscription's secret or is more than five minutes off; 410
// to what comes for a subscription that was ended here; 503, so that it comes
// again, to what it cannot place or keep yet; and 405, 413, 415 and 400 to what is
// no delivery.
type Receiver struct {
	base *url.URL
	most int64
	busy chan struct{}

	mu      sync.Mutex
	hooks   map[string]*endpoint // by the last part of their path
	retired []*endpoint          // oldest first; they are in hooks, too
}

// ReceiverOptions configure a [Receiver]. The zero value is usable.
type ReceiverOptions struct {
	// MaxBody bounds the body of a delivery in bytes; 0 means 512 KiB. Servers are
	// to send 256 KiB at most.
	MaxBody int64
}

// NewReceiver makes a receiver that is reached at address, an https address
// (http for tests). Each subscription gets an address of its own under it, which
// nobody can guess.
func NewReceiver(address string, opts *ReceiverOptions) (*Receiver, error) {
	base, err := url.Parse(address)
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || base.User != nil ||
		base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("events: a receiver's address must be an absolute https address without a query")
	}
	r := &Receiver{base: base, most: mostBody, busy: make(chan struct{}, mostDeliveries), hooks: map[string]*endpoint{}}
	if opts != nil && opts.MaxBody > 0 {
		r.most = opts.MaxBody
	}
	return r, nil
}

// address is where a subscription's deliveries go.
func (r *Receiver) address(token string) string { return r.base.JoinPath(token).String() }

// An endpoint takes the deliveries of one subscription.
type endpoint struct {
	token string
	// take keeps a delivery durably; errNoRoom or another error means not yet.
	take func(ctx context.Context, webhookID string, d delivery) error

	mu      sync.Mutex
	secrets []secret
	id      string // at the server; empty while it is unknown
	retired bool
}

var errNoRoom = errors.New("events: too many deliveries wait to be handled")

func (e *endpoint) set(secrets []secret, id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.secrets = secrets
	if id != "" {
		e.id = id
	}
}

func (e *endpoint) keys() [][]byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return keys(e.secrets)
}

// belongs says whether a delivery that was signed is for this subscription. The
// first that comes tells its id, if the server has not yet.
func (e *endpoint) belongs(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.id == "" {
		e.id = id
	}
	return id != "" && e.id == id
}

func (e *endpoint) isRetired() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.retired
}

func (r *Receiver) add(e *endpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hooks[e.token] = e
}

// remove forgets an endpoint. One that is retired is remembered for a while, to
// refuse for good what still comes.
func (r *Receiver) remove(e *endpoint, retire bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.mu.Lock()
	wasRetired := e.retired
	e.retired = e.retired || retire
	e.mu.Unlock()
	switch {
	case wasRetired || r.hooks[e.token] != e:
	case !retire:
		delete(r.hooks, e.token)
	default:
		r.retired = append(r.retired, e)
		if len(r.retired) > mostRetired {
			delete(r.hooks, r.retired[0].token)
			r.retired = r.retired[1:]
		}
	}
}

func (r *Receiver) find(token string) *endpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hooks[token]
}

// ServeHTTP takes a delivery.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed)
		return
	}
	if kind, _, err := mime.ParseMediaType(q.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType)
		return
	}
	if q.ContentLength > r.most {
		refuse(w, http.StatusRequestEntityTooLarge)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(deliveryTime)) // where it can be set
	e := r.find(path.Base(q.URL.Path))
	if e == nil {
		refuse(w, unplaced(q.Body))
		return
	}
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	default:
		refuse(w, http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, r.most))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		refuse(w, http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		refuse(w, http.StatusBadRequest)
		return
	}
	e.serve(w, q, body)
}

// unplaced is the status for a delivery to no subscription that is known: it may
// be known soon, when the process has started. A challenge must not be answered
// so, for it would fail the subscribing.
func unplaced(body io.Reader) int {
	start, _ := io.ReadAll(io.LimitReader(body, mostPeeked)) // what cannot be read is no challenge
	if d, err := readDelivery(start); err == nil && d.kind == kindVerification {
		return http.StatusUnauthorized
	}
	return http.StatusServiceUnavailable
}

// serve answers a delivery that was read whole. Nothing of the body is looked at
// before its signature.
func (e *endpoint) serve(w http.ResponseWriter, q *http.Request, body []byte) {
	id, timestamp, signature := q.Header.Get("Webhook-Id"), q.Header.Get("Webhook-Timestamp"), q.Header.Get("Webhook-Signature")
	subscription := q.Header.Get(subscriptionHeader)
	if id == "" || max(len(id), len(timestamp), len(signature), len(subscription)) > mostHeader ||
		!isSigned(e.keys(), id, timestamp, body, signature) || !isTimely(timestamp) {
		refuse(w, http.StatusUnauthorized)
		return
	}
	d, err := readDelivery(body)
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest)
	case e.isRetired():
		refuse(w, http.StatusGone)
	case d.kind == kindVerification:
		echo(w, d.challenge)
	case !e.belongs(subscription):
		refuse(w, http.StatusServiceUnavailable)
	case e.take(q.Context(), id, d) != nil:
		refuse(w, http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func isTimely(timestamp string) bool {
	seconds, err := strconv.ParseInt(strings.TrimSpace(timestamp), 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<40 {
		return false
	}
	return time.Since(time.Unix(seconds, 0)).Abs() <= timeTolerance
}

// echo answers a challenge, however often it comes.
func echo(w http.ResponseWriter, challenge string) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"challenge": challenge}) // the server notices what it does not get
}

func refuse(w http.ResponseWriter, status int) { http.Error(w, http.StatusText(status), status) }
