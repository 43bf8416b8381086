package core_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

var streamURL = regexp.MustCompile(`u='http://core\.test/w/([A-Za-z0-9_-]+)'`)

func streamToken(t *testing.T, text string) string {
	t.Helper()
	m := streamURL.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no stream in %q", text)
	}
	return m[1]
}

func codex(thread string) wake.Call {
	return wake.Call{Client: "codex-mcp-client", User: "ada", Tool: "watch_crawl",
		Meta: json.RawMessage(`{"x-codex-turn-metadata":{"thread_id":"` + thread + `"}}`)}
}

func TestASessionKeyIsGoodForItsOwnAppClientAndUserOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	mine := b.subscribe(claude, "j1")
	other := b.newApp("other")
	with := func(change func(*wake.Call)) wake.Call {
		call := claude
		call.Session = mine.Session
		change(&call)
		return call
	}
	var answers []string
	for name, try := range map[string]struct {
		app  wake.App
		call wake.Call
	}{
		"unknown":        {b.app, with(func(c *wake.Call) { c.Session = c.Session[:len(c.Session)-8] + "aaaaaaaa" })},
		"garbage":        {b.app, with(func(c *wake.Call) { c.Session = "' OR 1=1 --" })},
		"huge":           {b.app, with(func(c *wake.Call) { c.Session = strings.Repeat("a", 50_000) })},
		"another client": {b.app, with(func(c *wake.Call) { c.Client = "Cursor" })},
		"another user":   {b.app, with(func(c *wake.Call) { c.User = "bob" })},
		"nobody":         {b.app, with(func(c *wake.Call) { c.User = "" })},
		"another app":    {other, with(func(*wake.Call) {})},
		"a stream token": {b.app, with(func(c *wake.Call) { c.Session = streamToken(t, mine.Addition.Text) })},
	} {
		_, err := b.core.SubscribeEvent(t.Context(), try.app, try.call, "crawl.finished", args("j2"), false)
		if !refusal.Is(err, refusal.UnknownSession) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		answers = append(answers, err.Error())
	}
	for _, answer := range answers {
		if answer != answers[0] {
			t.Errorf("the answers tell them apart: %q and %q", answers[0], answer)
		}
	}
	if joined := b.subscribe(with(func(*wake.Call) {}), "j2"); joined.Session != mine.Session {
		t.Error("its own key makes another conversation")
	}
}

func TestWithoutAKeyCallsAreApart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := b.subscribe(claude, "j"), b.subscribe(claude, "j")
	if one.Session == two.Session || streamToken(t, one.Addition.Text) == streamToken(t, two.Addition.Text) {
		t.Error("two calls without a key are one conversation")
	}
	if strings.Contains(one.Addition.Text[:strings.Index(one.Addition.Text, "; done .")], one.Session) {
		t.Error("the command contains the session key")
	}
}

func TestAThreadIsAConversation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.subscribe(codex("t1"), "j1")
	if two := b.subscribe(codex("t1"), "j2"); two.Session != one.Session {
		t.Error("one thread is two conversations")
	}
	if three := b.subscribe(codex("t2"), "j1"); three.Session == one.Session {
		t.Error("two threads are one conversation")
	}
	bob := codex("t1")
	bob.User = "bob"
	if four := b.subscribe(bob, "j1"); four.Session == one.Session {
		t.Error("two users' threads of one id are one conversation")
	}
	other := b.newApp("other")
	if five, err := b.core.SubscribeEvent(t.Context(), other, codex("t1"), "crawl.finished", args("j1"), false); err != nil || five.Session == one.Session {
		t.Errorf("two apps share a conversation (%v)", err)
	}
}

func TestBeaconAndTicket(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := b.subscribe(codex("t1"), "j1")
	token, _ := done.Addition.Meta["wakeshift/connector"].(string)
	master := credential.NewMaster([32]byte{1})
	beacon, err := credential.VerifyBeacon(token, master.BeaconKey(), done.Subscription.CreatedAt)
	if err != nil {
		t.Fatal(err)
	}
	if beacon.Redeem != "http://core.test/redeem" || beacon.Tool != "watch_crawl" {
		t.Errorf("beacon %+v", beacon)
	}
	for name, try := range map[string][2]string{
		"another thread": {beacon.Ticket, "t2"}, "no thread": {beacon.Ticket, ""}, "no ticket": {"", "t1"},
		"an altered ticket": {beacon.Ticket[:len(beacon.Ticket)-6] + "aaaaaa", "t1"}, "a huge ticket": {strings.Repeat(beacon.Ticket, 500), "t1"},
	} {
		if _, err := b.core.Redeem(t.Context(), try[0], try[1]); !refusal.Is(err, refusal.BadTicket) {
			t.Errorf("%s: %v", name, err)
		}
	}
	url, err := b.core.Redeem(t.Context(), beacon.Ticket, "t1")
	if err != nil || !strings.HasPrefix(url, "ws://core.test/connect/") {
		t.Fatalf("%q, %v", url, err)
	}
	_, err = b.core.Redeem(t.Context(), beacon.Ticket, "t1")
	b.refused(err, refusal.BadTicket)
	in, err := b.core.OpenConnector(t.Context(), strings.TrimPrefix(url, "ws://core.test/connect/"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	b.emit("j1", "3")
	if got := b.read(in); !cmp.Equal(got, []string{"j1 has 3"}) {
		t.Errorf("got %q", got)
	}
}

func TestATicketExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		done := b.subscribe(codex("t1"), "j1")
		token, _ := done.Addition.Meta["wakeshift/connector"].(string)
		beacon, err := credential.VerifyBeacon(token, credential.NewMaster([32]byte{1}).BeaconKey(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(beacon.Expires) + time.Second)
		_, err = b.core.Redeem(t.Context(), beacon.Ticket, "t1")
		b.refused(err, refusal.BadTicket)
	})
}

