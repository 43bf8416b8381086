// Package native answers MCP Events requests that an app's SDK passes on: events/poll, events/subscribe and events/unsubscribe.
//
// It reads the request's params as they came, asks the core, and words the answer as a JSON-RPC result or error in the
// dialect of the client, ready to be passed on. The dialects are one table here and nowhere else. What an event is, who may
// have it and how it is delivered is the core's part; schemas and headers are the SDK's.
package native
