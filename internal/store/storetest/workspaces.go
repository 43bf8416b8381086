package storetest

import (
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

func testWorkspaces(s *suite) {
	app, other := s.addApp(), s.addApp()
	w := wake.Workspace{ID: "ws_1", App: app.ID, User: "ada", Name: "Ada's 日本", CreatedAt: start}
	theirs := wake.Workspace{ID: "ws_2", App: other.ID, User: "ada"}
	g := wake.Grant{ID: "grant_1", Workspace: w.ID, Agent: "codex", DisplayName: "Codex", CreatedAt: start}
	s.change(func(t store.Tx) error {
		return do(
			func() error { return t.CreateWorkspace(w) },
			func() error { return t.CreateWorkspace(theirs) },
			func() error { return t.CreateGrant(g) },
			func() error { return t.CreateGrant(wake.Grant{ID: "grant_2", Workspace: w.ID, Agent: "cursor"}) },
		)
	}, func(r store.Reader) {
		s.same("by id", w, got[wake.Workspace](s)(r.Workspace(w.ID)))
		s.same("of a user", w, got[wake.Workspace](s)(r.WorkspaceOf(app.ID, "ada")))
		s.same("of the other app's", theirs, got[wake.Workspace](s)(r.WorkspaceOf(other.ID, "ada")))
		s.is("of nobody", store.ErrNotFound, fails(r.WorkspaceOf(app.ID, "bob")))
		s.is("none", store.ErrNotFound, fails(r.Workspace("ws_3")))
		s.same("counted", 1, got[int](s)(r.CountWorkspaces(app.ID)))
		s.same("a grant", g, got[wake.Grant](s)(r.Grant(w.ID, "codex")))
		s.is("another agent's", store.ErrNotFound, fails(r.Grant(w.ID, "goose")))
		s.is("in another workspace", store.ErrNotFound, fails(r.Grant(theirs.ID, "codex")))
		s.same("grants counted", 2, got[int](s)(r.CountGrants(w.ID)))
		s.same("grants of another", 0, got[int](s)(r.CountGrants(theirs.ID)))
	})
	for what, write := range map[string]func(store.Tx) error{
		"the id of a workspace": func(t store.Tx) error { return t.CreateWorkspace(wake.Workspace{ID: w.ID, App: app.ID, User: "bob"}) },
		"a user's workspace":    func(t store.Tx) error { return t.CreateWorkspace(wake.Workspace{ID: "ws_3", App: app.ID, User: "ada"}) },
		"the id of a grant":     func(t store.Tx) error { return t.CreateGrant(wake.Grant{ID: g.ID, Workspace: w.ID, Agent: "goose"}) },
		"an agent's grant": func(t store.Tx) error {
			return t.CreateGrant(wake.Grant{ID: "grant_3", Workspace: w.ID, Agent: "codex"})
		},
	} {
		s.is(what+" again", store.ErrExists, s.Update(s.Context(), write))
	}
	for what, write := range map[string]func(store.Tx) error{
		"a workspace": func(t store.Tx) error { return t.CreateWorkspace(wake.Workspace{ID: "ws_4", App: "none", User: "ada"}) },
		"a grant":     func(t store.Tx) error { return t.CreateGrant(wake.Grant{ID: "grant_4", Workspace: "none", Agent: "x"}) },
	} {
		s.is(what+" of what is not there", store.ErrNotFound, s.Update(s.Context(), write))
	}
	s.reopen()
	s.change(func(t store.Tx) error {
		s.same("was there", true, got[bool](s)(t.DeleteWorkspace(w.ID)))
		s.same("again", false, got[bool](s)(t.DeleteWorkspace(w.ID)))
		return nil
	}, func(r store.Reader) {
		s.is("deleted", store.ErrNotFound, fails(r.WorkspaceOf(app.ID, "ada")))
		s.is("its grant", store.ErrNotFound, fails(r.Grant(w.ID, "codex")))
		s.same("the other app's", theirs, got[wake.Workspace](s)(r.Workspace(theirs.ID)))
	})
	s.change(func(t store.Tx) error { return t.DeleteApp(other.ID) }, func(r store.Reader) {
		s.is("of a deleted app", store.ErrNotFound, fails(r.Workspace(theirs.ID)))
	})
}
