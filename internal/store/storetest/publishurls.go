package storetest

import (
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

func testPublishURLs(s *suite) {
	app, other := s.addApp(), s.addApp()
	full := wake.PublishURL{ID: "full", App: app.ID, Event: "a", Arguments: []byte(`{"n":1.0}`), To: "ada", Topic: "t",
		CreatedAt: start, RevokedAt: start.Add(time.Hour)}
	bare := wake.PublishURL{ID: "bare", App: app.ID}
	s.change(func(t store.Tx) error {
		return do(
			func() error { return t.PutPublishURL(full) },
			func() error { return t.PutPublishURL(bare) },
			func() error { return t.PutPublishURL(wake.PublishURL{ID: "elsewhere", App: other.ID}) },
		)
	}, func(r store.Reader) {
		s.same("with everything", full, got[wake.PublishURL](s)(r.PublishURL("full")))
		s.same("with nothing", bare, got[wake.PublishURL](s)(r.PublishURL("bare")))
		s.is("none", store.ErrNotFound, fails(r.PublishURL("other")))
		s.same("those not revoked", 1, got[int](s)(r.CountPublishURLs(app.ID)))
	})
	replaced := bare
	replaced.RevokedAt = start.Add(time.Minute)
	s.change(func(t store.Tx) error { return t.PutPublishURL(replaced) }, func(r store.Reader) {
		s.same("replaced", replaced, got[wake.PublishURL](s)(r.PublishURL("bare")))
		s.same("none that is not revoked", 0, got[int](s)(r.CountPublishURLs(app.ID)))
	})
	s.change(func(t store.Tx) error { return t.DeleteApp(app.ID) }, func(r store.Reader) {
		s.is("of a deleted app", store.ErrNotFound, fails(r.PublishURL("full")))
		s.same("of another app", 1, got[int](s)(r.CountPublishURLs(other.ID)))
	})
}
