package webhook_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/wakepath/webhook"
)

// net/http lingers half a second on a connection whose request it refused unread, whoever shuts down meanwhile.
var lingering = goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, lingering) }

const secretText = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func secret(t testing.TB, text string) webhook.Secret {
	t.Helper()
	parsed, err := webhook.ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// target is a target at url with the secret of every test.
func target(t testing.TB, url string) webhook.Target {
	t.Helper()
	return webhook.Target{URL: url, Secrets: []webhook.Secret{secret(t, secretText)}, SubscriptionID: "sub_1"}
}

var message = webhook.Message{ID: "msg_1", Body: []byte(`{"eventId":"evt_1"}`)}

// newSender makes a sender that is closed with the test.
func newSender(t testing.TB, options webhook.Options) *webhook.Sender {
	t.Helper()
	sender := webhook.New(options)
	t.Cleanup(sender.Close)
	return sender
}

// local is a sender that reaches receivers of the test.
func local(t testing.TB) *webhook.Sender {
	t.Helper()
	return newSender(t, webhook.Options{AllowPrivate: true, AllowHTTP: true, Timeout: time.Minute})
}

// receiver serves handler until the end of the test and gives its URL.
func receiver(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// rawReceiver accepts connections and hands each to serve, which closes it.
func rawReceiver(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			serve(connection)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String()
}

// names is a resolver that asks answer for the IPv4 address of each name.
func names(answer func() netip.Addr) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			serveDNS(theirs, answer)
		}()
		return ours, nil
	}}
}

// serveDNS answers queries (RFC 1035, as over TCP): those for A with one address, all others with none.
func serveDNS(connection net.Conn, answer func() netip.Addr) {
	for {
		var length [2]byte
		if _, err := io.ReadFull(connection, length[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(connection, query); err != nil {
			return
		}
		const header, typeA = 12, 1
		end := header
		for query[end] != 0 {
			end += 1 + int(query[end])
		}
		end += 5 // the empty label, type and class
		reply := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[header:end]...)
		if binary.BigEndian.Uint16(query[end-4:]) == typeA {
			reply[7] = 1
			reply = append(reply, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4)
			address := answer().As4()
			reply = append(reply, address[:]...)
		}
		if _, err := connection.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}
