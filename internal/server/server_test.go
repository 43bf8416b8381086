package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/adminapi"
	"github.com/rouse-dev/rouse/internal/server"
	"github.com/rouse-dev/rouse/internal/store"
)

func TestPathsOfTheServerItself(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	tests := []struct {
		method, path string
		status       int
		code         string // of the error; empty: none
	}{
		{"GET", "/healthz", 200, ""},
		{"HEAD", "/healthz", 200, ""},
		{"POST", "/healthz", 405, "method_not_allowed"},
		{"GET", "/readyz", 200, ""},
		{"DELETE", "/readyz", 405, "method_not_allowed"},
		{"GET", "/redeem", 405, "method_not_allowed"},
		{"POST", "/connect/x", 405, "method_not_allowed"},
		{"GET", "/", 404, "not_found"},
		{"GET", "/api/apps/v2/app", 404, "not_found"},
		{"GET", "/metrics", 404, "not_found"},
		{"GET", "/v1/apps", 404, "not_found"},
		{"GET", "/api/apps/v1/app", 401, "unauthorized"},
	}
	for _, test := range tests {
		response := b.do(test.method, b.URL()+test.path, nil)
		if response.StatusCode != test.status {
			t.Errorf("%s %s: %s; want %d", test.method, test.path, response.Status, test.status)
		}
		if response.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s: no request id", test.method, test.path)
		}
		if test.code == "" {
			_ = response.Body.Close()
			continue
		}
		if code := b.refused(response); code != test.code {
			t.Errorf("%s %s: %s; want %s", test.method, test.path, code, test.code)
		}
		if test.status == 405 && response.Header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", test.method, test.path)
		}
	}
}

func TestHugeHeadersAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	response := b.do("GET", b.URL()+"/api/apps/v1/app", nil, "Authorization", "Bearer "+strings.Repeat("a", 200_000))
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("answered %s", response.Status)
	}
}

func TestTheLogHoldsNoCapability(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	address := b.streamURL()
	token := address[strings.LastIndexByte(address, '/')+1:]
	stream := b.openStream(address + "?once=1&secret=in-the-query")
	b.emit()
	if _, err := bufio.NewReader(stream.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_ = stream.Body.Close()
	for _, path := range []string{"/w/" + token + "/messages/evt_x", "/connect/" + token, "/w/no-such-token", "/nothing/" + token} {
		_ = b.do("GET", b.URL()+path, nil, "Authorization", "Bearer in-the-header").Body.Close()
	}
	if err := b.Shutdown(); err != nil {
		t.Fatal(err)
	}
	log := b.log.String()
	for _, secret := range []string{token, "no-such-token", "in-the-query", "in-the-header"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q:\n%s", secret, log)
		}
	}
	for _, wanted := range []string{`route="GET /w/{token}"`, "status=200", "client=127.0.0.1", "request="} {
		if !strings.Contains(log, wanted) {
			t.Errorf("the log does not hold %q:\n%s", wanted, log)
		}
	}
}

func TestStreamsOfAnAddressAreLimited(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *server.Options) {
		o.StreamsPerAddress = 2
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	address := b.streamURL()
	open := []*http.Response{b.openStream(address), b.openStream(address)}
	response := b.do("GET", address, nil)
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") == "" {
		t.Errorf("a stream too many: %s, Retry-After %q", response.Status, response.Header.Get("Retry-After"))
	}
	if code := b.refused(response); code != "rate_limited" {
		t.Errorf("a stream too many: %s", code)
	}
	// Another client of the same proxy is not concerned.
	open = append(open, b.openStream(address, "X-Forwarded-For", "192.0.2.7"))
	for _, one := range open {
		_ = one.Body.Close()
	}
}

