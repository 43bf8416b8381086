package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/wake"
	"github.com/rouse-dev/rouse/internal/wakepath/native"
)

type method = func(context.Context, *core.Core, wake.App, native.Request) (native.Answer, error)

// request makes a request that is no fault of the core: it has a result or an error, not both.
func request(t testing.TB, b *coretest.Bench, ask method, q native.Request) native.Answer {
	t.Helper()
	got, err := ask(t.Context(), b.Core, b.App, q)
	if err != nil {
		t.Fatalf("%s: %v", q.Params, err)
	}
	if (got.Result == nil) == (got.Error == nil) {
		t.Fatalf("%s: %+v", q.Params, got)
	}
	return got
}

// site emits that the site changed, once for each text.
func site(t testing.TB, b *coretest.Bench, texts ...string) {
	t.Helper()
	for i, text := range texts {
		if _, err := b.Core.Emit(t.Context(), b.App, core.Emit{Name: "site.updated", Arguments: json.RawMessage(`{"site":"s"}`),
			Payload: fmt.Appendf(nil, `{"pages":%d}`, i), Text: text}); err != nil {
			t.Fatal(err)
		}
	}
}

func cursorOf(t testing.TB, a native.Answer) string {
	t.Helper()
	polled, ok := a.Result.(core.Polled)
	if !ok {
		t.Fatalf("%+v is no answer to a poll", a)
	}
	return quote(polled.Cursor)
}

func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return string(b)
}

func TestPolling(t *testing.T) {
	t.Parallel()
	golden(t, setup(t), "poll", clients["draft"], func(s *transcript) {
		start := cursorOf(t, s.poll(about(`,"cursor":null,"more":{"ignored":true}`)))
		site(t, s.bench, "the first", "the second", "the third")
		first := s.poll(about(`,"cursor":` + start + `,"maxEvents":2`))
		s.poll(about(`,"cursor":` + cursorOf(t, first) + `,"maxEvents":2.0`))
		s.poll(about(`,"cursor":` + start + `,"maxAgeMs":3.6e6`))
		s.remark("a cursor that means nothing")
		s.poll(about(`,"cursor":"h_99842"`))
	})
}

func TestSubscribing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	url := receiver(t, echo)
	for dialect, call := range clients {
		golden(t, b, "subscribe-"+dialect, call, func(s *transcript) {
			s.subscribe(about(by(url+"/"+dialect, secret) + `,"cursor":null,"ttlMs":3600000`))
			s.remark("a refresh, with another secret")
			s.subscribe(about(by(url+"/"+dialect, another)))
			s.remark("another URL is another subscription; its cursor means nothing")
			s.subscribe(about(by(url+"/"+dialect+"/2", secret) + `,"cursor":"h_99842"`))
			s.unsubscribe(about(by(url+"/"+dialect, secret)))
			s.remark("again")
			s.unsubscribe(about(by(url+"/"+dialect, secret)))
		})
	}
}

func TestSubscribingByVoucher(t *testing.T) {
	t.Parallel()
	b := setup(t)
	url := receiver(t, echo)
	nobody := wake.Call{Client: "openai-mcp"}
	text := b.Subscribe(nobody, "j1", false).Addition.Text
	voucher := regexp.MustCompile(`wsv_[a-z2-7]{32}`).FindString(text)
	golden(t, b, "voucher", nobody, func(s *transcript) {
		s.subscribe(`{"name":"crawl.finished","arguments":{"job":"j1","wakeshift_voucher":"` + voucher + `"}` + by(url, secret) + `}`)
		s.remark("the voucher with other arguments")
		s.subscribe(`{"name":"crawl.finished","arguments":{"job":"j2","wakeshift_voucher":"` + voucher + `"}` + by(url, secret) + `}`)
		s.remark("no voucher")
		s.subscribe(`{"name":"crawl.finished","arguments":{"job":"j1"}` + by(url, secret) + `}`)
		s.unsubscribe(`{"name":"crawl.finished","arguments":{"job":"j1","wakeshift_voucher":"` + voucher + `"}` + by(url, secret) + `}`)
	})
}

