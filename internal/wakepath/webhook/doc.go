// Package webhook reaches endpoints on the web: it signs, dials and judges one attempt at a time.
//
// Here belong the form of a target (URL and secret), the signature (Standard Webhooks v1), what proves that an endpoint wants
// deliveries (a handshake, its origin's receiver document, the operator's word), the rule which addresses may be dialled at all, and
// what an answer means for the next attempt. The facts are those of MCP Events (SEP-3415, draft), "Webhook delivery".
//
// What does not belong here: which deliveries are due, how often they are tried, when an endpoint is suspended. Nothing is
// stored and nothing is retried here. Of what an endpoint answers, nothing leaves the package but a [Reason].
package webhook
