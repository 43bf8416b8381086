package webhook_test

import (
	"context"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/wakepath/webhook"
)

// trap listens on loopback and counts who connects.
func trap(t *testing.T) (port string, connections *atomic.Int32) {
	t.Helper()
	connections = new(atomic.Int32)
	address := rawReceiver(t, func(connection net.Conn) {
		connections.Add(1)
		_ = connection.Close()
	})
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port, connections
}

// TestPrivateAddressesAreNotDialled goes through the spellings of addresses that a receiver may not have.
func TestPrivateAddressesAreNotDialled(t *testing.T) {
	t.Parallel()
	port, connections := trap(t)
	sender := newSender(t, webhook.Options{AllowHTTP: true, Timeout: time.Minute})
	for _, url := range []string{
		"https://127.0.0.1:PORT/", "https://127.255.255.254:PORT/", "https://0.0.0.0:PORT/", "https://localhost:PORT/", "https://localhost.:PORT/",
		"https://[::1]:PORT/", "https://[::]:PORT/", "https://[::ffff:127.0.0.1]:PORT/", "https://[::ffff:7f00:1]:PORT/", "https://[::127.0.0.1]:PORT/",
		"https://[64:ff9b::7f00:1]:PORT/", "https://[64:ff9b:1::7f00:1]:PORT/", "https://[2002:7f00:1::]:PORT/",
		"https://2130706433:PORT/", "https://0x7f000001:PORT/", "https://0177.0.0.1:PORT/", "https://127.1:PORT/", "https://127.0.0.1.:PORT/",
		"https://hooks.example.com@127.0.0.1:PORT/", "http://127.0.0.1:PORT/", "http://localhost:PORT/",
		"https://169.254.169.254/", "https://[::ffff:169.254.169.254]/", "https://10.0.0.1/", "https://100.64.0.1/", "https://[fc00::1]/", "https://[fe80::1]/",
	} {
		url = strings.Replace(url, "PORT", port, 1)
		if got := sender.Deliver(t.Context(), target(t, url), message); got.Reason != webhook.ConnectionRefused || got.Status != 0 {
			t.Errorf("%s: %+v", url, got)
		}
		fails(t, sender.Verify(t.Context(), target(t, url)), webhook.ConnectionRefused)
	}
	if connections.Load() != 0 {
		t.Errorf("%d connections were made", connections.Load())
	}
}

// TestRebindingIsRefused looks a name up that is public at first, as a check before the call would find it, and turns
// to loopback when it is dialled.
func TestRebindingIsRefused(t *testing.T) {
	t.Parallel()
	port, connections := trap(t)
	var asked atomic.Int32
	resolver := names(func() netip.Addr {
		if asked.Add(1) == 1 {
			return netip.MustParseAddr("93.184.215.14")
		}
		return netip.MustParseAddr("127.0.0.1")
	})
	first, err := resolver.LookupNetIP(t.Context(), "ip4", "rebinding.example")
	if err != nil || !webhook.IsPublic(first[0]) {
		t.Fatalf("at first the name is %v, %v", first, err)
	}
	sender := newSender(t, webhook.Options{Resolver: resolver, Timeout: time.Minute})
	want := webhook.Result{Retry: true, Reason: webhook.ConnectionRefused}
	if diff := cmp.Diff(want, sender.Deliver(t.Context(), target(t, "https://rebinding.example:"+port+"/"), message)); diff != "" {
		t.Error(diff)
	}
	if asked.Load() < 2 || connections.Load() != 0 {
		t.Errorf("looked up %d times and connected %d times", asked.Load(), connections.Load())
	}
}

func TestNamesThatDoNotResolve(t *testing.T) {
	t.Parallel()
	sender := newSender(t, webhook.Options{AllowPrivate: true, Timeout: time.Minute,
		Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF }}})
	want := webhook.Result{Retry: true, Reason: webhook.ConnectionRefused}
	if diff := cmp.Diff(want, sender.Deliver(t.Context(), target(t, "https://gone.example/"), message)); diff != "" {
		t.Error(diff)
	}
}

// TestNoProxy would see the proxy connected to, or the name left to it.
func TestNoProxy(t *testing.T) {
	port, connections := trap(t)
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:"+port)
	}
	server, roots := tlsReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	sender := newSender(t, webhook.Options{AllowPrivate: true, RootCAs: roots, Timeout: time.Minute,
		Resolver: names(func() netip.Addr { return netip.MustParseAddr("127.0.0.1") })})
	url := strings.Replace(server.URL, "127.0.0.1", "example.com", 1)
	if diff := cmp.Diff(webhook.Result{Status: 204}, sender.Deliver(t.Context(), target(t, url), message)); diff != "" {
		t.Error(diff)
	}
	if connections.Load() != 0 {
		t.Error("the proxy was asked")
	}
}

// tlsReceiver serves handler over TLS and HTTP/1.1 or 2; its certificate is good for example.com.
func tlsReceiver(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are meant to fail
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server, roots
}

func TestTLS(t *testing.T) {
	t.Parallel()
	var protocol string
	server, roots := tlsReceiver(t, func(w http.ResponseWriter, r *http.Request) { protocol = r.Proto })
	plain := receiver(t, func(http.ResponseWriter, *http.Request) {})
	hangsUp := rawReceiver(t, func(connection net.Conn) { _ = connection.Close() })
	loopback := names(func() netip.Addr { return netip.MustParseAddr("127.0.0.1") })
	broken := webhook.Result{Retry: true, Reason: webhook.TLSError}
	for name, c := range map[string]struct {
		url   string
		roots *x509.CertPool
		want  webhook.Result
	}{
		"trusted":               {server.URL, roots, webhook.Result{Status: 200}},
		"not trusted":           {server.URL, x509.NewCertPool(), broken},
		"for another name":      {strings.Replace(server.URL, "127.0.0.1", "other.example", 1), roots, broken},
		"no TLS at all":         {strings.Replace(plain, "http:", "https:", 1), roots, broken},
		"the handshake cut off": {"https://" + hangsUp, roots, broken},
	} {
		sender := newSender(t, webhook.Options{AllowPrivate: true, RootCAs: c.roots, Resolver: loopback, Timeout: time.Minute})
		if diff := cmp.Diff(c.want, sender.Deliver(t.Context(), target(t, c.url), message)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if protocol != "HTTP/2.0" {
		t.Errorf("spoke %s with a receiver that offers HTTP/2", protocol)
	}
}

// TestConnectionsPerHost holds more deliveries at one receiver than it may have connections, and lets them go one by one.
func TestConnectionsPerHost(t *testing.T) {
	t.Parallel()
	const most, deliveries = 32, 80
	var open, over atomic.Int32
	release := make(chan struct{})
	arrived := make(chan struct{}, deliveries)
	url := receiver(t, func(http.ResponseWriter, *http.Request) {
		if open.Add(1) > most {
			over.Add(1)
		}
		arrived <- struct{}{}
		<-release
		open.Add(-1)
	})
	sender := local(t)
	results := make(chan webhook.Result, deliveries)
	for range deliveries {
		go func() { results <- sender.Deliver(t.Context(), target(t, url), message) }()
	}
	for i := range deliveries {
		<-arrived
		if i >= most-1 {
			release <- struct{}{}
		}
	}
	close(release)
	for range deliveries {
		if got := <-results; got.Status != 200 {
			t.Errorf("got %+v", got)
		}
	}
	if over.Load() != 0 {
		t.Errorf("%d deliveries came beside %d others", over.Load(), most)
	}
}
