package core

import (
	"sync"

	"github.com/rouse-dev/rouse/internal/refusal"
)

// maxNativeConnections is how many connections with native streams one app may have at a node: one a process is usual.
const maxNativeConnections = 1000

// streaming counts the native streams that are open at this node.
type streaming struct {
	mu          sync.Mutex
	connections map[string]int    // by app
	open        map[[2]string]int // by app and principal, and by app alone with none
}

// connect counts one more connection of an app, and refuses it when there are as many as allowed.
func (n *streaming) connect(app string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open == nil {
		n.connections, n.open = map[string]int{}, map[[2]string]int{}
	}
	if has := n.connections[app]; has >= maxNativeConnections {
		return refusal.New(refusal.SubscriptionLimit, "this app has %d connections with native streams, the most allowed", has)
	}
	n.connections[app]++
	return nil
}

func (n *streaming) disconnect(app string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.connections[app]--; n.connections[app] <= 0 {
		delete(n.connections, app)
	}
}

// take counts one more stream of an app and its principal, and refuses it when there are as many as allowed. Nobody, the
// empty principal, is bounded by what the app may have.
func (n *streaming) take(app, principal string, l Limits) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if has := n.open[[2]string{app}]; l.AppStreams > 0 && has >= l.AppStreams {
		return tooManyStreams(has, "of this app")
	}
	if has := n.open[[2]string{app, principal}]; principal != "" && l.UserStreams > 0 && has >= l.UserStreams {
		return tooManyStreams(has, "in the name of this user")
	}
	n.count(app, principal, 1)
	return nil
}

// tooManyStreams refuses one more of as many as there may be.
func tooManyStreams(most int, which string) error {
	return refusal.New(refusal.SubscriptionLimit, "%d streams %s are open, the most allowed", most, which).
		With("limit", "streams").With("max", most)
}

func (n *streaming) release(app, principal string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count(app, principal, -1)
}

// count counts streams that come or go. n.mu is held.
func (n *streaming) count(app, principal string, change int) {
	keys := [][2]string{{app}}
	if principal != "" {
		keys = append(keys, [2]string{app, principal})
	}
	for _, key := range keys {
		if n.open[key] += change; n.open[key] <= 0 {
			delete(n.open, key)
		}
	}
}
