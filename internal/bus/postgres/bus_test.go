package postgres_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/bus"
	pgbus "github.com/rouse-dev/rouse/internal/bus/postgres"
	"github.com/rouse-dev/rouse/internal/postgres"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
)

func TestMain(m *testing.M) {
	status := pgtest.Run(m)
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// start starts a node's bus, and waits until it hears the others if it is going to.
func start(t *testing.T, address string, f pgbus.Follower) *pgbus.Bus {
	t.Helper()
	d, err := postgres.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	b := pgbus.Start(pgbus.Options{Database: d, Channel: "rouse_test", Follower: f, LookEach: time.Hour, LookDeafEach: time.Millisecond})
	t.Cleanup(b.Close)
	if !d.Pooled() {
		w := b.Watch(bus.Key{App: "any"})
		defer w.Close()
		await(t, w, "the beginning: everybody looks when a node has begun to hear")
	}
	return b
}

// await waits for a hint.
func await(t *testing.T, w *bus.Watch, what string) {
	t.Helper()
	select {
	case <-w.C():
	case <-time.After(20 * time.Second):
		t.Fatalf("no hint: %s", what)
	}
}

var one, other = bus.Key{App: "a", Topic: "one"}, bus.Key{App: "a", Topic: "other"}

func TestHintReachesOtherNodes(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	here, there := start(t, address, nil), start(t, address, nil)
	mine, theirs, unconcerned := here.Watch(one), there.Watch(one), there.Watch(other)
	here.Hint(one)
	await(t, mine, "on the same node")
	await(t, theirs, "on the other node")
	many := make([]bus.Key, 5000) // more than is listed: everybody looks
	for i := range many {
		many[i] = bus.Key{App: "a", Topic: fmt.Sprint(i)}
	}
	here.Hint(many...)
	await(t, unconcerned, "of everything")
	there.Hint(one)
	await(t, mine, "the other way")
}

// The node that hints does not tell itself a second time.
func TestHintComesOnce(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	here, there := start(t, address, nil), start(t, address, nil)
	mine, theirs := here.Watch(one), there.Watch(one, other)
	here.Hint(one)
	await(t, mine, "on the same node")
	await(t, theirs, "on the other node")
	there.Hint(one) // which comes after whatever came of the first
	await(t, mine, "from the other node")
	select {
	case <-mine.C():
		t.Error("told twice of one hint")
	default:
	}
}

func TestHintsAfterReconnecting(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	proxy := pgtest.NewProxy(t, address)
	here, there := start(t, address, nil), start(t, proxy.Address(), nil)
	w := there.Watch(one)
	proxy.CutAll()
	await(t, w, "everybody looks after a time without hearing")
	here.Hint(one)
	await(t, w, "by the new connection")
}

// A follower that finds something when it is told to.
type follower struct {
	finds atomic.Bool
	all   atomic.Bool
	looks atomic.Int64
}

func (f *follower) Look(context.Context) ([]bus.Key, bool, error) {
	f.looks.Add(1)
	if !f.finds.CompareAndSwap(true, false) {
		return nil, false, nil
	}
	return []bus.Key{one}, f.all.Load(), nil
}

// Behind a pooler nothing is heard: what comes is found by looking.
func TestLooking(t *testing.T) {
	t.Parallel()
	var f follower
	b := start(t, pgtest.Pooled(t, pgtest.Database(t)), &f)
	w, unconcerned := b.Watch(one), b.Watch(other)
	f.finds.Store(true)
	await(t, w, "of what the follower has found")
	select {
	case <-unconcerned.C():
		t.Error("told of what the follower has not found")
	default:
	}
	f.all.Store(true)
	f.finds.Store(true)
	await(t, unconcerned, "of everything")
}

// A node that hears the others looks seldom; one that no longer does, often.
func TestLooksMoreOftenWhileDeaf(t *testing.T) {
	t.Parallel()
	proxy := pgtest.NewProxy(t, pgtest.Database(t))
	var f follower
	b := start(t, proxy.Address(), &f)
	w := b.Watch(one)
	proxy.Close()
	f.finds.Store(true)
	await(t, w, "found by looking while nothing is heard")
}
