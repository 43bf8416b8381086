package storetest

import (
	"cmp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// RunShared runs the tests that every [store.Shared] passes beside those of Run. open gives an empty one, which it closes with
// the test.
func RunShared(t *testing.T, open func(*testing.T) store.Shared) {
	for _, test := range []struct {
		name string
		test func(*sharedSuite)
	}{
		{"connections and their order", testConnections},
		{"connections that are told again", testConnectionsAgain},
		{"nodes that leave or lapse", testNodesGone},
		{"counting the connected", testCountConnected},
		{"turns", testTurns},
		{"connecting at once", testConnectingAtOnce},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			test.test(&sharedSuite{suite: &suite{T: t, Store: s}, shared: s})
		})
	}
}

type sharedSuite struct {
	*suite
	shared store.Shared
}

// connect opens connections of one conversation at a node and returns what changed, without places.
func (s *sharedSuite) connect(node, conversation string, ids ...string) store.Connected {
	s.Helper()
	var opened []store.Connection
	for _, id := range ids {
		opened = append(opened, store.Connection{ID: id, App: "app", Conversation: conversation, Path: "path-" + id})
	}
	return s.alter(node, opened, nil)
}

func (s *sharedSuite) alter(node string, opened []store.Connection, closed []string) store.Connected {
	s.Helper()
	done := got[store.Connected](s.suite)(s.shared.Connect(s.Context(), node, opened, closed))
	done.Ranks = unplaced(done.Ranks)
	return done
}

// unplaced is the ranks in the order of their ids, without the places.
func unplaced(ranks []store.Rank) []store.Rank {
	ranks = slices.Clone(ranks)
	for i := range ranks {
		ranks[i].Place = 0
	}
	slices.SortFunc(ranks, func(a, b store.Rank) int { return cmp.Compare(a.ID, b.ID) })
	return ranks
}

func (s *sharedSuite) attend(node string) store.Attendance {
	s.Helper()
	is := got[store.Attendance](s.suite)(s.shared.Attend(s.Context(), node, time.Hour))
	is.Passed = unplaced(is.Passed)
	return is
}

func (s *sharedSuite) paths(what string, want map[string]string) {
	s.Helper()
	s.same("paths: "+what, want, got[map[string]string](s.suite)(s.shared.Paths(s.Context(), []string{"c1", "c2", "c3"})))
}

func testConnections(s *sharedSuite) {
	s.same("one that was not known", store.Attendance{New: true}, s.attend("a"))
	s.same("another", store.Attendance{New: true}, s.attend("b"))
	s.same("again", store.Attendance{}, s.attend("a"))
	s.paths("nobody", map[string]string{})

	s.same("two at once", store.Connected{Ranks: []store.Rank{{ID: "1", Newer: 1}, {ID: "2"}}}, s.connect("a", "c1", "1", "2"))
	s.same("a newer one elsewhere", store.Connected{Ranks: []store.Rank{{ID: "3"}}, Others: []string{"a"}}, s.connect("b", "c1", "3"))
	s.same("another conversation", store.Connected{Ranks: []store.Rank{{ID: "4"}}}, s.connect("b", "c2", "4"))
	s.paths("the newest of each", map[string]string{"c1": "path-3", "c2": "path-4"})
	s.same("what a learns", store.Attendance{Passed: []store.Rank{{ID: "1", Newer: 2}, {ID: "2", Newer: 1}}}, s.attend("a"))
	s.same("what b learns", store.Attendance{}, s.attend("b"))

	s.same("the newest closes", store.Connected{Others: []string{"a"}}, s.alter("b", nil, []string{"3", "none"}))
	s.same("what a learns then", store.Attendance{Passed: []store.Rank{{ID: "1", Newer: 1}}}, s.attend("a"))
	s.paths("the one before", map[string]string{"c1": "path-2", "c2": "path-4"})
	s.same("nothing", store.Connected{}, s.alter("a", nil, nil))
}

// A node that was not known for a while tells its connections again: they are as old as they were.
func testConnectionsAgain(s *sharedSuite) {
	s.attend("a")
	s.attend("b")
	old := store.Connection{ID: "1", App: "app", Conversation: "c1", Path: "stream"}
	old.Place = got[store.Connected](s.suite)(s.shared.Connect(s.Context(), "a", []store.Connection{old}, nil)).Ranks[0].Place
	s.connect("b", "c1", "2")
	if err := s.shared.Leave(s.Context(), "a"); err != nil {
		s.Fatal(err)
	}
	if _, err := s.shared.Connect(s.Context(), "a", []store.Connection{old}, nil); err == nil {
		s.Error("connected at a node that does not attend")
	}
	s.same("not known", store.Attendance{New: true}, s.attend("a"))
	s.same("again", store.Connected{Ranks: []store.Rank{{ID: "1", Newer: 1}}}, s.alter("a", []store.Connection{old}, nil))
	s.same("and again", store.Connected{}, s.alter("a", []store.Connection{old}, nil))
	s.paths("the newer one still", map[string]string{"c1": "path-2"})
}

