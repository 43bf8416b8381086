package group

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/store"
)

// A seer is a ledger that is told what updates will ask.
type seer struct {
	*ledger
	told []string
	err  error
}

func (s *seer) Foresee(topics []store.Topics) error {
	var names []string
	for _, t := range topics {
		names = append(names, t.App+"/"+strings.Join(t.Topics, "+"))
	}
	s.told = append(s.told, strings.Join(names, " "))
	return s.err
}

func TestForesee(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		topics []string // of the updates that share a transaction; empty for one that says none
		err    error
		want   []string
	}{
		"nobody says anything":  {[]string{"", ""}, nil, nil},
		"one alone":             {[]string{"", "a"}, nil, nil},
		"all of a transaction":  {[]string{"a", "", "b", "a"}, nil, []string{"app/a app/b app/a"}},
		"when it cannot be had": {[]string{"a", "b"}, errOnPurpose, []string{"app/a app/b"}}, // and then each by itself
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db := &seer{ledger: &ledger{}, err: test.err}
				w := New(db, Options{})
				release := hold(t, w)
				var ends []<-chan error
				for _, topic := range test.topics {
					ends = append(ends, startCall(t, func() error {
						ctx := t.Context()
						if topic != "" {
							ctx = store.WithTopics(ctx, "app", []string{topic})
						}
						return w.Update(ctx, write("word", nil))
					}))
				}
				release()
				for _, end := range ends {
					is(t, "an update", end, nil)
				}
				if got := len(db.words()); got != len(test.topics) {
					t.Errorf("%d updates were kept, want %d", got, len(test.topics))
				}
				w.Close()
				if diff := cmp.Diff(test.want, db.told); diff != "" {
					t.Errorf("foreseen (-want +got):\n%s", diff)
				}
			})
		})
	}
}
