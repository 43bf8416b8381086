package core

import (
	"context"
	"time"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// forgottenTopic is where native streams, at whatever node, find who was forgotten: under pseudonyms, since nothing of the
// user is to be kept.
const forgottenTopic = wake.ReservedTopicPrefix + "forgotten"

// forgottenNotice is what is written when a user is forgotten.
func (c *Core) forgottenNotice(who store.Person) wake.Occurrence {
	return wake.Occurrence{App: who.App, Kind: wake.KindForgotten, Topics: []string{forgottenTopic}, Text: c.pseudonym(who), At: now()}
}

func (c *Core) pseudonym(who store.Person) string {
	return c.master.Pseudonym(who.App + "/" + who.User)
}

// userForgotten notes that a user may have been forgotten. The bus calls it.
func (s *NativeStreams) userForgotten() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgot = true
	s.signal()
}

// endForgotten ends the streams of users who were forgotten since it was last asked: when it was hinted at, and as often as a
// stream beats.
func (s *NativeStreams) endForgotten(ctx context.Context) {
	at := time.Now()
	s.mu.Lock()
	after, due := s.knows, s.forgot || at.Sub(s.asked) >= beatEvery
	if len(s.streams) == 0 || !due || at.Before(s.reading) {
		s.mu.Unlock()
		return
	}
	s.forgot, s.asked = false, at
	s.mu.Unlock()
	found, err := s.readForgotten(ctx, after)
	s.learn(ctx, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.forgot = true
		return
	}
	s.forgot = s.forgot || found.more
	if s.knows == after { // or a stream was added that needs an earlier one
		s.knows = found.through
	}
	if len(found.occurrences) == 0 {
		return
	}
	places := map[string]wake.Seq{}
	for _, o := range found.occurrences {
		places[o.Text] = o.Seq
	}
	for _, st := range s.streams {
		if user := st.native.Call.User; user != "" && places[s.core.pseudonym(store.Person{App: s.app.ID, User: user})] > st.opened {
			s.end(st, refusal.New(refusal.Forbidden, "the app has forgotten its user").With("reason", "forgotten"))
		}
	}
}

// readForgotten reads who was forgotten after a place.
func (s *NativeStreams) readForgotten(ctx context.Context, after wake.Seq) (found owed, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	err = s.core.store.View(ctx, func(r store.Reader) error {
		log, err := r.Log()
		if err != nil {
			return err
		}
		found, err = readLog(r, s.app.ID, []string{forgottenTopic}, stretch{max(after, log.Horizon), log.Head}, streamPage,
			func(wake.Occurrence) bool { return true })
		return err
	})
	return found, err
}
