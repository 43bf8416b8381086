package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/rouse-dev/rouse/internal/strictjson"
)

// userAgent is who calls.
const userAgent = "Rouse-Webhook/1"

// A Target is an endpoint with what a receiver needs to make sense of a delivery.
type Target struct {
	URL            string
	Secrets        []Secret // at least one; several while the receiver is changing over
	SubscriptionID string
}

// A Message is one event, or one notice about a subscription. Every attempt at it has the same ID, of visible ASCII, and
// the same Body, a JSON object.
type Message struct {
	ID   string
	Body []byte
}

// A Result is how an attempt went. Reason is empty exactly when the receiver took the message.
type Result struct {
	Status     int           // of the answer; 0 when there was none
	Retry      bool          // whether another attempt makes sense
	RetryAfter time.Duration // the least wait the receiver asked for, up to [MaxRetryAfter]; 0 when it did not ask
	Reason     Reason
}

// Deliver makes one attempt at a message, signed at this moment. It takes no longer than the sender's timeout and ends early
// with ctx; that is a [TimedOut] then, and ctx.Err tells the two apart. A receiver that answers 410 or 413 gets no other
// attempt at this message; any other failure may be retried.
func (s *Sender) Deliver(ctx context.Context, target Target, message Message) Result {
	if s.CheckURL(target.URL) != nil {
		return Result{Reason: ConnectionRefused}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	response, reason := s.post(ctx, target, message)
	if reason != "" {
		return Result{Retry: true, Reason: reason}
	}
	defer response.Body.Close()
	// What the body says does not matter; a connection whose answer was read to its end can be used again.
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswerBody)
	result := Result{Status: response.StatusCode, Reason: reasonOfStatus(response.StatusCode)}
	result.Retry = result.Reason != "" && !isFinal(result.Status)
	result.RetryAfter = retryAfter(result.Status, response.Header, time.Now())
	return result
}

// A VerifyError says why an endpoint could not be verified.
type VerifyError struct{ Reason Reason }

// Error names the reason.
func (e *VerifyError) Error() string {
	return fmt.Sprintf("the webhook's endpoint could not be verified: %s", e.Reason)
}

// Verify proves that whoever answers at the target's URL wants deliveries. It posts a challenge, signed like a delivery, which must be
// echoed in the body of a 2xx by who has the secret; an endpoint that answers anything else must be declared by its origin's
// receiver document. The error is always a *[VerifyError], with ChallengeFailed when an endpoint that can be reached did neither.
// Both together take no longer than the sender's timeout. See MCP Events, endpoint verification.
func (s *Sender) Verify(ctx context.Context, target Target) error {
	if s.CheckURL(target.URL) != nil {
		return &VerifyError{Reason: ConnectionRefused}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	reason := s.challenge(ctx, target)
	if reason == "" || reason == ChallengeFailed && s.isDeclared(ctx, target.URL) {
		return nil
	}
	return &VerifyError{Reason: reason}
}

// challenge posts a challenge. It returns why it was not met; empty when it was.
func (s *Sender) challenge(ctx context.Context, target Target) Reason {
	challenge := rand.Text()
	body := []byte(`{"type":"verification","challenge":"` + challenge + `"}`) // of letters and digits alone
	response, reason := s.post(ctx, target, Message{ID: "msg_verification_" + rand.Text(), Body: body})
	if reason != "" {
		return reason
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBody+1))
	if err != nil {
		return reasonOf(err, false)
	}
	var echo struct {
		Challenge string `json:"challenge"`
	}
	err = strictjson.Decode(answer, strictjson.Limits{MaxBytes: maxAnswerBody}, &echo)
	same := subtle.ConstantTimeCompare([]byte(echo.Challenge), []byte(challenge)) == 1
	if err != nil || !same || reasonOfStatus(response.StatusCode) != "" {
		return ChallengeFailed
	}
	return ""
}

// post sends a message. Either there is an answer, whose body the caller closes, or a reason why there is none.
func (s *Sender) post(ctx context.Context, target Target, message Message) (*http.Response, Reason) {
	var handshakeFailed atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) { handshakeFailed.Store(err != nil) },
	})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.URL, bytes.NewReader(message.Body))
	if err != nil {
		return nil, ConnectionRefused
	}
	now := time.Now()
	request.Header = http.Header{
		"Content-Type":          {"application/json"},
		"User-Agent":            {userAgent},
		"Webhook-Id":            {message.ID},
		"Webhook-Timestamp":     {unixText(now)},
		"Webhook-Signature":     {Sign(target.Secrets, message.ID, now, message.Body)},
		"X-Mcp-Subscription-Id": {target.SubscriptionID},
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, reasonOf(err, handshakeFailed.Load())
	}
	return response, ""
}