func testNodesGone(s *sharedSuite) {
	s.attend("a")
	s.attend("b")
	s.connect("a", "c1", "1")
	s.connect("b", "c1", "2")
	s.connect("b", "c2", "3")
	if err := s.shared.Leave(s.Context(), "b"); err != nil {
		s.Fatal(err)
	}
	s.paths("one left", map[string]string{"c1": "path-1"})
	s.same("what is left stands alone", store.Attendance{}, s.attend("a"))

	if _, err := s.shared.Attend(s.Context(), "c", -time.Second); err != nil {
		s.Fatal(err)
	}
	s.connect("c", "c1", "4")
	s.connect("c", "c3", "5")
	s.paths("before anybody looks", map[string]string{"c1": "path-4", "c3": "path-5"})
	s.attend("a")
	s.paths("one lapsed", map[string]string{"c1": "path-1"})
	s.same("what is left stands alone again", store.Attendance{}, s.attend("a"))
	s.same("whoever lapsed is not known", store.Attendance{New: true}, s.attend("c"))
}

// watch subscribes a conversation to a topic by its name.
func (s *sharedSuite) watch(conversation, app, topic string) wake.Subscription {
	s.Helper()
	sub := s.subscription(wake.Conversation{ID: conversation, App: app}, topic)
	sub.Event, sub.Arguments = "", nil
	s.update(func(t store.Tx) error { return t.PutSubscription(sub) })
	return sub
}

func testCountConnected(s *sharedSuite) {
	app, other := s.addApp(), s.addApp()
	s.attend("a")
	var opened []store.Connection
	for i, path := range []string{"stream", "stream", "hooks", "stream"} {
		c := s.addConversation(app.ID)
		s.watch(c.ID, app.ID, "topic")
		if i == 0 {
			s.watch(c.ID, app.ID, "other")
		}
		opened = append(opened, store.Connection{ID: s.id("n"), App: app.ID, Conversation: c.ID, Path: path})
	}
	opened = append(opened, store.Connection{ID: s.id("n"), App: app.ID, Conversation: opened[2].Conversation, Path: "stream"},
		store.Connection{ID: s.id("n"), App: app.ID, Conversation: s.addConversation(app.ID).ID, Path: "stream"})
	ended := s.watch(opened[5].Conversation, app.ID, "topic")
	s.addSubscription(wake.Conversation{ID: opened[5].Conversation, App: app.ID}, "topic") // to an event
	s.update(func(t store.Tx) error { return fails(t.EndSubscription(ended.ID, 1, start)) })
	s.alter("a", opened, nil)
	for _, test := range []struct {
		app, topic string
		at         time.Time
		want       map[string]int
	}{
		{app.ID, "topic", start, map[string]int{"stream": 4}},
		{app.ID, "other", start, map[string]int{"stream": 1}},
		{app.ID, "topic", start.Add(1000 * time.Hour), map[string]int{}},
		{app.ID, "none", start, map[string]int{}},
		{other.ID, "topic", start, map[string]int{}},
	} {
		s.same(test.topic, test.want, got[map[string]int](s.suite)(s.shared.CountConnected(s.Context(), test.app, test.topic, test.at)))
	}
	s.alter("a", nil, []string{opened[4].ID})
	s.same("without the newest of one", map[string]int{"stream": 3, "hooks": 1},
		got[map[string]int](s.suite)(s.shared.CountConnected(s.Context(), app.ID, "topic", start)))
}

func testTurns(s *sharedSuite) {
	for _, test := range []struct {
		what, node string
		lease      time.Duration
		want       bool
	}{
		{"sweep", "a", time.Hour, true},
		{"sweep", "b", time.Hour, false},
		{"scrub", "b", time.Hour, true},
		{"sweep", "a", -time.Second, true}, // its own, which lapses at once
		{"sweep", "b", time.Hour, true},
		{"sweep", "a", time.Hour, false},
	} {
		s.same(test.what+" by "+test.node, test.want, got[bool](s.suite)(s.shared.Turn(s.Context(), test.what, test.node, test.lease)))
	}
}

// However many connect at once, at whatever nodes, each conversation has one newest connection.
func testConnectingAtOnce(s *sharedSuite) {
	const nodes, each = 3, 30
	var failed atomic.Int64
	done := make(chan struct{})
	for n := range nodes {
		node := string(rune('a' + n))
		s.attend(node)
		go func() {
			defer func() { done <- struct{}{} }()
			for i := range each {
				one := store.Connection{ID: s.id(node), App: "app", Conversation: "c" + string(rune('1'+i%3)), Path: node}
				if _, err := s.shared.Connect(s.Context(), node, []store.Connection{one}, nil); err != nil {
					failed.Add(1)
				}
			}
		}()
	}
	for range nodes {
		<-done
	}
	s.same("failed", int64(0), failed.Load())
	passed := 0
	for n := range nodes {
		passed += len(s.attend(string(rune('a' + n))).Passed)
	}
	s.same("connections that are not the newest", nodes*each-3, passed)
}
