package server

import (
	"bytes"
	"net"

	"github.com/rouse-dev/rouse/internal/refusal"
)

// A request that is not HTTP at all, or whose headers are too large, never reaches a handler: net/http answers it by itself, in
// plain text. Apps' SDKs take any error without a JSON body for that of some proxy on the way, so what net/http says is put
// into the catalogue's form on its way out. Where TLS is on, the text stays plain: it is encrypted before it comes by here.

// unparsedErrors are the beginnings of the answers net/http writes by itself, each in one write.
var unparsedErrors = []struct {
	plain []byte
	json  []byte
}{
	{[]byte("HTTP/1.1 400 Bad Request" + plainHeaders), unparsed("400 Bad Request", refusal.BadRequest, "the request is not well-formed HTTP")},
	{[]byte("HTTP/1.1 431 Request Header Fields Too Large" + plainHeaders),
		unparsed("431 Request Header Fields Too Large", refusal.TooLarge, "the request's headers: at most 64 KiB")},
}

const plainHeaders = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

func unparsed(status string, code refusal.Code, message string) []byte {
	return []byte("HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" +
		`{"error":{"code":"` + string(code) + `","message":"` + message + `"}}` + "\n")
}

// unparsedListener puts what net/http answers by itself into the catalogue's form.
type unparsedListener struct{ net.Listener }

// Accept waits for the next connection.
func (l unparsedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return unparsedConn{c}, nil
}

type unparsedConn struct{ net.Conn }

// NetConn is the connection beneath.
func (c unparsedConn) NetConn() net.Conn { return c.Conn }

// Write writes p, or what stands for it.
func (c unparsedConn) Write(p []byte) (int, error) {
	for _, answer := range unparsedErrors {
		if bytes.HasPrefix(p, answer.plain) {
			if _, err := c.Conn.Write(answer.json); err != nil {
				return 0, err
			}
			return len(p), nil
		}
	}
	return c.Conn.Write(p)
}
