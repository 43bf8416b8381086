package core_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// at is hook with another address.
func at(url string) core.HookRequest {
	q := hook
	q.URL = url
	return q
}

// A sentBody is what the tests look at of what an endpoint was sent.
type sentBody struct {
	EventID string `json:"eventId"`
	Cursor  string
	Type    string
	Error   *struct {
		Message string
		Data    map[string]any
	}
	Data struct{ Pages int }
	Meta map[string]any `json:"_meta"`
}

func (b *bench) body(sent sentHook) (body sentBody) {
	b.Helper()
	if err := json.Unmarshal([]byte(sent.Body), &body); err != nil {
		b.Fatal(err)
	}
	return body
}

// to lists what was sent to one address.
func (b *bench) to(url string) (sent []sentHook) {
	for _, one := range b.hooks.deliveries() {
		if one.Target.URL == url {
			sent = append(sent, one)
		}
	}
	return sent
}

// answers lets attempts go as f says from now on.
func (b *bench) answers(f func(url string) core.HookResult) {
	b.hooks.mu.Lock()
	defer b.hooks.mu.Unlock()
	b.hooks.answer = f
}

func always(result core.HookResult) func(string) core.HookResult {
	return func(string) core.HookResult { return result }
}

var (
	taken   = core.HookResult{Delivered: true, Status: 204}
	fault   = core.HookResult{Retry: true, Status: 500, Reason: "http_5xx"}
	noReply = core.HookResult{Retry: true, Reason: "timeout"}
)

// attempts lists what was tried, the oldest first.
func (b *bench) attempts(webhook string) (attempts []wake.Attempt) {
	b.Helper()
	err := b.store.View(b.Context(), func(r store.Reader) error {
		found, err := r.Attempts(store.AttemptQuery{App: b.app.ID, Webhook: webhook, Limit: 1000})
		for _, a := range found {
			attempts = append([]wake.Attempt{a}, attempts...)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return attempts
}

func (b *bench) update(f func(tx store.Tx) error) {
	b.Helper()
	if err := b.store.Update(b.Context(), f); err != nil {
		b.Fatal(err)
	}
}

// restart closes the core and starts another on its database.
func (b *bench) restart(change ...func(*core.Options)) {
	b.Helper()
	b.core.Close()
	o := core.Options{Store: b.store, Master: credential.NewMaster([32]byte{1}), PublicURL: "http://core.test", Webhooks: b.hooks}
	for _, f := range change {
		f(&o)
	}
	var err error
	if b.core, err = core.New(b.Context(), o); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(b.core.Close)
}

// What comes after an event that was not received yet does not carry its place on.
func TestTheCursorStaysBeforeWhatIsOwed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		start := b.hooked(hook).Cursor
		b.hooks.fail(fault, taken)
		b.site("s", "1")
		synctest.Wait()
		b.site("s", "2")
		synctest.Wait()
		if got := b.hooked(hook).Cursor; got != start {
			t.Errorf("a refresh gives %s while the first is owed, want %s", got, start)
		}
		time.Sleep(10 * time.Second)
		b.site("s", "3")
		synctest.Wait()
		var got []string
		for _, sent := range b.hooks.deliveries() {
			body := b.body(sent)
			polled := b.poll(&body.Cursor)
			got = append(got, fmt.Sprintf("%d then %v", body.Data.Pages, data(polled)))
		}
		want := []string{`1 then [{"pages":2} {"pages":3}]`, `2 then [{"pages":1} {"pages":2} {"pages":3}]`, `1 then [{"pages":2} {"pages":3}]`, "3 then []"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if sent := b.hooks.deliveries(); sent[0].Body != sent[2].Body || sent[0].ID != sent[2].ID {
			t.Errorf("a retry differs: %+v", sent)
		}
		refreshed := b.hooked(hook)
		if polled := b.poll(&refreshed.Cursor); len(polled.Events) != 0 || refreshed.Truncated {
			t.Errorf("a refresh gives a cursor with %d events after it", len(polled.Events))
		}
	})
}

func TestTheWebhookIDOfEachDialect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		for _, dialect := range []string{core.DialectDraft, core.DialectChatGPT, core.DialectFinal} {
			q := at("https://hook.test/" + dialect)
			q.Dialect = dialect
			b.hooked(q)
		}
		b.site("s", "1")
		synctest.Wait()
		for _, sent := range b.hooks.deliveries() {
			same := sent.ID == b.body(sent).EventID
			if want := !strings.HasSuffix(sent.Target.URL, core.DialectFinal); same != want || !same && !strings.HasPrefix(sent.ID, "msg_") {
				t.Errorf("%s: id %s", sent.Target.URL, sent.ID)
			}
		}
		if len(b.hooks.deliveries()) != 3 {
			t.Errorf("%d deliveries", len(b.hooks.deliveries()))
		}
	})
}

