package pgtest

import (
	"errors"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
)

// A Proxy stands between a test's connections and the server, and cuts them when it is told to.
type Proxy struct {
	listener net.Listener
	socket   string // of the server
	database string

	mu    sync.Mutex
	lines map[*line]struct{}
	cut   Cut
	done  sync.WaitGroup
}

// A Cut says when connections are cut.
type Cut int

const (
	// Never leaves them alone.
	Never Cut = iota
	// BeforeNext cuts the connection on which something is sent next, instead of sending it.
	BeforeNext
	// AfterNext sends it, and cuts the connection instead of bringing back the answer.
	AfterNext
)

// A line is one connection through a proxy.
type line struct {
	client, server net.Conn
	mu             sync.Mutex
	deaf           bool // the next answer is not brought back
}

// NewProxy gives a proxy to the database at an address that [Database] returned. It goes with the test.
func NewProxy(t testing.TB, address string) *Proxy {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, socket: filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"), database: u.Path, lines: map[*line]struct{}{}}
	p.done.Go(p.accept)
	t.Cleanup(p.Close)
	return p
}

// Close cuts all connections and takes no more. It may be called twice.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.CutAll()
	p.done.Wait()
}

// Address is the database's by way of the proxy.
func (p *Proxy) Address() string {
	return "postgres://rouse@" + p.listener.Addr().String() + p.database + "?sslmode=disable"
}

// CutAll cuts all connections there are.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.lines {
		l.close()
	}
}

// Set says when to cut. A cut is made once.
func (p *Proxy) Set(cut Cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
}

// take gives the cut that is to be made and makes it no other's.
func (p *Proxy) take() Cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	cut := p.cut
	p.cut = Never
	return cut
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		server, err := net.Dial("unix", p.socket)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &line{client: client, server: server}
		p.mu.Lock()
		p.lines[l] = struct{}{}
		p.mu.Unlock()
		p.done.Go(func() { p.forward(l) })
		p.done.Go(func() { l.bringBack() })
	}
}

// forward passes on what the client sends.
func (p *Proxy) forward(l *line) {
	defer func() {
		l.close()
		p.mu.Lock()
		delete(p.lines, l)
		p.mu.Unlock()
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(buffer)
		if err != nil {
			return
		}
		switch p.take() {
		case BeforeNext:
			return
		case AfterNext:
			l.mu.Lock()
			l.deaf = true
			l.mu.Unlock()
		}
		if _, err := l.server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// bringBack passes on what the server answers.
func (l *line) bringBack() {
	defer l.close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(buffer)
		if err != nil {
			return
		}
		l.mu.Lock()
		deaf := l.deaf
		l.mu.Unlock()
		if deaf {
			return
		}
		if _, err := l.client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (l *line) close() {
	for _, end := range []io.Closer{l.client, l.server} {
		_ = end.Close()
	}
}
