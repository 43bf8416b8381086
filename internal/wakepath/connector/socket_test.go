package connector_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wakepath/connector"
)

func TestEventsComeInOrder(t *testing.T) {
	t.Parallel()
	l := setup(t)
	c, other := l.conversation("t1"), l.conversation("t2")
	c.emit("one", "two")
	s := l.connect(c.url())
	other.emit("another's")
	c.emit("three", "four")
	if diff := cmp.Diff([]string{"one", "two", "three", "four"}, s.subjects(4)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatWasAcknowledgedDoesNotComeAgain(t *testing.T) {
	t.Parallel()
	l := setup(t)
	c := l.conversation("t1")
	url := c.url()
	s := l.connect(url)
	c.emit("one", "two")
	got := s.frames(2)
	s.ack(got[0].Delivery)
	l.awaits(trace.Delivered, got[0].Delivery)
	s.cut()

	again := l.connect(url)
	c.emit("three")
	repeated := again.frames(2)
	if repeated[0].Event.Subject != "two" || repeated[1].Event.Subject != "three" {
		t.Errorf("came again: %+v", repeated)
	}
	if repeated[0].Delivery != got[1].Delivery {
		t.Error("a repeated frame has another delivery_id")
	}
	again.ack(repeated[1].Delivery, repeated[0].Delivery)
	l.awaits(trace.Delivered, repeated[1].Delivery)
	again.cut()

	last := l.connect(url)
	c.emit("four")
	if got := last.subjects(1); got[0] != "four" {
		t.Errorf("came again: %q", got)
	}
}

// Only what was received without a gap counts: what comes after one comes again with it.
func TestAcknowledgementsOutOfOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, l *lab) {
		c := l.conversation("t1")
		url := c.url()
		c.emit("one", "two", "three")
		s := l.connect(url)
		got := s.frames(3)
		s.ack(got[2].Delivery, got[1].Delivery, got[1].Delivery)
		synctest.Wait()
		s.cut()
		again := l.connect(url)
		if diff := cmp.Diff(got, again.frames(3)); diff != "" {
			t.Error(diff)
		}
		again.ack(got[1].Delivery, got[0].Delivery)
		synctest.Wait()
		again.cut()
		if last := l.connect(url).frame(); last.Event.Subject != "three" {
			t.Errorf("came again: %+v", last)
		}
	})
}

func TestAtMost32FramesAreUnacknowledged(t *testing.T) {
	inBubble(t, func(t *testing.T, l *lab) {
		c := l.conversation("t1")
		for range 40 {
			c.emit("x")
		}
		s := l.connect(c.url())
		var got []frame
		frames := make(chan frame, 100)
		go func() {
			defer close(frames)
			for {
				_, text, err := s.conn.Read(t.Context())
				var f frame
				if err != nil || json.Unmarshal(text, &f) != nil {
					return
				}
				frames <- f
			}
		}()
		came := func() int {
			synctest.Wait()
			for {
				select {
				case f := <-frames:
					got = append(got, f)
				default:
					return len(got)
				}
			}
		}
		if n := came(); n != 32 {
			t.Fatalf("%d frames came before any was acknowledged", n)
		}
		s.ack(got[31].Delivery, got[30].Delivery)
		if n := came(); n != 32 {
			t.Errorf("%d frames came with a gap before what was acknowledged", n)
		}
		for _, f := range got[:3] {
			s.ack(f.Delivery)
		}
		if n := came(); n != 35 {
			t.Errorf("%d frames came after three were acknowledged", n)
		}
		time.Sleep(time.Minute)
		for _, f := range got[3:] {
			s.ack(f.Delivery)
		}
		if n := came(); n != 40 {
			t.Errorf("%d frames came in all", n)
		}
		s.cut()
		<-frames
	})
}

