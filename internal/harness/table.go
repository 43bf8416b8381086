package harness

import (
	"strings"

	"github.com/rouse-dev/rouse/internal/wake"
)

// A Path is how a harness can be reached.
type Path string

const (
	PathMonitor   Path = "monitor"   // a command whose every line wakes the agent
	PathConnector Path = "connector" // a program beside the harness that holds a WebSocket
	PathVoucher   Path = "webhook"   // the harness subscribes natively, let in by a voucher
	PathNative    Path = "native"    // an MCP Events client: it looks after itself
	PathHeld      Path = "held"      // nobody can wake it: messages wait for its next call
)

// Ids of harnesses that other packages treat apart.
const (
	ClaudeCode = "claude-code"
	Codex      = "codex"
	ChatGPT    = "chatgpt"
	Hermes     = "hermes"
)

// EventsExtension is the MCP extension a client declares when it speaks events itself.
const EventsExtension = "io.modelcontextprotocol/events"

// A Harness is a program an agent runs in.
type Harness struct {
	ID         string
	Clients    []string // MCP clientInfo.name, compared in any case
	UserAgents []string // what its User-Agent begins with, in any case
	Path       Path
	// Shared means that others send the client name too: it needs the agent's own word to count.
	Shared bool
}

var table = []Harness{
	{ID: Codex, Clients: []string{"codex-mcp-client"}, Path: PathConnector},
	{ID: ClaudeCode, Clients: []string{"claude-code"}, UserAgents: []string{"claude-code/"}, Path: PathMonitor},
	{ID: ChatGPT, Clients: []string{"openai-mcp"}, UserAgents: []string{"openai-mcp"}, Path: PathVoucher},
	{ID: "cursor", Clients: []string{"Cursor", "cursor-vscode"}, Path: PathHeld},
	{ID: "cursor-cloud", Path: PathHeld},
	{ID: "grok-bot", Path: PathHeld},
	{ID: "copilot", Clients: []string{"copilot-cli"}, Path: PathHeld},
	{ID: "opencode", Clients: []string{"opencode"}, Path: PathHeld},
	{ID: "antigravity", Clients: []string{"antigravity-client"}, Path: PathHeld},
	{ID: "openclaw", Clients: []string{"openclaw-bundle-mcp"}, Path: PathHeld},
	{ID: Hermes, Clients: []string{"mcp"}, Path: PathHeld, Shared: true},
	{ID: "gemini", Clients: []string{"gemini-cli-mcp-client"}, Path: PathHeld},
	{ID: "goose", Clients: []string{"goose-cli", "goose-desktop"}, Path: PathHeld},
	{ID: "cline", Clients: []string{"Cline"}, Path: PathHeld},
	{ID: "amp", Path: PathHeld},
	{ID: "devin", Path: PathHeld},
	{ID: "vscode", Clients: []string{"Visual Studio Code", "Visual Studio Code - Insiders"}, Path: PathHeld},
}

// Table lists every harness the core knows.
func Table() []Harness { return append([]Harness(nil), table...) }

// An Agent is what a caller was recognised as.
type Agent struct {
	Harness string // empty when nothing named one
	Via     string // the signal: client, user_agent, meta or harness; empty when nothing named one
	Claimed string // what the agent itself said it runs in; empty when it said nothing
	Path    Path
}

// Recognise says what program a call comes from. The client's name counts before its User-Agent, that before its _meta; what the
// agent itself claims is only heard where the name is one that several programs send.
func Recognise(call wake.Call) Agent {
	agent := Agent{Claimed: strings.TrimSpace(call.Harness), Path: PathHeld}
	found, via := recognise(call)
	switch {
	case found != nil:
		agent.Harness, agent.Via, agent.Path = found.ID, via, found.Path
	case call.DeclaresExtension(EventsExtension):
		agent.Path = PathNative
	}
	if agent.Harness == Codex {
		if thread, _ := call.CodexThread(); thread == "" {
			agent.Path = PathHeld // without its thread no connector can find it
		}
	}
	return agent
}

func recognise(call wake.Call) (*Harness, string) {
	name, userAgent := strings.ToLower(strings.TrimSpace(call.Client)), strings.ToLower(call.UserAgent)
	for i, h := range table {
		for _, client := range h.Clients {
			if name != strings.ToLower(client) {
				continue
			}
			if !h.Shared {
				return &table[i], "client"
			}
			if strings.EqualFold(strings.TrimSpace(call.Harness), h.ID) {
				return &table[i], "harness"
			}
		}
	}
	for i, h := range table {
		for _, prefix := range h.UserAgents {
			if strings.HasPrefix(userAgent, prefix) {
				return &table[i], "user_agent"
			}
		}
	}
	if _, ok := call.CodexThread(); ok {
		return &table[0], "meta"
	}
	return nil, ""
}

// Thread is the harness's own id of the calling conversation; empty when it gives none.
func Thread(call wake.Call) string {
	if thread, ok := call.CodexThread(); ok {
		return thread
	}
	return strings.TrimSpace(call.Conversation)
}
