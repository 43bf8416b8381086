package connector_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/trace"
)

// A journal is a log that several goroutines write.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (l *lab) logs() *journal {
	j := &journal{}
	l.options.Logger = slog.New(slog.NewTextHandler(j, nil))
	return j
}

// A blind store cannot be read once it is told so.
type blind struct {
	store.Store
	is atomic.Bool
}

func (s *blind) View(ctx context.Context, f func(store.Reader) error) error {
	if s.is.Load() {
		return errors.New("page 7 is torn")
	}
	return s.Store.View(ctx, f)
}

func TestAFaultIsLoggedAndItsConnectorComesBack(t *testing.T) {
	t.Parallel()
	var broken blind
	l := setup(t, func(o *core.Options) {
		broken.Store = o.Store
		o.Store = &broken
	})
	log := l.logs()
	c := l.conversation("t1")
	url := c.url()
	s := l.connect(url)
	c.emit("before") // the core has read the manifest
	first := s.frame()
	broken.is.Store(true)
	c.emit("a secret text")
	if code := s.closed(); code != websocket.StatusInternalError {
		t.Errorf("closed with %d", code)
	}
	if got := log.String(); !strings.Contains(got, "page 7 is torn") || strings.Contains(got, "secret") || strings.Contains(got, "wsc_") {
		t.Errorf("logged: %s", got)
	}
	broken.is.Store(false)
	again := l.connect(url)
	again.ack(first.Delivery)
	if got := again.subjects(2); got[1] != "a secret text" {
		t.Errorf("got %q", got)
	}
}

// reading reads whatever comes, until the connection ends.
func (s *socket) reading() {
	go func() {
		for {
			if _, _, err := s.conn.Read(context.Background()); err != nil {
				return
			}
		}
	}()
}

func (l *lab) connected() bool {
	l.Helper()
	for {
		select {
		case entry := <-l.feed.C():
			if entry.Kind == trace.Disconnected {
				return false
			}
		default:
			return true
		}
	}
}

func TestALivingConnectionStays(t *testing.T) {
	inBubble(t, func(t *testing.T, l *lab) {
		log := l.logs()
		s := l.connect(l.conversation("t1").url())
		s.reading()
		time.Sleep(time.Hour)
		synctest.Wait()
		if !l.connected() {
			t.Errorf("it was closed: %s", log)
		}
		s.cut()
		synctest.Wait()
		if l.connected() || log.String() != "" {
			t.Errorf("a connection that went away is there still, or in the log: %s", log)
		}
	})
}

// Machines fall asleep and cables are pulled: nothing is heard of such a connection any more, and the log need not know.
func TestADeadConnectionIsFoundOut(t *testing.T) {
	for name, emits := range map[string]bool{"in silence": false, "by an event": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *lab) {
				log := l.logs()
				c := l.conversation("t1")
				l.connect(c.url())
				synctest.Wait()
				if !l.connected() {
					t.Fatal("it is not connected")
				}
				if emits {
					c.emit("nobody reads this")
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if l.connected() || log.String() != "" {
					t.Errorf("the connection is there still, or in the log: %s", log)
				}
			})
		})
	}
}
