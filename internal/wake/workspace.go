package wake

import "time"

// A Workspace is what an app keeps for one of its users: the agents that may act there.
type Workspace struct {
	ID        string
	App       string
	User      string // the app's own id for the person; an app has one workspace for each
	Name      string // as the app wrote it
	CreatedAt time.Time
}

// A Grant lets one agent into a workspace.
type Grant struct {
	ID          string
	Workspace   string
	Agent       string // as the app names it; a workspace has one grant for each
	DisplayName string
	CreatedAt   time.Time
}
