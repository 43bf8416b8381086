package core

import (
	"context"
	"errors"
	"unicode/utf8"

	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// Workspace returns the workspace of one of the app's users, which is made when there is none. name is kept when it is made.
func (c *Core) Workspace(ctx context.Context, app wake.App, user, name string) (wake.Workspace, error) {
	if err := wake.CheckUser("external_id", user); err != nil {
		return wake.Workspace{}, err
	}
	if err := wake.CheckString("name", name, wake.MaxName); err != nil {
		return wake.Workspace{}, err
	}
	var kept wake.Workspace
	made := wake.Workspace{ID: "ws_" + credential.NewID(), App: app.ID, User: user, Name: name, CreatedAt: now()}
	err := c.store.Update(ctx, func(tx store.Tx) (err error) {
		if kept, err = tx.WorkspaceOf(app.ID, user); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		count, err := tx.CountWorkspaces(app.ID)
		if err != nil {
			return err
		}
		if count >= wake.MaxWorkspaces {
			return refusal.New(refusal.WorkspaceLimit, "this app has %d workspaces, the most allowed", count)
		}
		kept = made
		return tx.CreateWorkspace(made)
	})
	return kept, fault(err)
}

// AddAgent lets an agent into a workspace of the app and returns its grant, the one there is when it was let in before.
func (c *Core) AddAgent(ctx context.Context, app wake.App, workspace, agent, displayName string) (wake.Grant, error) {
	if agent == "" {
		return wake.Grant{}, refusal.New(refusal.BadRequest, "agent: must not be empty")
	}
	if err := wake.CheckString("agent", agent, wake.MaxAgent); err != nil {
		return wake.Grant{}, err
	}
	if err := wake.CheckString("display_name", displayName, wake.MaxName); err != nil {
		return wake.Grant{}, err
	}
	var kept wake.Grant
	made := wake.Grant{ID: "grant_" + credential.NewID(), Workspace: workspace, Agent: agent, DisplayName: displayName, CreatedAt: now()}
	err := c.store.Update(ctx, func(tx store.Tx) (err error) {
		if err := ownWorkspace(tx, app, workspace); err != nil {
			return err
		}
		if kept, err = tx.Grant(workspace, agent); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		count, err := tx.CountGrants(workspace)
		if err != nil {
			return err
		}
		if count >= wake.MaxGrants {
			return refusal.New(refusal.WorkspaceLimit, "this workspace has %d agents, the most allowed", count)
		}
		kept = made
		return tx.CreateGrant(made)
	})
	return kept, fault(err)
}

// Grant is the grant that lets an agent into a workspace of the app.
func (c *Core) Grant(ctx context.Context, app wake.App, workspace, agent string) (wake.Grant, error) {
	var g wake.Grant
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		if err := ownWorkspace(r, app, workspace); err != nil {
			return err
		}
		if wake.CheckString("agent", agent, wake.MaxAgent) != nil || !utf8.ValidString(agent) {
			return store.ErrNotFound
		}
		g, err = r.Grant(workspace, agent)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return g, refusal.New(refusal.NoGrant, "the workspace has no grant for the agent %s", wake.Quote(agent))
	}
	return g, fault(err)
}

// ownWorkspace refuses a workspace that is not the app's, as it does one that nobody has.
func ownWorkspace(r store.Reader, app wake.App, id string) error {
	unknown := refusal.New(refusal.UnknownWorkspace, "the app has no workspace %s", wake.Quote(id))
	if !wake.CouldBeID(id) {
		return unknown
	}
	w, err := r.Workspace(id)
	if errors.Is(err, store.ErrNotFound) || err == nil && w.App != app.ID {
		return unknown
	}
	return err
}