func TestShutdownCutsStreams(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	stream := b.openStream(b.streamURL())
	defer stream.Body.Close()
	if err := b.Shutdown(); err != nil {
		t.Fatal(err)
	}
	// A clean end would tell the command that nothing is left to wait for.
	if _, err := io.ReadAll(stream.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the stream ended with %v; want it cut", err)
	}
	if _, err := http.Get(b.URL() + "/healthz"); err == nil {
		t.Error("it still answers")
	}
	if _, err := adminapi.NewClient(b.Data()).Apps(t.Context()); !errors.Is(err, adminapi.ErrNotRunning) {
		t.Errorf("the administration socket: %v", err)
	}
	if err := b.Shutdown(); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestWhatWasWrittenOutlivesARestart(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	address := b.streamURL()
	b.emit()
	if err := b.Shutdown(); err != nil {
		t.Fatal(err)
	}
	again, err := server.Start(t.Context(), server.Options{Data: b.Data(), Listen: b.Address().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Shutdown()
	stream := b.openStream(address)
	defer stream.Body.Close()
	if line, err := bufio.NewReader(stream.Body).ReadString('\n'); err != nil || !strings.Contains(line, "crawl.finished") {
		t.Errorf("the stream gave %q, %v", line, err)
	}
}

func TestADirectoryHasOneServer(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	_, err := server.Start(t.Context(), server.Options{Data: b.Data(), Listen: "127.0.0.1:0"})
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), "--data") {
		t.Errorf("a second server: %v", err)
	}
	// The first one's socket is still there.
	if _, err := adminapi.NewClient(b.Data()).Apps(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	taken := setup(t, nil)
	tests := map[string]struct {
		change func(*server.Options)
		want   string
	}{
		"every address without a public URL": {func(o *server.Options) { o.Listen = "0.0.0.0:0" }, "--public-url"},
		"a port in use":                      {func(o *server.Options) { o.Listen = taken.Address().String() }, "listening"},
		"no certificate":                     {func(o *server.Options) { o.TLSCert, o.TLSKey = "nowhere.pem", "nowhere.key" }, "TLS certificate"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := server.Options{Data: dataDir(t), Listen: "127.0.0.1:0"}
			test.change(&options)
			if _, err := server.Start(t.Context(), options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v; want one that holds %q", err, test.want)
			}
			if _, err := os.Stat(adminapi.Socket(options.Data)); err == nil {
				t.Error("the administration socket was left behind")
			}
		})
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key, pool := server.WriteCertificate(t, t.TempDir(), 1, time.Now())
	b := setup(t, func(o *server.Options) { o.TLSCert, o.TLSKey = cert, key })
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Get(b.URL() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 2 || !strings.HasPrefix(b.URL(), "https://") {
		t.Errorf("%s: %s by HTTP/%d", b.URL(), response.Status, response.ProtoMajor)
	}
}

func TestTheEndOfTheContextEndsStartAlone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	running, err := server.Start(ctx, server.Options{Data: dataDir(t), Listen: "127.0.0.1:0"})
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	defer running.Shutdown()
	if err := running.Core().Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestShutdownLetsARequestFinish(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	stream := b.openStream(b.streamURL())
	defer stream.Body.Close()
	// The server asks for the body once the handler reads it: from then on the request is under way.
	begun := make(chan struct{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(begun) }})
	body, rest := io.Pipe()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL()+"/redeem", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Expect", "100-continue")
	answered := make(chan *http.Response, 1)
	go func() {
		response, err := (&http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: time.Hour}).RoundTrip(request)
		if err != nil {
			t.Error(err)
		}
		answered <- response
	}()
	<-begun
	stopped := make(chan error, 1)
	go func() { stopped <- b.Shutdown() }()
	if _, err := io.ReadAll(stream.Body); err == nil { // until the stream is cut, and so the server is stopping
		t.Error("the stream ended cleanly")
	}
	if _, err := io.WriteString(rest, `{"ticket":"none","thread":"t"}`); err != nil {
		t.Fatal(err)
	}
	_ = rest.Close()
	if response := <-answered; response != nil {
		if code := b.refused(response); code != "bad_ticket" {
			t.Errorf("answered %s %s; want the answer to what was asked", response.Status, code)
		}
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A server about to stop says so to its balancer, and serves all the same.
func TestLeaving(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.Leave()
	for path, want := range map[string]int{"/readyz": http.StatusServiceUnavailable, "/healthz": http.StatusOK} {
		response, err := http.Get(b.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, response.Status, want)
		}
	}
}
