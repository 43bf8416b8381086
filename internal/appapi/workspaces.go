package appapi

import "context"

func workspace(ctx context.Context, r *request) (any, error) {
	var body struct {
		ExternalID *string `json:"external_id"`
		Name       string  `json:"name"`
	}
	if err := r.read(&body); err != nil {
		return nil, err
	}
	if body.ExternalID == nil {
		return nil, missing("external_id")
	}
	kept, err := r.core.Workspace(ctx, r.caller.App, *body.ExternalID, body.Name)
	return object{"workspace": kept.ID}, err
}

func addAgent(ctx context.Context, r *request) (any, error) {
	var body struct {
		Agent       *string `json:"agent"`
		DisplayName string  `json:"display_name"`
	}
	if err := r.read(&body); err != nil {
		return nil, err
	}
	if body.Agent == nil {
		return nil, missing("agent")
	}
	g, err := r.core.AddAgent(ctx, r.caller.App, r.http.PathValue("workspace"), *body.Agent, body.DisplayName)
	return object{"grant": g.ID}, err
}

// agentGrant says that an agent's grant is there. The public SDK asks that and no more; no token is made that nothing would take.
func agentGrant(ctx context.Context, r *request) (any, error) {
	g, err := r.core.Grant(ctx, r.caller.App, r.http.PathValue("workspace"), r.http.PathValue("agent"))
	return object{"grant": g.ID, "workspace": g.Workspace, "agent": g.Agent, "display_name": g.DisplayName}, err
}
