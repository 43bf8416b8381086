package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// A connection is one of an app's, kept open. It speaks just enough HTTP to make requests and read answers with a length, so
// that the load takes little of the machine from what is measured. It belongs to one goroutine.
type connection struct {
	net.Conn
	host   string
	answer *bufio.Reader
	out    []byte
}

func dial(base string) (*connection, error) {
	host := strings.TrimPrefix(base, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn, host: host, answer: bufio.NewReader(conn)}, nil
}

// call makes a request and returns the body of its answer, which must be a 200.
func (c *connection) call(method, path, assertion string, body []byte) ([]byte, error) {
	c.out = fmt.Appendf(c.out[:0], "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		method, path, c.host, assertion, len(body))
	c.out = append(c.out, body...)
	if _, err := c.Write(c.out); err != nil {
		return nil, err
	}
	status, err := c.answer.ReadString('\n')
	if err != nil {
		return nil, err
	}
	length, err := c.length()
	if err != nil {
		return nil, err
	}
	answer := make([]byte, length)
	if _, err = io.ReadFull(c.answer, answer); err == nil && !strings.Contains(status, " 200 ") {
		err = fmt.Errorf("%s: %s", strings.TrimSpace(status), answer)
	}
	return answer, err
}

// length reads the header of an answer.
func (c *connection) length() (int, error) {
	length := -1
	for {
		line, err := c.answer.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		name, value, found := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		switch {
		case !found && length < 0:
			return 0, fmt.Errorf("an answer without its length")
		case !found:
			return length, nil
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, err
			}
		}
	}
}
