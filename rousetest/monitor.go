package rousetest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"time"
)

// A Message is one line of a Monitor: what wakes the agent.
type Message struct {
	Type    string          `json:"type"` // "event", "ended" or "digest"
	ID      string          `json:"id"`   // the same if it comes again
	Subject string          `json:"subject"`
	Data    json.RawMessage `json:"data"`
}

// A Monitor reads what wakes a conversation of Claude Code, without a shell and curl.
type Monitor struct {
	core  *Core
	lines chan Message
	err   error // set before lines is closed
}

// monitorURL is the address in a Monitor command.
var monitorURL = regexp.MustCompile(`u='([^']+)'`)

// Monitor starts the Monitor command that the text of a tool result asks for. A text without one fails the test. It ends with
// the test.
func (c *Core) Monitor(text string) *Monitor {
	c.t.Helper()
	found := monitorURL.FindStringSubmatch(text)
	if found == nil {
		c.t.Fatalf("rousetest: the text has no Monitor command: %q", text)
	}
	ctx, stop := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, found[1], nil)
	if err != nil {
		stop()
		c.t.Fatalf("rousetest: %v", err)
	}
	transport := new(http.Transport)
	response, err := transport.RoundTrip(request)
	if err != nil {
		stop()
		c.t.Fatalf("rousetest: starting a Monitor: %v", err)
	}
	m := &Monitor{core: c, lines: make(chan Message, 64)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.read(ctx, response)
	}()
	c.t.Cleanup(func() {
		stop()
		<-ended
		transport.CloseIdleConnections()
	})
	return m
}

func (m *Monitor) read(ctx context.Context, response *http.Response) {
	defer close(m.lines)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue // keeps the connection alive
		}
		var message Message
		if m.err = json.Unmarshal(lines.Bytes(), &message); m.err != nil {
			return
		}
		select {
		case m.lines <- message:
		case <-ctx.Done():
			return
		}
	}
	m.err = lines.Err()
}

// errEnded says that a Monitor ended because nothing is left to wait for.
var errEnded = errors.New("the Monitor has ended: nothing is left to wait for")

// Next is the next message. When none comes within the time, or the Monitor ends before, the test fails.
func (m *Monitor) Next(within time.Duration) Message {
	m.core.t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case message, ok := <-m.lines:
		if ok {
			return message
		}
		err := m.err
		if err == nil {
			err = errEnded
		}
		m.core.t.Fatalf("rousetest: %v", err)
	case <-timer.C:
		m.core.t.Fatalf("rousetest: no message within %s", within)
	}
	return Message{}
}

// Ended waits for the Monitor to end by itself, which it does when nothing is left to wait for. When it does not within the
// time, or a message comes, the test fails.
func (m *Monitor) Ended(within time.Duration) {
	m.core.t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case message, ok := <-m.lines:
		if ok {
			m.core.t.Fatalf("rousetest: a message came: %s %s", message.Type, message.Subject)
		}
		if m.err != nil {
			m.core.t.Fatalf("rousetest: the Monitor was cut: %v", m.err)
		}
	case <-timer.C:
		m.core.t.Fatalf("rousetest: the Monitor has not ended within %s", within)
	}
}
