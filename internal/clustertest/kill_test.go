package clustertest

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/examples/cluster/balancer"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
)

// ends is how many nodes end, one after the other. Streams take a line every two seconds, so that more take longer.
var ends = flag.Int("ends", 1, "how many nodes are killed or stopped under load, one after the other")

// What the load is made of.
const (
	nodes         = 3
	slowJobs      = 6 // each with streams and a webhook
	streamsPerJob = 4
	slowSteps     = 10 // of a slow job for each end: as many as a stream takes at once
	fastJobs      = 3  // of a connector, which takes any number
	fastSteps     = 60 // of a fast job for each end
	connectors    = 4  // each with all jobs
)

// A load is apps that emit and agents that are woken, through a balancer before three nodes.
type load struct {
	*testing.T
	balancer *balancer.Balancer
	url      string // of the balancer
	nodes    []*process
	app      *app
	problems chan string
	ledgers  map[*ledger]map[string]int // and what each is to have in the end
	agents   sync.WaitGroup
}

func newLoad(t *testing.T, database string) *load {
	t.Helper()
	l := &load{T: t, balancer: balancer.New(make([]string, nodes)...), problems: make(chan string, 20), ledgers: map[*ledger]map[string]int{}}
	l.balance()
	for node := range nodes {
		l.nodes = append(l.nodes, newProcess(t, database, l.url))
		l.start(node)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: 100 * time.Millisecond} // so that calls go to all nodes
	t.Cleanup(transport.CloseIdleConnections)
	l.nodes[0].administer("app", "create", "jobs")
	l.app = newApp(t, l.url, l.nodes[1].administer("key", "create", "--app", "jobs"), &http.Client{Transport: transport})
	l.app.call(t, http.MethodPut, "/manifest", manifest, &struct{}{})
	t.Cleanup(l.agents.Wait) // which end with the test's context
	return l
}

// balance starts the balancer, which ends with the test.
func (l *load) balance() {
	l.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.Fatal(err)
	}
	l.url = "http://" + listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.balancer.Serve(ctx, listener) }()
	l.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			l.Error(err)
		}
	})
}

func (l *load) start(node int) {
	l.Helper()
	l.balancer.Set(node, l.nodes[node].start())
}

// ledger makes the ledger of a receiver of so many steps of these jobs.
func (l *load) ledger(name string, inOrder bool, steps map[string]int) *ledger {
	one := newLedger(name, inOrder, l.problems)
	l.ledgers[one] = steps
	return one
}

// connect connects the agents. all are the steps of all jobs, slow the names of the slow ones.
func (l *load) connect(all map[string]int, slow []string) {
	l.Helper()
	ctx := l.Context()
	var jobs []string
	for job := range all {
		jobs = append(jobs, job)
	}
	for i := range connectors {
		thread := fmt.Sprintf("thread-%d", i)
		address, one := l.app.connector(l.T, thread, jobs), l.ledger("connector of "+thread, true, all)
		l.agents.Go(func() { runConnector(ctx, l.app.client, address, one) })
	}
	for _, job := range slow {
		steps := map[string]int{job: all[job]}
		for i := range streamsPerJob {
			address, one := l.app.monitor(l.T, job), l.ledger(fmt.Sprintf("stream %d of %s", i, job), true, steps)
			l.agents.Go(func() { runMonitor(ctx, l.app.client, address, one) })
		}
		url, secret := newHook(l.T, l.ledger("webhook of "+job, false, steps))
		l.app.webhook(l.T, job, url, secret)
	}
}

// emit emits the steps of a job, one after the other, and says when each was acknowledged.
func (l *load) emit(job string, steps int, pace time.Duration, acknowledged chan<- struct{}) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := range steps {
		if err := l.app.emit(l.Context(), job, n+1); err != nil {
			l.problem("emitting %s %d: %v", job, n+1, err)
			return
		}
		acknowledged <- struct{}{}
		<-tick.C
	}
}

// problem notes what is not as promised. The first ones are enough.
func (l *load) problem(format string, args ...any) {
	select {
	case l.problems <- fmt.Sprintf(format, args...):
	default:
	}
}

// check waits until every receiver has everything, and reports what was not as promised.
func (l *load) check() {
	l.Helper()
	end := time.After(patience)
	for one, steps := range l.ledgers {
		for len(one.missing(steps)) > 0 {
			select {
			case <-one.changed:
			case problem := <-l.problems:
				l.Fatal(problem)
			case <-end:
				l.Fatalf("%s has not had, of %v: %v", one.name, steps, one.missing(steps))
			}
		}
	}
	select {
	case problem := <-l.problems:
		l.Fatal(problem)
	default:
	}
	for one, steps := range l.ledgers {
		if diff := cmp.Diff(map[string]int{}, one.missing(steps)); diff != "" {
			l.Errorf("%s had more than was emitted: %s", one.name, diff)
		}
	}
}

// Nodes are killed under load and come back. Whatever was acknowledged reaches everyone, in order; nobody is told that something
// failed which had not.
func TestKilledNodes(t *testing.T) {
	t.Parallel()
	endUnderLoad(t, (*process).kill)
}

// The same holds when nodes are told to stop, one after the other, as for an upgrade.
func TestStoppedNodes(t *testing.T) {
	t.Parallel()
	endUnderLoad(t, (*process).stop)
}

// endUnderLoad ends nodes and starts them again. They stay in the balancer's list meanwhile, as dead ones do.
func endUnderLoad(t *testing.T, end func(*process)) {
	t.Helper()
	l := newLoad(t, pgtest.Database(t))
	all, paces, total := map[string]int{}, map[string]time.Duration{}, 0
	var slow []string
	for i := range slowJobs {
		job := fmt.Sprintf("slow-%d", i)
		slow, all[job], paces[job] = append(slow, job), slowSteps**ends, 150*time.Millisecond
	}
	for i := range fastJobs {
		job := fmt.Sprintf("fast-%d", i)
		all[job], paces[job] = fastSteps**ends, 20*time.Millisecond
	}
	l.connect(all, slow)
	for _, steps := range all {
		total += steps
	}
	acknowledged := make(chan struct{}, total)
	var apps sync.WaitGroup
	for job, steps := range all {
		apps.Go(func() { l.emit(job, steps, paces[job], acknowledged) })
	}
	reached := 0
	reach := func(part float64) {
		for ; reached < int(float64(total)*part/float64(*ends)); reached++ {
			await(t, "acknowledgements", acknowledged)
		}
	}
	for k := range *ends {
		reach(float64(k) + 0.3)
		end(l.nodes[k%nodes])
		reach(float64(k) + 0.7)
		l.start(k % nodes)
	}
	apps.Wait()
	l.check()
}
