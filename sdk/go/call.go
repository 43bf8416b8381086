package wakeshift

import (
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A call says who called, in the form the core takes (docs/wire.md §2). It holds
// what is known and decides nothing.
type call struct {
	Client        string         `json:"client"`
	ClientVersion string         `json:"client_version,omitempty"`
	Extensions    []string       `json:"extensions,omitempty"`
	User          string         `json:"user,omitempty"`
	Meta          map[string]any `json:"meta,omitempty"`
	Session       string         `json:"session,omitempty"`
	UserAgent     string         `json:"user_agent,omitempty"`
	Conversation  string         `json:"conversation,omitempty"`
	Harness       string         `json:"harness,omitempty"`
	Tool          string         `json:"tool,omitempty"`
}

// metaPrefix begins the names of _meta that are the protocol's own.
const metaPrefix = "io.modelcontextprotocol/"

// A caller is what a server request says of who sent it; every part of it may be
// missing. Params must not be nil: the SDK's accessors do not survive that.
type caller interface {
	ClientInfo() *mcp.Implementation
	ClientCapabilities() *mcp.ClientCapabilities
	GetExtra() *mcp.RequestExtra
}

// packCall fills in what every kind of request can say.
func packCall(request caller, meta map[string]any) call {
	var c call
	if info := request.ClientInfo(); info != nil {
		c.Client, c.ClientVersion = info.Name, info.Version
	}
	if capabilities := request.ClientCapabilities(); capabilities != nil {
		c.Extensions = slices.Sorted(maps.Keys(capabilities.Extensions))
	}
	if extra := request.GetExtra(); extra != nil {
		c.UserAgent = extra.Header.Get("User-Agent")
	}
	for name, value := range meta {
		if strings.HasPrefix(name, metaPrefix) {
			continue
		}
		if c.Meta == nil {
			c.Meta = map[string]any{}
		}
		c.Meta[name] = value
	}
	return c
}
