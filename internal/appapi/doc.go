// Package appapi serves the HTTP API that apps' SDKs speak, /api/apps/v1: docs/wire.md describes it.
//
// It reads requests strictly, lets the app in, calls the core and writes its answer; errors are the catalogue's. It decides
// nothing: a handler here is the shape of a request and of an answer. Streams, sockets and publish URLs, which agents and
// services use rather than apps, are in wakepath.
package appapi
