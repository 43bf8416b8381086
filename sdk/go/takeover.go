package wakeshift

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// A takenConn is a connection that was taken over from the HTTP server, which
// keeps several times as much memory for an answer as a stream needs. It is the
// [http.ResponseWriter] of the rest of the answer.
type takenConn struct {
	net.Conn
	header http.Header
}

// takeOver takes a request's connection from the HTTP server; false, and nothing
// has happened, where that cannot be done: with HTTP/2, or when somebody stands
// between the server and this handler. The body of the request must have been read.
func takeOver(rw http.ResponseWriter) (*takenConn, bool) {
	hijacker, ok := rw.(http.Hijacker)
	if !ok {
		return nil, false
	}
	header := rw.Header()
	conn, _, err := hijacker.Hijack() // a client that sends more before the answer ends gets no answer to it
	if err != nil {
		return nil, false
	}
	return &takenConn{conn, header}, true
}

// Header is what the server was told so far, and may be added to.
func (c *takenConn) Header() http.Header { return c.header }

// WriteHeader sends the header. An error shows with the next write.
func (c *takenConn) WriteHeader(status int) {
	c.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	c.header.Set("Connection", "close") // which is the end of the body
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	_ = c.header.Write(&head) // a buffer takes everything
	head.WriteString("\r\n")
	c.header = nil
	_ = c.SetWriteDeadline(time.Now().Add(clientPatience)) // if it fails, so does the write
	_, _ = c.Write(head.Bytes())
}

// Flush does nothing: nothing is kept back.
func (c *takenConn) Flush() {}

// untilGone waits until the client has closed its connection, and ends the context.
func (c *takenConn) untilGone(gone context.CancelFunc) {
	defer gone()
	var ignored [64]byte
	for {
		if _, err := c.Read(ignored[:]); err != nil {
			return
		}
	}
}
