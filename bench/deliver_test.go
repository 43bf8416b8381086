package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
	"github.com/rouse-dev/rouse/internal/wakepath/webhook"
)

// fanOut is how many webhooks one emit reaches.
const fanOut = 100

// BenchmarkDeliver measures how fast webhook deliveries are made, signed, over HTTP and written down: 100 webhooks to each emit, all
// at one receiver on loopback.
func BenchmarkDeliver(b *testing.B) {
	h := newHooked(b)
	receiver := listen(b, "127.0.0.1:0", h.receive)
	for i := range fanOut {
		h.subscribe(b, 0, fmt.Sprintf("http://%s/%d", receiver, i))
	}
	before := cpu()
	b.ResetTimer()
	for n := 0; n < b.N; n += fanOut {
		h.emit(b, 0, n/fanOut)
	}
	h.await((b.N + fanOut - 1) / fanOut * fanOut)
	b.StopTimer()
	deliveries := len(h.received)
	b.ReportMetric(float64(deliveries)/b.Elapsed().Seconds(), "deliveries/s")
	b.ReportMetric(float64((cpu()-before).Nanoseconds())/1000/float64(deliveries), "cpu-µs/delivery")
}

// BenchmarkDeadEndpoints measures from emit to receipt, with 10,000 webhooks on 100 topics and 10 emits a second, each to 100
// webhooks at as many hosts. In one half of it one of each hundred takes connections and never answers.
func BenchmarkDeadEndpoints(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("needs a whole network of loopback addresses")
	}
	for _, dead := range []int{0, 1} {
		b.Run(fmt.Sprintf("dead=%d%%", dead), func(b *testing.B) {
			h := newHooked(b)
			receiver, silent := listen(b, "0.0.0.0:0", h.receive), listenSilently(b)
			const topics = 100
			var all sync.WaitGroup
			for topic := range topics {
				all.Go(func() {
					for i := range fanOut {
						// A host of its own for each topic's dead one; the well ones share a hundred.
						url := fmt.Sprintf("http://127.0.1.%d:%d/%d", i+1, receiver.Port, topic)
						if i < dead {
							url = fmt.Sprintf("http://127.0.2.%d:%d/", topic+1, silent.Port)
						}
						h.subscribe(b, topic, url)
					}
				})
			}
			all.Wait()
			b.ResetTimer()
			atRate(b.N, 10, func(n int, due time.Time) {
				h.began(n, due)
				h.emit(b, n%topics, n)
			})
			h.await(b.N * (fanOut - dead))
			b.StopTimer()
			report(b, h.received)
		})
	}
}

// hooked is a core whose app has webhooks.
type hooked struct {
	core *core.Core
	app  wake.App

	mu       sync.Mutex
	more     sync.Cond
	begun    map[int]time.Time // by the number of an emit
	received []time.Duration   // how long each took
}

func newHooked(b *testing.B) *hooked {
	b.Helper()
	database := openStore(b)
	app := wake.App{ID: storedApp, Name: storedApp, CreatedAt: time.Now()}
	err := database.Update(b.Context(), func(tx store.Tx) error { return tx.CreateApp(app) })
	if err != nil {
		b.Fatal(err)
	}
	sender := webhook.New(webhook.Options{AllowPrivate: true, AllowHTTP: true})
	c, err := core.New(b.Context(), core.Options{Store: database, Master: credential.NewMaster([32]byte{1}), PublicURL: "http://core.test",
		Webhooks: unasked{webhook.Endpoints{Sender: sender}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		c.Close()
		sender.Close()
		if err := database.Close(); err != nil {
			b.Error(err)
		}
	})
	public := `{"events":[{"name":"job.done","description":"A job is done","topic":"ev/job.done/{job}","public":true,
		"arguments":{"type":"object","properties":{"job":{"type":"string"}},"required":["job"]},
		"payload":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}]}`
	if _, err := c.PutManifest(b.Context(), app, json.RawMessage(public)); err != nil {
		b.Fatal(err)
	}
	h := &hooked{core: c, app: app, begun: map[int]time.Time{}}
	h.more.L = &h.mu
	return h
}

// unasked are endpoints that are not asked whether they want deliveries: verification is not what is measured.
type unasked struct{ webhook.Endpoints }

func (unasked) Trusts(string) bool { return true }

func jobArguments(topic int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"job":"j%d"}`, topic))
}

func (h *hooked) subscribe(b *testing.B, topic int, url string) {
	b.Helper()
	_, err := h.core.SubscribeWebhook(b.Context(), h.app, core.Native{Call: wake.Call{User: fmt.Sprintf("u%d", topic)}, Name: "job.done", Arguments: jobArguments(topic)},
		core.HookRequest{URL: url, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
	if err != nil {
		b.Error(err)
	}
}

func (h *hooked) began(n int, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun[n] = at
}

func (h *hooked) emit(b *testing.B, topic, n int) {
	_, err := h.core.Emit(b.Context(), h.app, core.Emit{Name: "job.done", Arguments: jobArguments(topic), Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))})
	if err != nil {
		b.Error(err)
	}
}

// receive takes a delivery.
func (h *hooked) receive(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	var body struct{ Data struct{ N int } }
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(text, &body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.received = append(h.received, at.Sub(h.begun[body.Data.N]))
	h.more.Broadcast()
}

// await waits until so many were received.
func (h *hooked) await(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.received) < n {
		h.more.Wait()
	}
}

func listen(b *testing.B, address string, receive http.HandlerFunc) *net.TCPAddr {
	b.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: receive, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	b.Cleanup(func() { _ = server.Close() })
	return listener.Addr().(*net.TCPAddr)
}

// listenSilently takes connections and never says a word.
func listenSilently(b *testing.B) *net.TCPAddr {
	b.Helper()
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			b.Cleanup(func() { _ = c.Close() })
		}
	}()
	b.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().(*net.TCPAddr)
}
