package core_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/store"
)

// An interrupted store does something else in the middle of its next view: after the view's snapshot, before anything is read.
type interrupted struct {
	store.Store
	by func()
}

func (s *interrupted) View(ctx context.Context, f func(store.Reader) error) error {
	return s.Store.View(ctx, func(r store.Reader) error {
		if by := s.by; by != nil {
			s.by = nil
			by()
		}
		return f(r)
	})
}

// What happens after an inbox's snapshot and before it watches its topics is hinted at nobody, so the inbox must read again.
func TestNothingIsMissedBetweenReadingAndWatching(t *testing.T) {
	t.Parallel()
	s := &interrupted{}
	b := setup(t, func(o *core.Options) {
		s.Store = o.Store
		o.Store = s
	})
	in := b.inbox(b.subscribe(claude, "j1"))
	b.emit("other", "1") // so that the manifest is known, and emitting views nothing
	s.by = func() { b.emit("j1", "1") }
	got := b.read(in)
	select {
	case <-in.Changed():
		got = append(got, b.read(in)...)
	default:
	}
	if diff := cmp.Diff([]string{"j1 has 1"}, got); diff != "" {
		t.Error(diff)
	}
}
