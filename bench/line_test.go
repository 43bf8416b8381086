package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// How many streams are open while lines are measured. Those that are hit get less than a line in two seconds each, which is
// what a harness takes without end.
const (
	idleStreams = 1000
	hitStreams  = 500
	emitRate    = 200
)

// BenchmarkLine is how long it takes from an emit to the line that wakes its agent: 200 emits a second, each for one stream of
// 500, while 1,000 more are open. It ends when the reader of the stream has the line.
func BenchmarkLine(b *testing.B) {
	for _, server := range servers[:2] {
		b.Run(server.name, func(b *testing.B) {
			t := server.start(b)
			a := newAudience(b, t)
			emitted := 0
			b.Run(fmt.Sprintf("rate=%d", emitRate), func(b *testing.B) {
				a.measure(b, t, emitted)
				emitted += b.N
			})
		})
	}
}

// An audience is open streams, whose lines are passed on as they arrive.
type audience struct {
	lines chan arrival
	wrong chan error
}

// An arrival is a line, by the number of its emit.
type arrival struct {
	n  int
	at time.Time
}

// newAudience opens the streams, which end with the benchmark.
func newAudience(b *testing.B, t *target) *audience {
	b.Helper()
	a := &audience{lines: make(chan arrival, 1024), wrong: make(chan error, 1)}
	transport := new(http.Transport)
	ctx, stop := context.WithCancel(context.Background())
	var opening, reading sync.WaitGroup
	b.Cleanup(func() {
		stop()
		reading.Wait()
		transport.CloseIdleConnections()
	})
	jobs := make(chan int)
	for range connections {
		opening.Go(func() {
			for n := range jobs {
				response, err := open(ctx, transport, t, fmt.Sprintf("j%d", n))
				if err != nil {
					a.fail(err)
					continue
				}
				reading.Go(func() { a.read(ctx, response) })
			}
		})
	}
	for n := range hitStreams + idleStreams {
		jobs <- n
	}
	close(jobs)
	opening.Wait()
	select {
	case err := <-a.wrong:
		b.Fatal(err)
	default:
	}
	return a
}

func open(ctx context.Context, transport *http.Transport, t *target, job string) (*http.Response, error) {
	address, err := t.stream(job)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	return transport.RoundTrip(request)
}

func (a *audience) fail(err error) {
	select {
	case a.wrong <- err:
	default: // one is enough
	}
}

// read passes on the lines of one stream.
func (a *audience) read(ctx context.Context, response *http.Response) {
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		a.fail(fmt.Errorf("a stream answered %s", response.Status))
		return
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		at := time.Now()
		_, rest, found := bytes.Cut(lines.Bytes(), []byte(`"n":`))
		if !found {
			continue // a blank line, which keeps the stream alive
		}
		n, err := strconv.Atoi(string(rest[:bytes.IndexAny(rest, ",}")]))
		if err != nil {
			a.fail(err)
			return
		}
		a.lines <- arrival{n, at}
	}
	if ctx.Err() == nil {
		a.fail(fmt.Errorf("a stream ended: %w", lines.Err()))
	}
}

// lost is how long the last line may take before it is taken for lost.
const lost = 30 * time.Second

// measure emits at the rate, after so many emits before, and reports how long the lines took.
func (a *audience) measure(b *testing.B, t *target, before int) {
	begun, took := make([]time.Time, b.N), make([]time.Duration, b.N)
	var emitting sync.WaitGroup
	b.ResetTimer()
	emitting.Go(func() {
		tick := time.NewTicker(time.Second / emitRate)
		defer tick.Stop()
		for i := range b.N {
			<-tick.C
			emitting.Go(func() {
				n := before + i
				begun[i] = time.Now()
				if err := t.emit(fmt.Sprintf("j%d", n%hitStreams), n, nil); err != nil {
					a.fail(err)
				}
			})
		}
	})
	arrived := make([]arrival, 0, b.N)
	timeout := time.NewTimer(time.Duration(b.N)*time.Second/emitRate + lost)
	defer timeout.Stop()
	for len(arrived) < b.N {
		select {
		case one := <-a.lines:
			arrived = append(arrived, one)
		case err := <-a.wrong:
			b.Fatal(err)
		case <-timeout.C:
			b.Fatalf("%d lines of %d came", len(arrived), b.N)
		}
	}
	emitting.Wait()
	for _, one := range arrived {
		took[one.n-before] = one.at.Sub(begun[one.n-before])
	}
	report(b, took)
}