// emitNote emits an event with so many bytes of data, about.
func (b *bench) emitNote(size int, text string) {
	b.Helper()
	_, err := b.core.Emit(b.Context(), b.app, core.Emit{Name: "site.updated", Arguments: json.RawMessage(`{"site":"s"}`),
		Payload: json.RawMessage(`{"pages":1,"note":"` + strings.Repeat("x", size) + `"}`), Text: text})
	if err != nil {
		b.Fatal(err)
	}
}

func TestNoMessageIsTooLarge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		granted := b.hooked(hook)
		b.emitNote(200_000, "a text that fits")
		synctest.Wait()
		b.emitNote(261_800, strings.Repeat("y", 4000))
		synctest.Wait()
		b.emitNote(262_090, "a text")
		synctest.Wait()
		sent := b.hooks.deliveries()
		if len(sent) != 3 {
			t.Fatalf("sent %d messages", len(sent))
		}
		for _, one := range sent {
			if len(one.Body) > 262_144 {
				t.Errorf("a message has %d bytes", len(one.Body))
			}
		}
		if b.body(sent[0]).Meta == nil || b.body(sent[1]).Meta != nil {
			t.Error("the text is left out exactly where it is too much")
		}
		gap := b.body(sent[2])
		if gap.Type != "gap" || len(b.poll(&gap.Cursor).Events) != 0 || !strings.HasPrefix(sent[2].ID, "msg_gap_") {
			t.Errorf("sent %s as %s", sent[2].Body[:min(len(sent[2].Body), 200)], sent[2].ID)
		}
		var got []string
		for _, a := range b.attempts(granted.ID) {
			got = append(got, fmt.Sprintf("%s %s %s %d", a.Kind, a.Outcome, a.Reason, a.Status))
		}
		if diff := cmp.Diff([]string{" delivered  0", " delivered  0", " abandoned too_large 0", "gap delivered  0"}, got); diff != "" {
			t.Error(diff)
		}
		if status := b.hooked(hook).Status; status.LastError != "" {
			t.Errorf("the endpoint is blamed: %+v", status)
		}
	})
}

func TestRetriesSurviveARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		granted := b.hooked(hook)
		b.answers(always(fault))
		b.site("s", "1")
		time.Sleep(20 * time.Second)
		before := len(b.hooks.deliveries())
		b.restart()
		time.Sleep(time.Hour)
		var numbers []int
		for _, a := range b.attempts(granted.ID) {
			numbers = append(numbers, a.Number)
		}
		if diff := cmp.Diff([]int{1, 2, 3, 4, 5}, numbers); diff != "" || before != 3 {
			t.Errorf("%d attempts before the restart; %s", before, diff)
		}
	})
}

// An attempt that the core's end broke off is made again at once by the next one, and was none.
func TestAnAttemptThatWasBrokenOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.hooked(hook)
		b.hooks.fail(noReply)
		b.hooks.pauses = []time.Duration{5 * time.Second}
		b.site("s", "1")
		synctest.Wait()
		b.restart()
		synctest.Wait()
		sent := b.hooks.deliveries()
		if len(sent) != 2 || sent[0].Body != sent[1].Body {
			t.Errorf("sent %+v", sent)
		}
		if status := b.hooked(hook).Status; status.LastError != "" {
			t.Errorf("it counts: %+v", status)
		}
	})
}

func TestAnEndpointThatAsksForTimeGetsNothingMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		granted := b.hooked(hook)
		b.hooks.fail(core.HookResult{Retry: true, Status: 429, Reason: "http_4xx", RetryAfter: 10 * time.Minute})
		b.site("s", "1")
		synctest.Wait()
		b.site("s", "2")
		time.Sleep(5 * time.Minute)
		if n := len(b.hooks.deliveries()); n != 1 {
			t.Errorf("%d attempts meanwhile", n)
		}
		status := b.hooked(hook).Status
		if !status.Active || !status.Throttled || status.RetryAfter.Round(time.Minute) != 5*time.Minute {
			t.Errorf("status %+v", status)
		}
		time.Sleep(6 * time.Minute)
		numbers := map[wake.Seq]int{}
		for _, a := range b.attempts(granted.ID) {
			numbers[a.Seq] = max(numbers[a.Seq], a.Number)
		}
		if n := len(b.hooks.deliveries()); n != 3 || len(numbers) != 2 {
			t.Errorf("%d attempts, %v", n, numbers)
		}
		if status := b.hooked(hook).Status; status.Throttled || status.LastError != "" {
			t.Errorf("status after it %+v", status)
		}
	})
}

