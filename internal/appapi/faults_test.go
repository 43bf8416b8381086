package appapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rouse-dev/rouse/internal/appapi"
	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/store"
)

// A failing store fails to write once it is told with what.
type failing struct {
	store.Store
	with atomic.Pointer[error]
}

func (s *failing) Update(ctx context.Context, f func(store.Tx) error) error {
	if err := s.with.Load(); err != nil {
		return *err
	}
	return s.Store.Update(ctx, f)
}

func TestFaultsAreLoggedAndNotTold(t *testing.T) {
	t.Parallel()
	broken := &failing{}
	l := setup(t, func(o *core.Options) {
		broken.Store = o.Store
		o.Store = broken
	})
	for name, c := range map[string]struct {
		err    error
		says   string
		logged bool
	}{
		"a fault":     {errors.New("page 7 is torn"), "internal: the core failed; its log says why", true},
		"a full disk": {fmt.Errorf("%w: /var/lib/rouse", store.ErrFull), "unavailable: the core cannot write now: try again later", false},
		"stopping":    {store.ErrClosed, "unavailable: the core cannot write now: try again later", false},
	} {
		var log bytes.Buffer
		api := appapi.New(l.Core, appapi.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		broken.with.Store(&c.err)
		got := answered(api, l.app.request(t, t.Context(), http.MethodPost, "/events/emit", strings.NewReader(emitJob("job-7", "a secret text"))))
		if says := got.says(t); says != c.says {
			t.Errorf("%s: %s", name, says)
		}
		if logged := strings.Contains(log.String(), c.err.Error()); logged != c.logged {
			t.Errorf("%s: logged %q", name, log.String())
		}
		for _, private := range []string{"secret", "job-7", "eyJ"} {
			if strings.Contains(log.String(), private) {
				t.Errorf("%s: the log holds %q: %s", name, private, log.String())
			}
		}
	}
	broken.with.Store(nil)
	l.app.post(t, "/events/emit", emitJob("j", "t"))
}

// A request whose context has ended may have its client still, when it is the core that is stopping.
func TestARequestThatEndedIsNoSuccess(t *testing.T) {
	t.Parallel()
	l := setup(t)
	ctx, end := context.WithCancel(t.Context())
	end()
	got := answered(l.api, l.app.request(t, ctx, http.MethodPost, "/events/emit", strings.NewReader(emitJob("j", "t"))))
	if says := got.says(t); says != "unavailable: the request ended before it was answered" {
		t.Error(says)
	}
}
