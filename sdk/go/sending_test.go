package wakeshift_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

type askParams struct{ mcp.ParamsBase }

type askResult struct{ mcp.ResultBase }

// What sending.go relies on and the MCP SDK does not promise. When this fails
// after an update of the SDK, see go-sdk's defaultSendingMethodHandler and
// subscriptionsListen.
func TestSenderContract(t *testing.T) {
	t.Parallel()
	for id, raw := range map[any]string{"a-1": `"a-1"`, int64(7): `7`} {
		server := newServer()
		found := make(chan string, 1)
		err := mcp.AddReceivingCustomMethod(server, "test/ask", func(ctx context.Context, ss *mcp.ServerSession, _ *askParams) (*askResult, error) {
			id, err := wakeshift.RequestID(ctx)
			if err != nil {
				t.Errorf("the id: %v", err)
			}
			found <- string(id)
			params := json.RawMessage(`{"cursor":null,"n":1e400,"_meta":{"x":` + string(id) + `}}`)
			if err := wakeshift.Notify(ctx, ss, "notifications/events/heartbeat", params); err != nil {
				t.Errorf("sending: %v", err)
			}
			return &askResult{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		client := rawSession(t, server, nil)
		client.write(id, "test/ask", map[string]any{"_meta": modernMeta("c")})
		if got := <-found; got != raw {
			t.Errorf("the id is %s, not %s", got, raw)
		}
		sent, ok := client.read().(*jsonrpc.Request)
		if !ok || sent.IsCall() || sent.Method != "notifications/events/heartbeat" {
			t.Fatalf("sent %v", sent)
		}
		if diff := cmp.Diff(`{"cursor":null,"n":1e400,"_meta":{"x":`+raw+`}}`, string(sent.Params)); diff != "" {
			t.Errorf("params (-want +got):\n%s", diff)
		}
		if _, ok := client.read().(*jsonrpc.Response); !ok {
			t.Error("no answer")
		}
	}
}

// A rawClient is a client in memory that sees every message.
type rawClient struct {
	t    *testing.T
	conn mcp.Connection
}

// rawSession connects a raw client to a server; wrap, if given, wraps the server's
// transport.
func rawSession(t *testing.T, server *mcp.Server, wrap func(mcp.Transport) mcp.Transport) *rawClient {
	t.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	var transport mcp.Transport = theirs
	if wrap != nil {
		transport = wrap(theirs)
	}
	session, err := server.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := ours.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		session.Wait()
	})
	return &rawClient{t, conn}
}

// write sends a request, or a notification if id is nil.
func (c *rawClient) write(id any, method string, params map[string]any) {
	c.t.Helper()
	message := map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
	if id != nil {
		message["id"] = id
	}
	data, err := json.Marshal(message)
	if err != nil {
		c.t.Fatal(err)
	}
	decoded, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.conn.Write(c.t.Context(), decoded); err != nil {
		c.t.Fatal(err)
	}
}

// read returns the next message of the server.
func (c *rawClient) read() jsonrpc.Message {
	c.t.Helper()
	message, err := c.conn.Read(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return message
}