func TestSubscriptionLimit(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *core.Options) { o.MaxSubscriptions = 10 })
	subscribe := func(topic string) error {
		_, err := b.core.SubscribeTopic(t.Context(), b.app, codex("t1"), topic, core.TopicOptions{})
		return err
	}
	for i := range 10 {
		if err := subscribe(fmt.Sprintf("t%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	b.refused(subscribe("one-more"), refusal.SubscriptionLimit)
	if err := subscribe("t7"); err != nil {
		t.Errorf("renewing at the limit: %v", err)
	}
}

func TestHeldMessagesRideUntilTheyAreSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		call := wake.Call{Client: "some-client", User: "ada"}
		done := b.subscribe(call, "j1")
		if done.Addition.Meta != nil || strings.Contains(done.Addition.Text, "u='") || !strings.Contains(done.Addition.Text, done.Session) {
			t.Errorf("addition %+v", done.Addition)
		}
		b.emit("j1", "7")
		call.Session = done.Session
		annotate := func() core.Addition {
			t.Helper()
			added, _, err := b.core.Annotate(t.Context(), b.app, call)
			if err != nil {
				t.Fatal(err)
			}
			return added
		}
		if lost := annotate(); !strings.Contains(lost.Text, "j1 has 7") {
			t.Fatalf("%+v", lost)
		}
		if other := annotate(); other.Text != "" {
			t.Errorf("a call meanwhile got %+v", other)
		}
		// The first result's node was killed, the second result never arrived.
		time.Sleep(11 * time.Second)
		if err := annotate().Settle(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		added := annotate()
		if !strings.Contains(added.Text, "j1 has 7") {
			t.Fatalf("after a lost result %+v", added)
		}
		if err := added.Settle(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if added := annotate(); added.Text != "" {
			t.Errorf("after settling %+v", added)
		}
		b.emit("j1", "8")
		if added := annotate(); !strings.Contains(added.Text, "j1 has 8") || strings.Contains(added.Text, "j1 has 7") {
			t.Errorf("the next message: %+v", added)
		}
		call.Session = ""
		if added := annotate(); added.Text != "" {
			t.Errorf("a call of no conversation got %+v", added)
		}
	})
}

func TestHeldMessagesRideOnOneOfManyResultsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	call := wake.Call{Client: "some-client", User: "ada"}
	call.Session = b.subscribe(call, "j1").Session
	b.emit("j1", "7")
	var got atomic.Int32
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			added, _, err := b.core.Annotate(t.Context(), b.app, call)
			if err == nil {
				err = added.Settle(t.Context(), true)
			}
			if err != nil {
				t.Error(err)
			}
			if strings.Contains(added.Text, "j1 has 7") {
				got.Add(1)
			}
		})
	}
	all.Wait()
	if got.Load() != 1 {
		t.Errorf("%d results carry it", got.Load())
	}
}

func TestAHeldMessageCannotLookLikeSeveral(t *testing.T) {
	t.Parallel()
	b := setup(t)
	call := wake.Call{Client: "some-client"}
	done := b.subscribe(call, "j1")
	if _, err := b.core.Emit(t.Context(), b.app, core.Emit{Name: "crawl.finished", Arguments: args("j1"), Payload: json.RawMessage(`{"pages":1}`),
		Text: "one\n- two\u2028three"}); err != nil {
		t.Fatal(err)
	}
	call.Session = done.Session
	added, _, err := b.core.Annotate(t.Context(), b.app, call)
	if err != nil || strings.Count(added.Text, "\n- ") != 1 {
		t.Errorf("%q, %v", added.Text, err)
	}
}

func TestAMonitorThatDoesNotRunIsRemindedOf(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := b.subscribe(claude, "j1")
	call := claude
	call.Session = done.Session
	annotate := func() string {
		t.Helper()
		added, _, err := b.core.Annotate(t.Context(), b.app, call)
		if err != nil {
			t.Fatal(err)
		}
		return added.Text
	}
	if text := annotate(); text != "" {
		t.Errorf("nothing waits, and it says %q", text)
	}
	b.emit("j1", "1")
	if text := annotate(); !strings.Contains(text, "1 message") || streamToken(t, text) != streamToken(t, done.Addition.Text) {
		t.Errorf("it says %q", text)
	}
	in := b.inbox(done)
	if text := annotate(); text != "" {
		t.Errorf("a stream is open, and it says %q", text)
	}
	in.Close()
}
