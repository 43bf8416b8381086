package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// DefaultTimeout is how long an attempt may take if the options say nothing.
const DefaultTimeout = 10 * time.Second

// Bounds of what one host and one answer may take up.
const (
	maxConnectionsPerHost = 32
	maxIdlePerHost        = maxConnectionsPerHost
	maxIdle               = 512
	maxAnswerHeaders      = 64 << 10
	maxAnswerBody         = 64 << 10
)

// Options configure a [Sender]. The zero value is right for the open internet.
type Options struct {
	AllowPrivate bool           // dial any address, not only public ones: for development and for receivers inside
	AllowHTTP    bool           // accept http to loopback addresses; of use only together with AllowPrivate
	Timeout      time.Duration  // of one attempt, from looking up the name to the end of the answer; DefaultTimeout when 0
	Resolver     *net.Resolver  // looks names up; nil means the system's
	RootCAs      *x509.CertPool // who may vouch for receivers; nil means the system's
	Trusted      []Trusted      // endpoints known to want deliveries; where they may be is not changed by it
}

// A Sender delivers to webhooks. Redirects are not followed, proxies not used, certificates always checked. Safe for
// concurrent use.
type Sender struct {
	client    *http.Client
	timeout   time.Duration
	allowHTTP bool
	trusted   []Trusted
	documents documents
}

// New makes a Sender. Close it when it is no longer needed.
func New(options Options) *Sender {
	timeout := options.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	// An attempt that ends does not end the dialling it began, so the dialling has timeouts of its own.
	dialer := &net.Dialer{Resolver: options.Resolver, Timeout: timeout}
	if !options.AllowPrivate {
		dialer.ControlContext = refusePrivate
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	transport := &http.Transport{
		Proxy:                  nil, // a proxy would dial for us, past the check of the address
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: options.RootCAs},
		TLSHandshakeTimeout:    timeout,
		Protocols:              protocols,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second}, // finds connections that died unsaid
		DisableCompression:     true,                                                 // an answer is read up to a limit, which is one of bytes on the wire then
		MaxConnsPerHost:        maxConnectionsPerHost,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		MaxIdleConns:           maxIdle,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: maxAnswerHeaders,
	}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Sender{client: client, timeout: timeout, allowHTTP: options.AllowHTTP, trusted: options.Trusted}
}

// Trusts reports whether the endpoint at a URL is known to want deliveries, by [Options.Trusted].
func (s *Sender) Trusts(url string) bool {
	return s.CheckURL(url) == nil && slices.ContainsFunc(s.trusted, func(t Trusted) bool { return t.Covers(url) })
}

// Close lets go of idle connections. Attempts under way go on.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// errPrivate says that an address is not on the open internet.
var errPrivate = errors.New("the address is not public")

// refusePrivate is asked by the dialer about each address it is about to connect to, after the name has been looked up: what
// a name said earlier does not count, nor what it says to anybody else.
func refusePrivate(_ context.Context, _, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || !isPublic(target.Addr()) {
		return errPrivate
	}
	return nil
}
