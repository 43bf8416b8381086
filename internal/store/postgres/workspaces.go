package postgres

import (
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

func toWorkspace(r queries.Workspace) wake.Workspace {
	return wake.Workspace{ID: r.ID, App: r.App, User: r.UserID, Name: r.Name, CreatedAt: fromMicros(r.CreatedAt)}
}

func (r *reader) Workspace(id string) (wake.Workspace, error) {
	row, err := r.q.Workspace(background, id)
	return toWorkspace(row), r.fault(err)
}

func (r *reader) WorkspaceOf(app, user string) (wake.Workspace, error) {
	row, err := r.q.WorkspaceOf(background, queries.WorkspaceOfParams{App: app, UserID: user})
	return toWorkspace(row), r.fault(err)
}

func (r *reader) CountWorkspaces(app string) (int, error) {
	n, err := r.q.CountWorkspaces(background, app)
	return int(n), r.fault(err)
}

func (r *reader) Grant(workspace, agent string) (wake.Grant, error) {
	row, err := r.q.Grant(background, queries.GrantParams{Workspace: workspace, Agent: agent})
	return wake.Grant{
		ID: row.ID, Workspace: row.Workspace, Agent: row.Agent, DisplayName: row.DisplayName, CreatedAt: fromMicros(row.CreatedAt),
	}, r.fault(err)
}

func (r *reader) CountGrants(workspace string) (int, error) {
	n, err := r.q.CountGrants(background, workspace)
	return int(n), r.fault(err)
}

func (t *tx) CreateWorkspace(w wake.Workspace) error {
	if err := t.needApp(w.App); err != nil {
		return err
	}
	return t.created(t.q.CreateWorkspace(background, queries.CreateWorkspaceParams{
		ID: w.ID, App: w.App, UserID: w.User, Name: w.Name, CreatedAt: micros(w.CreatedAt),
	}))
}

func (t *tx) CreateGrant(g wake.Grant) error {
	if _, err := t.Workspace(g.Workspace); err != nil {
		return err
	}
	return t.created(t.q.CreateGrant(background, queries.CreateGrantParams{
		ID: g.ID, Workspace: g.Workspace, Agent: g.Agent, DisplayName: g.DisplayName, CreatedAt: micros(g.CreatedAt),
	}))
}

func (t *tx) DeleteWorkspace(id string) (bool, error) {
	return t.changedRows(t.q.DeleteWorkspace(background, id))
}