// Noise comes from programs that know more or less than this core.
func TestNoiseDoesNoHarm(t *testing.T) {
	t.Parallel()
	l := setup(t)
	c, other := l.conversation("t1"), l.conversation("t2")
	address := c.url()
	s := l.connect(address)
	c.emit("one")
	first := s.frame()
	for _, noise := range []string{"", "no json", "[]", "7", "null", strings.Repeat("{", 1000), "\x00", `{"type":"ack"}`, `{"type":"ack","delivery_id":7}`,
		`{"type":"ack","delivery_id":"no-such"}`, `{"type":"nack","delivery_id":"` + first.Delivery + `"}`, `{"delivery_id":"` + first.Delivery + `"}`} {
		s.send(noise)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.conn.Write(ctx, websocket.MessageBinary, []byte(`{"type":"ack","delivery_id":"`+first.Delivery+`"}`)); err != nil {
		t.Fatal(err)
	}
	// Another conversation cannot acknowledge it. That its own acknowledgement counted says that the foreign one was looked at.
	stranger := l.connect(other.url())
	other.emit("its own")
	own := stranger.frame()
	stranger.ack(first.Delivery, own.Delivery)
	l.awaits(trace.Delivered, own.Delivery)

	c.emit("two")
	second := s.frame()
	s.ack(second.Delivery)
	s.send(`{"type":"ack","delivery_id":"` + strings.Repeat("x", 17<<10) + `"}`)
	if code := s.closed(); code != websocket.StatusMessageTooBig {
		t.Errorf("a frame of 17 KiB: closed with %d", code)
	}
	if diff := cmp.Diff([]frame{first, second}, l.connect(address).frames(2)); diff != "" {
		t.Errorf("none was acknowledged in order: %s", diff)
	}
}

func TestTheNewestConnectionWins(t *testing.T) {
	t.Parallel()
	l := setup(t)
	c := l.conversation("t1")
	url := c.url()
	old := l.connect(url)
	c.emit("one")
	first := old.frame()
	newest := l.connect(url)
	if code := old.closed(); code != connector.Superseded {
		t.Errorf("the older is closed with %d", code)
	}
	c.emit("two")
	if diff := cmp.Diff([]string{"one", "two"}, newest.subjects(2)); diff != "" {
		t.Errorf("the newest got: %s", diff)
	}
	newest.ack(first.Delivery)
	l.awaits(trace.Delivered, first.Delivery)
}

func TestWhoeverMerelyLooksTakesNoPlace(t *testing.T) {
	t.Parallel()
	l := setup(t)
	c := l.conversation("t1")
	url := c.url()
	s := l.connect(url)
	response, err := l.client.Get("http" + strings.TrimPrefix(url, "ws"))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("answered %d", response.StatusCode)
	}
	c.emit("one")
	if got := s.frame(); got.Event.Subject != "one" {
		t.Errorf("got %+v", got)
	}
}

func TestAddressesThatDoNotOpen(t *testing.T) {
	t.Parallel()
	l := setup(t)
	c := l.conversation("t1")
	url := c.url()
	base, token, _ := strings.Cut(url, connector.Prefix)
	base += connector.Prefix
	id := token[4:20]
	master := credential.NewMaster([32]byte{1})
	for name, address := range map[string]string{
		"an altered end":     url[:len(url)-8] + "aaaaaaaa",
		"an altered id":      base + "wsc_" + strings.Repeat("a", 16) + token[20:],
		"a longer token":     url + "a",
		"a shorter token":    url[:len(url)-1],
		"no token":           base + "x",
		"a stream's":         base + master.Mint(credential.Stream, id),
		"a session key":      base + master.Mint(credential.SessionKey, id),
		"another core's":     base + credential.NewMaster([32]byte{2}).Mint(credential.Connector, id),
		"a forgotten one's":  base + master.Mint(credential.Connector, credential.NewID()),
		"a prefix and no id": base + "wsc_",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		conn, response, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPClient: l.client})
		cancel()
		if err == nil {
			_ = conn.CloseNow()
			t.Errorf("%s opens", name)
			continue
		}
		if response == nil || response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %v, %v", name, response, err)
		}
	}
	l.connect(url)
}

func TestNothingLeftToWaitFor(t *testing.T) {
	inBubble(t, func(t *testing.T, l *lab) {
		c := l.subscribed("t1", true)
		url := c.url()
		s := l.connect(url)
		c.emit("one", "too late")
		got := s.frame()
		synctest.Wait()
		if !l.connected() {
			t.Error("it was over before it was acknowledged")
		}
		s.ack(got.Delivery)
		if code := s.closed(); code != websocket.StatusNormalClosure {
			t.Errorf("closed with %d", code)
		}
		if code := l.connect(url).closed(); code != websocket.StatusNormalClosure {
			t.Errorf("a later connection is closed with %d", code)
		}
	})
}

// A program acknowledges events. What it does not know it does not acknowledge, and it must not wait for that.
func TestANoticeNeedsNoAcknowledgement(t *testing.T) {
	t.Parallel()
	l := setup(t)
	c := l.conversation("t1")
	s := l.connect(c.url())
	c.emit("one")
	event := s.frame()
	if _, err := l.Core.PutManifest(t.Context(), l.App, json.RawMessage(`{"events":[]}`)); err != nil {
		t.Fatal(err)
	}
	notice := s.frame()
	if event.Type != "event" || notice.Type != "ended" || !strings.Contains(notice.Event.Subject, "no longer offers it") {
		t.Errorf("%+v, then %+v", event, notice)
	}
	s.ack(event.Delivery)
	l.awaits(trace.Delivered, notice.Delivery)
	if code := s.closed(); code != websocket.StatusNormalClosure {
		t.Errorf("closed with %d", code)
	}
}

func TestAStoppingCoreSaysThatItComesBack(t *testing.T) {
	t.Parallel()
	l := setup(t)
	c := l.conversation("t1")
	c.emit("one")
	s := l.connect(c.url())
	s.frame()
	close(l.stopping)
	if code := s.closed(); code != websocket.StatusServiceRestart {
		t.Errorf("closed with %d", code)
	}
}

func TestAConversationThatIsForgottenIsOver(t *testing.T) {
	t.Parallel()
	l := setup(t)
	c := l.conversation("t1")
	c.emit("one")
	s := l.connect(c.url())
	s.frame()
	if err := l.Core.DeleteApp(t.Context(), l.App.ID); err != nil {
		t.Fatal(err)
	}
	if code := s.closed(); code != websocket.StatusNormalClosure {
		t.Errorf("closed with %d", code)
	}
}
