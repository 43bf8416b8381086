package webhook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"
)

// A Reason is why an attempt failed, in the only words that are told to anybody (MCP Events, deliveryStatus.lastError).
type Reason string

// The reasons. A name that does not resolve and an address that may not be dialled count as refused connections, a redirect
// as a 4xx: there is no word for them.
const (
	ConnectionRefused Reason = "connection_refused"
	TimedOut          Reason = "timeout"
	TLSError          Reason = "tls_error"
	HTTP4xx           Reason = "http_4xx"
	HTTP5xx           Reason = "http_5xx"
	ChallengeFailed   Reason = "challenge_failed"
)

// reasonOf sorts an error of the HTTP client. Whether the TLS handshake failed is known from elsewhere.
func reasonOf(err error, handshakeFailed bool) Reason {
	var lookup *net.DNSError
	var network net.Error
	switch {
	case errors.Is(err, errPrivate), errors.As(err, &lookup):
		return ConnectionRefused
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.As(err, &network) && network.Timeout():
		return TimedOut
	case handshakeFailed:
		return TLSError
	default:
		return ConnectionRefused
	}
}

// reasonOfStatus sorts an HTTP status; it is empty for a success.
func reasonOfStatus(status int) Reason {
	switch {
	case status >= 200 && status < 300:
		return ""
	case status < 500:
		return HTTP4xx
	default:
		return HTTP5xx
	}
}

// isFinal reports whether a receiver said that it will never take this message.
func isFinal(status int) bool {
	return status == http.StatusGone || status == http.StatusRequestEntityTooLarge
}

// MaxRetryAfter is the longest wait a receiver can ask for.
const MaxRetryAfter = time.Hour

// retryAfter is the wait a receiver asked for, as seconds or as a date: 0 when it did not, or answered otherwise than 425,
// 429 or 503.
func retryAfter(status int, header http.Header, now time.Time) time.Duration {
	if status != http.StatusTooEarly && status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return 0
	}
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, MaxRetryAfter)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), MaxRetryAfter)
}
