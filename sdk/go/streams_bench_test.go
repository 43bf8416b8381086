package wakeshift_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// serveStreams makes the test binary an HTTP server of its own, so that its memory
// can be told from that of its clients and its core.
const serveStreams = "WAKESHIFT_TEST_SERVE_STREAMS"

// runStreamsServer serves an app at an address it prints, and the most memory it
// has had, in KiB, at /memory, until its input ends.
func runStreamsServer() int {
	wake, err := wakeshift.New(wakeshift.WithLogger(quiet))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := wakeshift.DefineEvent(wake, "site.updated", siteEvent()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server := func(*http.Request) *mcp.Server {
		server := newServer()
		wake.Attach(server, wakeshift.AttachOptions{})
		return server
	}
	options := &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}
	mux := http.NewServeMux()
	mux.Handle("/mcp", wake.HTTPHandler(server, options, wakeshift.AttachOptions{}))
	mux.HandleFunc("/memory", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, peakMemory()) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(listener.Addr())
	go http.Serve(listener, mux)
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// peakMemory is the most memory this process has had, in KiB; 0 if the system
// does not say.
func peakMemory() int {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			return kib
		}
	}
	return 0
}

// What 5,000 streams at once cost one server process, at its peak, and how long an
// event takes to all of them. The core is a fake, in this process.
func BenchmarkStreams(b *testing.B) {
	const streams = 5_000
	for b.Loop() {
		core := startCore(b)
		address, stop := startStreamsServer(b, core)
		clients := make([]*bufio.Reader, streams)
		inParallel(streams, func(n int) error {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			b.Cleanup(func() { conn.Close() })
			clients[n] = bufio.NewReaderSize(conn, 512)
			if err := askForStream(conn, n); err != nil {
				return err
			}
			return readUntil(clients[n], "events/active")
		}, b)
		began := time.Now()
		core.streams.updated(1)
		inParallel(streams, func(n int) error { return readUntil(clients[n], "events/event") }, b)
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/event")
		response, err := http.Get("http://" + address + "/memory")
		if err != nil {
			b.Fatal(err)
		}
		kib, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			b.Fatal(err)
		}
		if peak, err := strconv.Atoi(string(kib)); err == nil && peak > 0 {
			b.ReportMetric(float64(peak)/1024, "MB")
		}
		stop()
	}
}

func startStreamsServer(b *testing.B, core *fakeCore) (address string, stop func()) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	command := exec.Command(self)
	command.Env = append(os.Environ(), serveStreams+"=1", "WAKESHIFT_KEY="+core.key, "WAKESHIFT_CORE="+core.URL)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		stdin.Close()
		if err := command.Wait(); err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(stop)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line), stop
}

// inParallel calls f for each number below n, sixteen at a time.
func inParallel(n int, f func(int) error, b *testing.B) {
	b.Helper()
	numbers := make(chan int)
	failures := make(chan error, n)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for number := range numbers {
				if err := f(number); err != nil {
					failures <- err
				}
			}
		})
	}
	for number := range n {
		numbers <- number
	}
	close(numbers)
	workers.Wait()
	select {
	case err := <-failures:
		b.Fatal(err)
	default:
	}
}

func askForStream(w io.Writer, id int) error {
	params := map[string]any{"_meta": modernMeta("events-client"), "name": "site.updated", "arguments": map[string]any{"site": "example.com"}}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": "events/stream", "params": params})
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {modern}, "Mcp-Method": {"events/stream"}, "Mcp-Name": {"site.updated"}}
	return request.Write(w)
}

// readUntil reads lines until one has the text.
func readUntil(r *bufio.Reader, text string) error {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return errors.Join(fmt.Errorf("no %s", text), err)
		}
		if strings.Contains(line, text) {
			return nil
		}
	}
}