// Every way to be refused, in both dialects.
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good := receiver(t, echo)
	deaf := receiver(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"challenge":"another"}`)) })
	broken := receiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	for dialect, call := range clients {
		golden(t, b, "refusals-"+dialect, call, func(s *transcript) {
			s.remark("unknown event")
			s.poll(`{"name":"no.such"}`)
			s.remark("tools only")
			s.poll(`{"name":"crawl.finished","arguments":{"job":"j"}}`)
			s.remark("arguments that do not fit")
			s.poll(`{"name":"site.updated","arguments":{"site":7}}`)
			s.poll(`{"name":"site.updated","arguments":{"site":"S"}}`)
			s.remark("another delivery")
			s.subscribe(about(`,"delivery":{"mode":"carrier pigeon","url":"https://hook.example/","secret":"x"}`))
			s.remark("a URL and a secret that could never be one")
			s.subscribe(about(by("http://hook.example/", secret)))
			s.subscribe(about(by("https://hook.example/", "hunter2")))
			s.remark("endpoints that do not pass")
			s.subscribe(about(by(deaf, secret)))
			s.subscribe(about(by(broken, secret)))
			s.subscribe(about(by("http://127.0.0.1:1/", secret)))
			s.remark("nobody")
			s.call.User = ""
			s.subscribe(about(by(good, secret)))
			s.unsubscribe(about(by(good, secret)))
			s.remark("a call over its limits")
			s.call.User = strings.Repeat("u", 257)
			s.poll(about(``))
		})
	}
}

func TestOneMoreThanAUserMayHave(t *testing.T) {
	t.Parallel()
	const most = 100 // the texts name it
	b := setup(t, func(o *core.Options) { o.Limits.UserWebhooks = most })
	url := receiver(t, echo)
	for i := range most {
		params := fmt.Sprintf(`{"name":"site.updated","arguments":{"site":"s%d"}%s}`, i, by(url, secret))
		if got := request(t, b, native.Subscribe, native.Request{Call: clients["draft"], Params: json.RawMessage(params)}); got.Error != nil {
			t.Fatalf("the %dth: %+v", i+1, got.Error)
		}
	}
	for dialect, call := range clients {
		golden(t, b, "limit-"+dialect, call, func(s *transcript) { s.subscribe(about(by(url, secret))) })
	}
}

// What the app itself does not allow is refused whatever the event allows.
func TestTheAppsOwnRefusal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	url := receiver(t, echo)
	for name, ask := range map[string]method{"poll": native.Poll, "subscribe": native.Subscribe} {
		got := request(t, b, ask, native.Request{Call: clients["draft"], Refused: true, Params: json.RawMessage(about(by(url, secret)))})
		if got.Error == nil || got.Error.Code != -32024 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestACoreWithoutWebhooks(t *testing.T) {
	t.Parallel()
	b := coretest.New(t)
	got := request(t, b, native.Subscribe, native.Request{Call: clients["draft"], Params: json.RawMessage(about(by("https://hook.example/", secret)))})
	if got.Error == nil || got.Error.Code != -32026 || got.Error.Data["feature"] != "deliveryMode" {
		t.Errorf("%+v", got)
	}
}

// A fault is the core's, and its words are not for the client.
func TestAFaultIsNoAnswer(t *testing.T) {
	t.Parallel()
	b := coretest.New(t)
	ctx, end := context.WithCancel(t.Context())
	end()
	for _, ask := range []method{native.Poll, native.Unsubscribe} {
		got, err := ask(ctx, b.Core, b.App, native.Request{Call: clients["draft"], Params: json.RawMessage(about(by("https://hook.example/", secret)))})
		if !errors.Is(err, context.Canceled) || got.Result != nil || got.Error != nil {
			t.Errorf("%+v, %v", got, err)
		}
	}
}
