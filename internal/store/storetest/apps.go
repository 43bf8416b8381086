package storetest

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

func testApps(s *suite) {
	b := wake.App{ID: "b", Name: "Second letter, first made <&>", CreatedAt: start}
	a := wake.App{ID: "a", Name: "日本", CreatedAt: start.Add(-time.Hour)}
	s.check(func(r store.Reader) {
		s.same("apps at first", []wake.App{}, got[[]wake.App](s)(r.Apps()))
		s.is("no app", store.ErrNotFound, fails(r.App("a")))
	})
	s.change(func(t store.Tx) error {
		return do(
			func() error { return t.CreateApp(b) },
			func() error { return t.CreateApp(a) },
		)
	}, func(r store.Reader) {
		s.same("apps in the order of creation", []wake.App{b, a}, got[[]wake.App](s)(r.Apps()))
		s.same("an app", a, got[wake.App](s)(r.App("a")))
	})
	s.change(func(t store.Tx) error {
		s.is("the same id again", store.ErrExists, t.CreateApp(wake.App{ID: "a", Name: "Other", CreatedAt: start}))
		s.is("deleting what is not there", store.ErrNotFound, t.DeleteApp("c"))
		return nil
	}, func(r store.Reader) {
		s.same("the app as it was", a, got[wake.App](s)(r.App("a")))
	})
}

func testKeys(s *suite) {
	app, other := s.addApp(), s.addApp()
	public := bytes.Repeat([]byte{0, 1, 0xff, 7}, 8)
	first := wake.Key{ID: "z", App: app.ID, Name: "laptop", Public: public, CreatedAt: start}
	second := wake.Key{ID: "y", App: app.ID, Name: "server", Public: public, CreatedAt: start}
	s.change(func(t store.Tx) error {
		return do(
			func() error { return t.CreateKey(first) },
			func() error { return t.CreateKey(second) },
		)
	}, func(r store.Reader) {
		s.same("keys", []wake.Key{first, second}, got[[]wake.Key](s)(r.Keys(app.ID)))
		s.same("a key", second, got[wake.Key](s)(r.Key("y")))
		s.same("keys of another app", []wake.Key{}, got[[]wake.Key](s)(r.Keys(other.ID)))
		s.is("no key", store.ErrNotFound, fails(r.Key("x")))
	})

	taken := second
	taken.App = other.ID
	revoked := first
	revoked.RevokedAt = start.Add(time.Minute)
	s.change(func(t store.Tx) error {
		s.is("the id of another app's key", store.ErrExists, t.CreateKey(taken))
		s.is("revoking another app's key", store.ErrNotFound, t.RevokeKey(other.ID, first.ID, start))
		s.is("revoking no key", store.ErrNotFound, t.RevokeKey(app.ID, "x", start))
		return do(
			func() error { return t.RevokeKey(app.ID, first.ID, revoked.RevokedAt) },
			func() error { return t.RevokeKey(app.ID, first.ID, start.Add(time.Hour)) },
		)
	}, func(r store.Reader) {
		s.same("the revoked key", revoked, got[wake.Key](s)(r.Key(first.ID)))
		s.same("keys", []wake.Key{revoked, second}, got[[]wake.Key](s)(r.Keys(app.ID)))
	})
}

func testManifests(s *suite) {
	app, other := s.addApp(), s.addApp()
	version := func(r store.Reader, app string) int64 { return got[int64](s)(r.ManifestVersion(app)) }
	s.check(func(r store.Reader) {
		s.same("no manifest", store.Manifest{}, got[store.Manifest](s)(r.Manifest(app.ID)))
		s.same("no version", int64(0), version(r, app.ID))
	})

	var first, second, others int64
	body := json.RawMessage(`{"events":[{"name":"a<b"}],"n":1e400}`)
	s.change(func(t store.Tx) error {
		first = got[int64](s)(t.PutManifest(app.ID, json.RawMessage(`{}`)))
		others = got[int64](s)(t.PutManifest(other.ID, json.RawMessage(`{"other":true}`)))
		second = got[int64](s)(t.PutManifest(app.ID, body))
		return nil
	}, func(r store.Reader) {
		s.same("the manifest, byte for byte", store.Manifest{Version: second, Body: body}, got[store.Manifest](s)(r.Manifest(app.ID)))
		s.same("its version", second, version(r, app.ID))
		s.same("another app's version", others, version(r, other.ID))
	})
	if first <= 0 || second <= first {
		s.Errorf("versions of an app: %d, then %d; want them to grow", first, second)
	}

	// An app made anew must not be mistaken for the old one by who remembers a version.
	s.change(func(t store.Tx) error {
		return do(
			func() error { return t.DeleteApp(app.ID) },
			func() error { return t.CreateApp(app) },
		)
	}, func(r store.Reader) {
		s.same("version of the app made anew", int64(0), version(r, app.ID))
	})
	s.update(func(t store.Tx) error {
		if again := got[int64](s)(t.PutManifest(app.ID, body)); again <= second {
			s.Errorf("version %d of the app made anew, want one after %d", again, second)
		}
		return nil
	})
}
