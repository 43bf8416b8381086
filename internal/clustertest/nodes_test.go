package clustertest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/bus"
	pgbus "github.com/rouse-dev/rouse/internal/bus/postgres"
	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/credential"
	database "github.com/rouse-dev/rouse/internal/postgres"
	"github.com/rouse-dev/rouse/internal/store/postgres"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
	"github.com/rouse-dev/rouse/internal/wake"
)

var (
	claude = wake.Call{Client: "claude-code", User: "ada"}
	codex  = wake.Call{Client: "codex-mcp-client", User: "ada", Meta: json.RawMessage(`{"x-codex-turn-metadata":{"thread_id":"t1"}}`)}
)

// A cluster is some cores on one database.
type cluster struct {
	testing.TB
	database string // its address
	nodes    []*core.Core
	app      wake.App
}

// newCluster starts cores with an app, whose manifest is that of package coretest. Hints go through the database, and nobody looks
// for what no hint told of.
func newCluster(t testing.TB, nodes int) *cluster {
	t.Helper()
	c := &cluster{TB: t, database: pgtest.Database(t)}
	var buses []bus.Bus
	for range nodes {
		one, hints := newNode(t, c.database)
		c.nodes, buses = append(c.nodes, one), append(buses, hints)
	}
	for _, from := range buses {
		for _, to := range buses {
			hears(t, from, to)
		}
	}
	var err error
	if c.app, err = c.nodes[0].CreateApp(t.Context(), "crawler", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := c.nodes[0].PutManifest(t.Context(), c.app, json.RawMessage(coretest.Manifest)); err != nil {
		t.Fatal(err)
	}
	return c
}

func newNode(t testing.TB, address string) (*core.Core, bus.Bus) {
	t.Helper()
	d, err := database.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	s, err := postgres.Open(t.Context(), d, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hints := pgbus.Start(pgbus.Options{Database: d, Channel: "rouse_test"})
	t.Cleanup(func() {
		hints.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	one, err := core.New(t.Context(), core.Options{Store: s, Bus: hints, Master: credential.NewMaster([32]byte{1}), PublicURL: coretest.PublicURL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(one.Close)
	return one, hints
}

// hears waits until one node hears the other's hints.
func hears(t testing.TB, from, to bus.Bus) {
	t.Helper()
	probe := bus.Key{Topic: "probe"}
	watch := to.Watch(probe)
	defer watch.Close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for {
		from.Hint(probe)
		select {
		case <-watch.C():
			return
		case <-tick.C:
		case <-end:
			t.Fatal("hints do not reach the other node")
		}
	}
}

// watch subscribes a caller to a topic at a node.
func (c *cluster) watch(node int, call wake.Call, topic string) core.Subscribed {
	c.Helper()
	done, err := c.nodes[node].SubscribeTopic(c.Context(), c.app, call, topic, core.TopicOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return done
}

// token is a capability of the conversation that a session key speaks for.
func token(t testing.TB, kind credential.Kind, done core.Subscribed) string {
	t.Helper()
	master := credential.NewMaster([32]byte{1})
	id, ok := master.Open(credential.SessionKey, done.Session)
	if !ok {
		t.Fatal("the session key does not hold")
	}
	return master.Mint(kind, id)
}

func (c *cluster) stream(node int, done core.Subscribed) *core.Inbox {
	c.Helper()
	in, err := c.nodes[node].OpenStream(c.Context(), token(c.TB, credential.Stream, done))
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(in.Close)
	return in
}

func (c *cluster) publish(node int, topic, text string) {
	c.Helper()
	if _, err := c.nodes[node].Publish(c.Context(), c.app, core.Publish{Topics: []string{topic}, Text: text}); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) read(in *core.Inbox) (texts []string, receipt core.Receipt) {
	c.Helper()
	messages, err := in.Read(c.Context(), 100)
	if err != nil {
		c.Fatal(err)
	}
	for _, m := range messages {
		texts = append(texts, m.Text)
		receipt.Add(m)
	}
	return texts, receipt
}

// A stream at one node is woken by what another accepts, without anybody looking from time to time.
func TestAHintCrossesNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	in := c.stream(0, c.watch(0, claude, "news"))
	for _, text := range []string{"one", "two", "three"} {
		if texts, _ := c.read(in); len(texts) > 0 {
			t.Fatalf("read %q before it was published", texts)
		}
		c.publish(1, "news", text)
		var texts []string
		for len(texts) == 0 { // a hint may be for nothing
			await(t, "a hint of "+text, in.Changed())
			texts, _ = c.read(in)
		}
		if diff := cmp.Diff([]string{text}, texts); diff != "" {
			t.Fatal(diff)
		}
	}
}

// BenchmarkAcrossNodes publishes at one node until a stream at the other has read it.
func BenchmarkAcrossNodes(b *testing.B) {
	c := newCluster(b, 2)
	in := c.stream(0, c.watch(0, claude, "news"))
	c.read(in)
	for b.Loop() {
		c.publish(1, "news", "something")
		for read := 0; read == 0; {
			<-in.Changed()
			texts, _ := c.read(in)
			read = len(texts)
		}
	}
}

// What nodes have told each other does not outlive the database server's crash: they tell it again.
func TestWhatTheDatabaseForgotIsToldAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	done := c.watch(0, codex, "news")
	first, err := c.nodes[1].OpenConnector(t.Context(), token(t, credential.Connector, done))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	pgtest.Exec(t, c.database, "TRUNCATE attending, connections, turns")
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); ; {
		status, err := c.nodes[0].Subscription(t.Context(), c.app, done.Subscription.ID)
		if err != nil {
			t.Fatal(err)
		}
		if status.Via == core.ViaHooks {
			break
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("the node does not tell again who is connected")
		}
	}
	second, err := c.nodes[0].OpenConnector(t.Context(), token(t, credential.Connector, done))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	await(t, "the first is superseded", first.Superseded())
}

// Whoever asks whichever node hears who is connected to any.
func TestEveryNodeKnowsWhoIsConnected(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	done := c.watch(0, claude, "news")
	look := func(via, sent string) {
		t.Helper()
		status, err := c.nodes[0].Subscription(t.Context(), c.app, done.Subscription.ID)
		if err != nil || status.Via != via {
			t.Errorf("the subscription's path is %q (%v), want %q", status.Via, err, via)
		}
		if got, err := c.nodes[0].Send(t.Context(), c.app, done.Subscription.ID, core.Send{Text: "hello"}); err != nil || got != sent {
			t.Errorf("a message was %q (%v), want %q", got, err, sent)
		}
		topic, err := c.nodes[0].TopicStatus(t.Context(), c.app, "news")
		want := map[string]int{"hooks": 0, "poll": 0, "stream": 0, "webhook": 0}
		if via != "" {
			want[via] = 1
		}
		if diff := cmp.Diff(core.TopicStatus{Subscriptions: 1, Via: want}, topic); err != nil || diff != "" {
			t.Errorf("the topic's status: %v\n%s", err, diff)
		}
		standing, _, err := c.nodes[0].Standing(t.Context(), c.app.ID)
		if err != nil || len(standing) == 0 || standing[0].Via != via {
			t.Errorf("standing: %+v (%v), want %q", standing, err, via)
		}
	}
	look("", "queued")
	in := c.stream(1, done)
	look("stream", "delivered")
	in.Close()
	c.stream(1, c.watch(0, claude, "another")) // what a node has to tell it tells in order
	look("", "queued")
}

func TestTheNewestConnectorWinsAtWhateverNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	name := token(t, credential.Connector, c.watch(0, codex, "news"))
	first, err := c.nodes[0].OpenConnector(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := c.nodes[1].OpenConnector(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	await(t, "the first is superseded", first.Superseded())
	select {
	case <-second.Superseded():
		t.Error("the second is superseded as well")
	default:
	}
}

// A stream whose other end has gone to another node may not say what was received.
func TestOnlyTheNewestStreamSaysWhatWasReceived(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	done := c.watch(0, claude, "news")
	old := c.stream(0, done)
	c.publish(1, "news", "one")
	texts, receipt := c.read(old)
	if diff := cmp.Diff([]string{"one"}, texts); diff != "" {
		t.Fatal(diff)
	}
	current := c.stream(1, done)
	c.stream(0, done).Close()                  // by which the first node learns at once how its connections stand
	c.stream(0, c.watch(0, claude, "another")) // and by this that the one before has closed
	if err := old.Settle(t.Context(), receipt); err != nil {
		t.Fatal(err)
	}
	again, receipt := c.read(current)
	if diff := cmp.Diff([]string{"one"}, again); diff != "" {
		t.Errorf("the newest stream: %s", diff)
	}
	later := c.stream(1, done)
	if texts, _ := c.read(later); !cmp.Equal([]string{"one"}, texts) {
		t.Errorf("an old stream moved the position: a new one reads %q", texts)
	}
	later.Close()
	c.stream(1, c.watch(0, claude, "third"))
	if err := current.Settle(t.Context(), receipt); err != nil {
		t.Fatal(err)
	}
	if texts, _ := c.read(c.stream(0, done)); len(texts) != 0 {
		t.Errorf("the newest stream did not move the position: a new one reads %q", texts)
	}
}

// Every node uses the newest manifest, whoever put it.
func TestEveryNodeSeesTheManifest(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	emit := func(node int, event string) error {
		_, err := c.nodes[node].Emit(t.Context(), c.app, core.Emit{Name: event, Arguments: json.RawMessage(`{"job":"j1"}`), Payload: json.RawMessage(`{"pages":1}`)})
		return err
	}
	for node := range c.nodes {
		if err := emit(node, "crawl.finished"); err != nil {
			t.Fatal(err)
		}
	}
	renamed := `{"events":[{"name":"crawl.ended","description":"A crawl ended","topic":"ev/crawl.ended/{job}",
		"arguments":{"type":"object","properties":{"job":{"type":"string"}},"required":["job"]},"payload":{"type":"object"}}]}`
	if _, err := c.nodes[1].PutManifest(t.Context(), c.app, json.RawMessage(renamed)); err != nil {
		t.Fatal(err)
	}
	for node := range c.nodes {
		if err := emit(node, "crawl.finished"); err == nil {
			t.Errorf("node %d takes an event that is gone", node)
		}
		if err := emit(node, "crawl.ended"); err != nil {
			t.Errorf("node %d refuses a new event: %v", node, err)
		}
	}
}
