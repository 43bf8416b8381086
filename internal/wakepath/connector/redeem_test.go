package connector_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wakepath/connector"
)

// says is the "code: message" of a reply that must be a refusal.
func (r reply) says(t *testing.T) string {
	t.Helper()
	var answer struct {
		Error struct {
			Code    refusal.Code
			Message string
		}
	}
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || r.header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
	if entry := refusal.Lookup(answer.Error.Code); entry.Code != answer.Error.Code || entry.Status != r.status {
		t.Errorf("answered %d with the code %q", r.status, answer.Error.Code)
	}
	return string(answer.Error.Code) + ": " + answer.Error.Message
}

const badTicket = "bad_ticket: the ticket is unknown, used, expired, or for another thread"

func TestABeaconIsRedeemedOnce(t *testing.T) {
	t.Parallel()
	l := setup(t)
	c := l.conversation("t1")
	if c.beacon.Tool != "watch_crawl" || c.beacon.Issuer != l.Core.PublicURL() || c.beacon.Redeem != l.Core.PublicURL()+connector.RedeemPath {
		t.Errorf("beacon %+v", c.beacon)
	}
	got := c.redeem(ask(c.beacon.Ticket, "t1"))
	if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/json" || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", got.status, got.header)
	}
	var answer map[string]string
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil || len(answer) != 1 ||
		!strings.HasPrefix(answer["url"], "ws"+strings.TrimPrefix(l.Core.PublicURL(), "http")+connector.Prefix+"wsc_") {
		t.Errorf("%s, %v", got.body, err)
	}
	if says := c.redeem(ask(c.beacon.Ticket, "t1")).says(t); says != badTicket {
		t.Errorf("again: %s", says)
	}
}

func TestOfManyRedeemsOneSucceeds(t *testing.T) {
	t.Parallel()
	c := setup(t).conversation("t1")
	var good atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got := c.redeem(ask(c.beacon.Ticket, "t1")); got.status == http.StatusOK {
				good.Add(1)
			} else if says := got.says(t); says != badTicket {
				t.Error(says)
			}
		})
	}
	all.Wait()
	if good.Load() != 1 {
		t.Errorf("%d of 8 succeeded", good.Load())
	}
}

func TestBadRedeems(t *testing.T) {
	t.Parallel()
	l := setup(t)
	c, other := l.conversation("t1"), l.conversation("t2")
	ticket := c.beacon.Ticket
	pad := func(size int) string { // a body of that many bytes
		body := ask(ticket, "t9")
		return strings.Replace(body, `{`, `{"pad":"`+strings.Repeat("x", size-len(body)-len(`"pad":"",`))+`",`, 1)
	}
	for name, test := range map[string]struct{ body, says string }{
		"nothing":             {"", "bad_request: the JSON ends too early, at byte 0"},
		"cut off":             {"{", "bad_request: the JSON ends too early, at byte 1"},
		"a list":              {"[]", "bad_request: must be a JSON object"},
		"null":                {"null", "bad_request: must be a JSON object"},
		"two objects":         {"{}{}", "bad_request: there is more after the JSON object, at byte 2"},
		"a key twice":         {`{"ticket":"a","ticket":"b"}`, "bad_request: ticket: the key is there twice"},
		"a lone surrogate":    {`{"ticket":"\ud800"}`, "bad_request: ticket: a lone surrogate at byte 11"},
		"a ticket mistyped":   {`{"ticket":7,"thread":"t1"}`, "bad_request: ticket: must be a string"},
		"a thread mistyped":   {`{"ticket":"` + ticket + `","thread":8}`, "bad_request: thread: must be a string"},
		"too large":           {pad(16<<10 + 1), "too_large: the body: at most 16384 bytes"},
		"as large as may be":  {pad(16 << 10), badTicket},
		"no ticket":           {`{"thread":"t1"}`, badTicket},
		"ticket null":         {`{"ticket":null,"thread":"t1"}`, badTicket},
		"an unknown ticket":   {ask("x", "t1"), badTicket},
		"a ticket with NUL":   {ask(ticket[:10]+"\x00", "t1"), badTicket},
		"an altered ticket":   {ask(ticket[:len(ticket)-6]+"aaaaaa", "t1"), badTicket},
		"two tickets":         {ask(ticket+ticket, "t1"), badTicket},
		"no thread":           {`{"ticket":"` + ticket + `"}`, badTicket},
		"an empty thread":     {ask(ticket, ""), badTicket},
		"another thread":      {ask(ticket, "t9"), badTicket},
		"an existing thread":  {ask(ticket, "t2"), badTicket},
		"another's ticket":    {ask(other.beacon.Ticket, "t1"), badTicket},
		"a thread by mistake": {ask("t1", ticket), badTicket},
	} {
		got := c.redeem(test.body)
		if says := got.says(t); says != test.says {
			t.Errorf("%s: %s", name, says)
		}
		if strings.Contains(got.body, ticket[:20]) {
			t.Errorf("%s: the answer repeats the ticket: %s", name, got.body)
		}
	}
	// None of that has harmed the tickets.
	c.url()
	other.url()
}

func TestATicketExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{Bench: coretest.New(t)}
		h := connector.New(l.Core, connector.Options{})
		redeem := func(c *conversation) int {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, connector.RedeemPath, strings.NewReader(ask(c.beacon.Ticket, c.thread))))
			return w.Code
		}
		early, late := l.conversation("t1"), l.conversation("t2")
		time.Sleep(10*time.Minute - time.Second)
		if status := redeem(early); status != http.StatusOK {
			t.Errorf("a second before it expires: %d", status)
		}
		time.Sleep(time.Second)
		if status := redeem(late); status != http.StatusForbidden {
			t.Errorf("when it expires: %d", status)
		}
	})
}
