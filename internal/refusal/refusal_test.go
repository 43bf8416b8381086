package refusal_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/refusal"
)

func TestTheCatalogueIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[refusal.Code]bool{}
	for _, e := range refusal.All() {
		if seen[e.Code] {
			t.Errorf("%s is there twice", e.Code)
		}
		seen[e.Code] = true
		if e.Status < 400 || e.Status > 599 || e.Meaning == "" || e.Advice == "" {
			t.Errorf("%s lacks something: %+v", e.Code, e)
		}
		if got := refusal.Lookup(e.Code); got != e {
			t.Errorf("looking up %s finds %+v", e.Code, got)
		}
	}
	if got := refusal.Lookup("no_such_code"); got.Code != refusal.Internal {
		t.Errorf("an unknown code is taken for %s", got.Code)
	}
}

func TestARefusalIsFoundInsideOtherErrors(t *testing.T) {
	t.Parallel()
	no := refusal.New(refusal.BadRequest, "field %s: at most %d", "name", 7)
	wrapped := fmt.Errorf("doing it: %w", no)
	if refusal.Of(wrapped) != no || !refusal.Is(wrapped, refusal.BadRequest) || refusal.Is(wrapped, refusal.Gone) {
		t.Errorf("%v", wrapped)
	}
	if refusal.Of(errors.New("a fault")) != nil || refusal.Of(nil) != nil {
		t.Error("a fault is taken for a refusal")
	}
	if no.Error() != "bad_request: field name: at most 7" || no.Status() != 400 {
		t.Errorf("%v, %d", no, no.Status())
	}
}

func TestWithReasonLeavesTheOriginal(t *testing.T) {
	t.Parallel()
	no := refusal.New(refusal.CallbackFailed, "no")
	no.RetryAfter = time.Second
	with := no.WithReason("timeout")
	if no.Reason != "" || with.Reason != "timeout" || with.RetryAfter != time.Second {
		t.Errorf("%+v, %+v", no, with)
	}
}