// A host that does not answer is left alone for a while: what waits for it loses none of its attempts.
func TestADeadHostIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		const dead, well = "https://dead.test/x", "https://well.test/x"
		granted := b.hooked(at(dead))
		b.hooked(at(well))
		b.answers(func(url string) core.HookResult {
			if url == dead {
				return noReply
			}
			return taken
		})
		for range 20 {
			b.site("s", "1")
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Minute)
		tried := len(b.to(dead))
		if tried > 15 || len(b.to(well)) != 20 {
			t.Errorf("%d attempts at the dead one, %d at the other", tried, len(b.to(well)))
		}
		b.answers(always(taken))
		time.Sleep(10 * time.Minute)
		delivered, most := 0, 0
		for _, a := range b.attempts(granted.ID) {
			if a.Outcome == wake.AttemptDelivered {
				delivered++
				most = max(most, a.Number)
			}
		}
		if delivered != 20 || most > 5 {
			t.Errorf("%d of 20 were delivered, at the %dth attempt the last", delivered, most)
		}
		if got := len(b.attempts(granted.ID)); got != len(b.to(dead)) {
			t.Errorf("%d attempts are kept, %d were made", got, len(b.to(dead)))
		}
	})
}

// Hosts that keep every attempt waiting until it times out do not slow the others.
func TestDeadHostsSlowNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withLimits(core.Limits{}))
		const dead, well = 300, 20
		for i := range dead + well {
			b.hooked(at(fmt.Sprintf("https://%s%d.test/", map[bool]string{true: "dead", false: "well"}[i < dead], i)))
		}
		b.answers(func(url string) core.HookResult {
			if strings.Contains(url, "dead") {
				time.Sleep(10 * time.Second)
				return noReply
			}
			return taken
		})
		for i := range 10 {
			b.site("s", "1")
			time.Sleep(time.Second)
			synctest.Wait()
			got := 0
			for n := range well {
				got += len(b.to(fmt.Sprintf("https://well%d.test/", dead+n)))
			}
			if got != well*(i+1) {
				t.Errorf("a second after %d events %d of %d deliveries were made", i+1, got, well*(i+1))
			}
		}
	})
}

func TestAnEndpointThatAlwaysFailsIsSuspended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		granted := b.hooked(hook)
		b.answers(always(core.HookResult{Status: 410, Reason: "http_4xx"}))
		for range 120 {
			b.site("s", "1")
			time.Sleep(time.Second)
		}
		if n := len(b.hooks.deliveries()); n != 100 {
			t.Errorf("%d attempts, want 100 and then none", n)
		}
		if got, err := b.core.Subscription(t.Context(), b.app, granted.ID); err != nil || got.Status != core.StatusSuspended {
			t.Errorf("%+v, %v", got, err)
		}
		b.answers(always(taken))
		if status := b.hooked(hook).Status; status.Active || status.LastError != "http_4xx" {
			t.Errorf("status %+v", status)
		}
		synctest.Wait()
		if n := len(b.hooks.deliveries()); n != 120 {
			t.Errorf("%d attempts once it was refreshed, want what waited at once", n)
		}
		if status := b.hooked(hook).Status; !status.Active || status.LastError != "" {
			t.Errorf("status after it %+v", status)
		}
	})
}

// A few failures among many are no reason.
func TestAnEndpointThatSometimesFailsIsNotSuspended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		granted := b.hooked(hook)
		var n atomic.Int64
		b.answers(func(string) core.HookResult {
			if n.Add(1)%10 == 0 {
				return taken
			}
			return core.HookResult{Status: 410, Reason: "http_4xx"}
		})
		for range 150 {
			b.site("s", "1")
			synctest.Wait()
		}
		if got, err := b.core.Subscription(t.Context(), b.app, granted.ID); err != nil || got.Status != core.StatusActive {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestAQueueIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	granted := b.hooked(hook)
	b.update(func(tx store.Tx) error {
		w, err := tx.Webhook(granted.ID)
		if err != nil {
			return err
		}
		w.Suspended, w.SuspendedAt = true, time.Now()
		if err := tx.PutWebhook(w); err != nil {
			return err
		}
		for range 10_005 {
			seq, err := tx.Append(wake.Occurrence{App: b.app.ID, Kind: wake.KindEvent, Event: "site.updated", Topics: []string{w.Topic},
				Data: json.RawMessage(`{"pages":1}`), At: time.Now()})
			if err != nil {
				return err
			}
			if err := tx.QueueDelivery(wake.Delivery{Webhook: w.ID, Seq: seq, NextAt: time.Now()}); err != nil {
				return err
			}
		}
		return nil
	})
	if err := b.core.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.update(func(tx store.Tx) error {
		over, err := tx.Overfull(9_999, 10)
		if len(over) != 1 {
			t.Errorf("%q have 10,000 and more, want the one", over)
		}
		more, err2 := tx.Overfull(10_000, 10)
		if len(more) != 0 {
			t.Errorf("%q have more than 10,000", more)
		}
		if err == nil {
			err = err2
		}
		return err
	})
}
