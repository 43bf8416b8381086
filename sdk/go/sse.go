package wakeshift

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// clientPatience is how long a client may take to read one notification.
const clientPatience = time.Minute

// beginEvents begins an answer of server-sent events.
func beginEvents(rw http.ResponseWriter) {
	header := rw.Header()
	header.Del("Content-Length")
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache")
	header.Set("X-Accel-Buffering", "no")
	// A server's limit on the time to read a request would end the stream.
	_ = http.NewResponseController(rw).SetReadDeadline(time.Time{}) // not every writer has one
	rw.WriteHeader(http.StatusOK)
}

// write writes a stream's notifications as server-sent events until it ends,
// with the result of the request, or the client is gone.
func (st *stream) write(ctx context.Context, rw http.ResponseWriter, id json.RawMessage, modern bool) {
	control := http.NewResponseController(rw)
	for {
		n, err := st.next(ctx)
		if err != nil && !errors.Is(err, io.EOF) {
			return
		}
		event := eventBuffers.Get().(*bytes.Buffer)
		event.Reset()
		if err != nil {
			writeResult(event, id, modern)
		} else if writeNotification(event, n, id) != nil {
			return // what the core sent is no object
		}
		// Not every writer has deadlines. Between two writes there is none.
		_ = control.SetWriteDeadline(time.Now().Add(clientPatience))
		_, failed := rw.Write(event.Bytes())
		if event.Cap() <= maxKeptBuffer {
			eventBuffers.Put(event)
		}
		if failed != nil || control.Flush() != nil || err != nil {
			return
		}
		_ = control.SetWriteDeadline(time.Time{})
	}
}

// maxKeptBuffer is the largest buffer that is kept for the next event.
const maxKeptBuffer = 64 << 10

var eventBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// writeNotification writes one event. In JSON a line break is white space only,
// which the form of events has no room for.
func writeNotification(event *bytes.Buffer, n notification, id json.RawMessage) error {
	params, err := withSubscription(n.params, id)
	if err != nil {
		return err
	}
	event.WriteString(`data: {"jsonrpc":"2.0","method":"` + n.method + `","params":`)
	if bytes.ContainsAny(params, "\r\n") {
		if err := json.Compact(event, params); err != nil {
			return err
		}
	} else {
		event.Write(params)
	}
	event.WriteString("}\n\n")
	return nil
}

// writeResult writes the result of the request, which ends the stream.
func writeResult(event *bytes.Buffer, id json.RawMessage, modern bool) {
	event.WriteString(`data: {"jsonrpc":"2.0","id":`)
	event.Write(id)
	event.WriteString(`,"result":{`)
	if modern {
		event.WriteString(`"resultType":"complete",`)
	}
	event.WriteString(`"_meta":{"` + subscriptionKey + `":`)
	event.Write(id)
	event.WriteString("}}}\n\n")
}
