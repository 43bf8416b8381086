package events

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// The revisions of MCP that are spoken: the extension belongs to the first, but
// servers offer it over the old handshake too.
const (
	modernRevision = "2026-07-28"
	legacyRevision = "2025-11-25"
)

// Extension is the name of the extension among a server's capabilities.
const Extension = "io.modelcontextprotocol/events"

// The keys of _meta.
const (
	metaRevision     = "io.modelcontextprotocol/protocolVersion"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

const (
	methodList        = "events/list"
	methodPoll        = "events/poll"
	methodStream      = "events/stream"
	methodSubscribe   = "events/subscribe"
	methodUnsubscribe = "events/unsubscribe"
	methodDiscover    = "server/discover"
	methodInitialize  = "initialize"

	noteActive       = "notifications/events/active"
	noteEvent        = "notifications/events/event"
	noteHeartbeat    = "notifications/events/heartbeat"
	noteError        = "notifications/events/error"
	noteTerminated   = "notifications/events/terminated"
	noteAcknowledged = "notifications/subscriptions/acknowledged"
	noteCancelled    = "notifications/cancelled"
	noteInitialized  = "notifications/initialized"
)

// mostMessage bounds one message of a server, in bytes: a page of descriptors or
// a batch of events fits.
const mostMessage = 8 << 20

// A connection is a way to a server. Everything is safe for concurrent use.
type connection interface {
	// call makes a request and waits for its result.
	call(ctx context.Context, r request) (json.RawMessage, error)
	// open makes a request whose answer is a stream, which ends with ctx at the
	// latest.
	open(ctx context.Context, r request) (stream, error)
	// offer is what the server advertises.
	offer() offer
	// label tells servers apart.
	label() string
	close() error
}

// A stream is a request that is being answered.
type stream interface {
	// next is the next message; the last one is the response. io.EOF means that
	// the stream ended without.
	next() (message, error)
	// close ends the request. It may be called more than once.
	close()
}

// A request is one request of MCP Events.
type request struct {
	method  string
	name    string         // of the event; empty where it is about none
	params  map[string]any // without _meta
	timeout time.Duration  // of a call; 0: a default
}

const defaultTimeout = 30 * time.Second

func (r request) wait() time.Duration {
	if r.timeout == 0 {
		return defaultTimeout
	}
	return r.timeout
}

// A message is a JSON-RPC message from a server.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
}

var errMalformed = errors.New("events: the server's answer is no JSON-RPC message")

// readMessage reads one message.
func readMessage(data []byte) (message, error) {
	var m message
	if json.Unmarshal(data, &m) != nil || m.Method == "" && m.Result == nil && m.Error == nil {
		return message{}, errMalformed // what came is not quoted: it may be anything
	}
	return m, nil
}

func (m message) isResponse() bool { return m.Method == "" }

// outcome is what a response says.
func (m message) outcome() (json.RawMessage, error) {
	if m.Error != nil {
		return nil, m.Error
	}
	return m.Result, checkResultType(m.Result)
}

// checkResultType refuses results of a type that MCP Events does not have. Absent
// means complete.
func checkResultType(result json.RawMessage) error {
	var typed struct {
		ResultType *string `json:"resultType"`
	}
	if json.Unmarshal(result, &typed) != nil {
		return errMalformed
	}
	if typed.ResultType != nil && *typed.ResultType != "complete" {
		return errors.New("events: the server answered with a result of an unknown type")
	}
	return nil
}

// An offer is what a server says that it can.
type offer struct {
	events bool
}

// readOffer reads the result of server/discover or initialize. The extension is
// advertised among the extensions; in the dialect of the sketch it is a
// capability of its own.
func readOffer(result json.RawMessage) offer {
	var r struct {
		Capabilities struct {
			Extensions map[string]json.RawMessage `json:"extensions"`
			Events     json.RawMessage            `json:"events"`
		} `json:"capabilities"`
	}
	if json.Unmarshal(result, &r) != nil {
		return offer{}
	}
	_, isExtension := r.Capabilities.Extensions[Extension]
	return offer{events: isExtension || present(r.Capabilities.Events) != nil}
}

// clientCapabilities are those that this client declares.
func clientCapabilities() map[string]any {
	return map[string]any{"extensions": map[string]any{Extension: map[string]any{}}}
}
