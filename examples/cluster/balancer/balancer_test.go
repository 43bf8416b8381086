package balancer_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/examples/cluster/balancer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start serves a balancer until the test ends, and gives its address.
func start(t *testing.T, b *balancer.Balancer) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// node answers with its name.
func node(t *testing.T, name string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// ask asks whoever the balancer passes a new connection to.
func ask(t *testing.T, address string) string {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	name, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(name)
}

func TestNodesTakeTurns(t *testing.T) {
	t.Parallel()
	b := balancer.New(node(t, "a"), "", node(t, "b"))
	address := start(t, b)
	got := ""
	for range 6 {
		got += ask(t, address)
	}
	if got != "abbabb" { // the turn of the one that is down is the next one's
		t.Errorf("connections went to %q", got)
	}
	b.Set(1, node(t, "c"))
	b.Set(2, "127.0.0.1:1") // where nobody listens
	if got := ask(t, address) + ask(t, address) + ask(t, address); got != "aca" {
		t.Errorf("connections went to %q", got)
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	conn, err := net.Dial("tcp", start(t, balancer.New("127.0.0.1:1", "")))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection stays open")
	}
}

// What is open when the balancer ends is closed.
func TestTheEnd(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- balancer.New(silent.Addr().String()).Serve(ctx, listener) }()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	stop()
	if _, err := client.Read(make([]byte, 1)); err == nil {
		t.Error("the client's connection stays open")
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
