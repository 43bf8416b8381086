package appapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A faulty response is one that the client does not get, or goes away after.
type faulty struct {
	*httptest.ResponseRecorder
	write, flush error
	written      func()
}

func (w *faulty) Write(p []byte) (int, error) {
	if w.write != nil {
		return 0, w.write
	}
	n, err := w.ResponseRecorder.Write(p)
	if w.written != nil {
		w.written()
	}
	return n, err
}

func (w *faulty) FlushError() error { return w.flush }

// unflushed hides that a response can be flushed.
type unflushed struct{ http.ResponseWriter }

// Held messages ride on an answer. Only one that was written whole hands them over: what may be lost comes with the next.
func TestHeldMessagesCountOnceTheyAreWritten(t *testing.T) {
	t.Parallel()
	l := setup(t)
	broken := errors.New("connection reset by peer")
	made := l.app.post(t, "/event-subscriptions", subscribeJob(`"client":"Cursor"`, "j"))
	call := `"client":"Cursor","session":"` + made["session"].(string) + `"`
	bodies := map[string]string{
		"/topics/annotate":     `{"call":{` + call + `}}`,
		"/event-subscriptions": subscribeJob(call, "j"),
		"/topics/subscribe":    `{"call":{` + call + `},"topic":"x"}`,
	}
	ask := func(ctx context.Context, path string, w http.ResponseWriter) {
		l.api.ServeHTTP(w, l.app.request(t, ctx, http.MethodPost, path, strings.NewReader(bodies[path])))
	}
	for path := range bodies {
		l.app.post(t, "/events/emit", emitJob("j", "it rains"))
		ask(t.Context(), path, &faulty{ResponseRecorder: httptest.NewRecorder(), write: broken})
		ask(t.Context(), path, &faulty{ResponseRecorder: httptest.NewRecorder(), flush: broken})
		ask(t.Context(), path, unflushed{httptest.NewRecorder()})

		// The client may well go the moment it has everything.
		ctx, leave := context.WithCancel(t.Context())
		good := httptest.NewRecorder()
		ask(ctx, path, &faulty{ResponseRecorder: good, written: leave})
		leave()
		if !strings.Contains(good.Body.String(), "it rains") {
			t.Errorf("%s: what was not written did not come again: %s", path, good.Body)
		}
		after := httptest.NewRecorder()
		ask(t.Context(), path, after)
		if strings.Contains(after.Body.String(), "it rains") {
			t.Errorf("%s: what was written came again: %s", path, after.Body)
		}
	}
}
