package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rouse-dev/rouse/internal/adminapi"
	"github.com/rouse-dev/rouse/internal/bus"
	"github.com/rouse-dev/rouse/internal/config"
	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/quota"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wakepath/monitor"
	"github.com/rouse-dev/rouse/internal/wakepath/webhook"
)

// Options are what a server is made of. Data and Listen are required.
type Options struct {
	Data   string // the data directory; made when it is not there
	Listen string // host:port; port 0 is any free one
	// PublicURL begins every URL that is handed out; empty means the listener's own address, which must then be one address
	// and not all of the machine's.
	PublicURL string
	// Database is the address of a PostgreSQL database, which any number of servers may share; empty means a file in Data. It
	// may hold a password.
	Database string
	// Master is the core's secret, the same for all servers of one database; nil means the one in the data directory, made when it is not there.
	Master *credential.Master

	TLSCert, TLSKey    string // PEM files; both or neither
	TrustedProxies     []netip.Prefix
	StreamsPerAddress  int           // 0 is no limit
	FailuresPerAddress int           // failed authentications a second, 20 times as many at once; 0 is no limit
	Retention          time.Duration // 0 is the core's default
	RetentionSize      int64         // bytes of the database; 0 is no limit
	Limits             core.Limits   // the zero value is none
	PrivateWebhooks    bool          // webhooks may be at private and loopback addresses, and there without TLS
	TrustedWebhooks    []webhook.Trusted

	NoAdmin bool         // no administration socket
	Version string       // what the administration socket says
	Logger  *slog.Logger // nil: discards
}

// databaseName is the name of the database in the data directory.
const databaseName = "rouse.db"

// Bounds of a connection. Streams have no time limit of their own.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
)

// ShutdownTime is how long requests under way may take once the server is told to stop.
const ShutdownTime = 10 * time.Second

// A Server is a core that answers. All methods are safe for concurrent use.
type Server struct {
	log      *slog.Logger
	data     string
	url      string
	store    store.Store
	bus      bus.Bus
	closeBus func() // nil: there is none
	hooks    *webhook.Sender
	core     *core.Core
	listener net.Listener
	http     *http.Server
	scope    *scope
	admin    net.Listener // nil: none
	adminIn  *http.Server

	leaving  atomic.Bool
	stopping chan struct{}
	end      context.CancelFunc // of requests that do not end by themselves
	serving  sync.WaitGroup
	failed   chan error
	stop     func() error
}

// Start opens the data directory and serves until Shutdown. An error wraps [store.ErrLocked] when another process has the
// directory. The end of ctx ends Start, not the server.
func Start(ctx context.Context, o Options) (*Server, error) {
	s := &Server{log: o.Logger, stopping: make(chan struct{}), failed: make(chan error, 2)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.log = slog.New(requestHandler{s.log.Handler()})
	if err := s.open(ctx, o); err != nil {
		return nil, errors.Join(err, s.release())
	}
	s.stop = sync.OnceValue(s.shutdown)
	s.serving.Go(func() { s.serve(s.http, unparsedListener{s.listener}) })
	if s.admin != nil {
		s.serving.Go(func() { s.serve(s.adminIn, s.admin) })
	}
	return s, nil
}

// open takes hold of everything a server needs.
func (s *Server) open(ctx context.Context, o Options) (err error) {
	if s.data, err = config.PrepareData(o.Data); err != nil {
		return err
	}
	if o.Database == "" { // first of all: who holds it is alone in the directory
		if err := s.openDatabase(ctx, o); err != nil {
			return err
		}
	}
	if o.Master == nil {
		if o.Master, err = credential.LoadMaster(s.data); err != nil {
			return err
		}
	}
	if o.Database != "" {
		if err := s.openDatabase(ctx, o); err != nil {
			return err
		}
	}
	var keypair *certificate
	if o.TLSCert != "" {
		if keypair, err = loadCertificate(o.TLSCert, o.TLSKey, s.log); err != nil {
			return err
		}
	}
	if s.listener, err = net.Listen("tcp", o.Listen); err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	if s.url = o.PublicURL; s.url == "" {
		if s.url, err = urlOf(s.listener.Addr(), keypair != nil); err != nil {
			return err
		}
	}
	s.hooks = webhook.New(webhook.Options{AllowPrivate: o.PrivateWebhooks, AllowHTTP: o.PrivateWebhooks, Trusted: o.TrustedWebhooks})
	s.core, err = core.New(ctx, core.Options{Store: s.store, Bus: s.bus, Master: o.Master, PublicURL: s.url,
		Audiences: audiences(s.listener.Addr(), keypair != nil), Webhooks: webhook.Endpoints{Sender: s.hooks}, Logger: s.log,
		Retention: o.Retention, RetentionSize: o.RetentionSize, Limits: o.Limits})
	if err != nil {
		return fmt.Errorf("starting the core: %w", err)
	}
	s.prepare(o, keypair)
	if o.NoAdmin {
		return nil
	}
	if err := adminapi.RemoveScratch(s.data); err != nil {
		return err
	}
	s.admin, err = adminapi.Listen(s.data)
	return err
}

// prepare makes the two HTTP servers.
func (s *Server) prepare(o Options, keypair *certificate) {
	measured := newMetrics()
	s.scope = &scope{log: s.log, metrics: measured, proxies: o.TrustedProxies,
		streams:  &streams{most: o.StreamsPerAddress},
		failures: quota.New[netip.Addr](int64(o.FailuresPerAddress), time.Second, 20*int64(o.FailuresPerAddress)), stopping: s.stopping}
	base, end := context.WithCancel(context.Background())
	s.end = end
	quiet := slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)
	s.http = &http.Server{Handler: s.routes(), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return base }, ConnContext: monitor.ConnContext, ErrorLog: quiet}
	if keypair != nil {
		s.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: keypair.get}
	}
	status := adminapi.Status{PublicURL: s.url, Version: o.Version, Data: s.data}
	admin := adminapi.New(s.core, adminapi.Options{Status: status, Scratch: s.data, Metrics: measured.handler(), Logger: s.log, Stopping: s.stopping})
	s.adminIn = &http.Server{Handler: admin, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return base }, ErrorLog: quiet}
}

// serve serves until the listener is closed. Any other end is a failure of the server.
func (s *Server) serve(server *http.Server, listener net.Listener) {
	serve := server.Serve
	if server.TLSConfig != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	if err := serve(listener); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		s.failed <- fmt.Errorf("serving %s: %w", listener.Addr(), err)
	}
}

// URL is the address that begins every URL the server hands out.
func (s *Server) URL() string { return s.core.PublicURL() }

// Address is what it listens on.
func (s *Server) Address() net.Addr { return s.listener.Addr() }

// Data is the absolute path of its data directory.
func (s *Server) Data() string { return s.data }

// Core is the engine it serves.
func (s *Server) Core() *core.Core { return s.core }

// Failed receives when the server has stopped answering by itself. The caller still calls Shutdown.
func (s *Server) Failed() <-chan error { return s.failed }

// Leave has /readyz say no from now on, so that a balancer sends nobody new, and changes nothing else: it is for before Shutdown.
func (s *Server) Leave() { s.leaving.Store(true) }

// Shutdown stops: no new requests are taken, streams are cut so that clients come back, requests under way finish or are cut
// after [ShutdownTime], and the log is closed. It returns what could not be closed; calls after the first return the same.
func (s *Server) Shutdown() error { return s.stop() }

func (s *Server) shutdown() error {
	// Closing the listeners comes first, so that who is cut off next does not come back to this process.
	_ = s.listener.Close()
	if s.admin != nil {
		_ = s.admin.Close()
	}
	close(s.stopping)
	patience, cancel := context.WithTimeout(context.Background(), ShutdownTime)
	defer cancel()
	var closing sync.WaitGroup
	for _, server := range []*http.Server{s.http, s.adminIn} {
		closing.Go(func() {
			if server.Shutdown(patience) != nil {
				s.end()
				_ = server.Close()
			}
		})
	}
	closing.Wait()
	// WebSockets are no longer the HTTP server's to wait for.
	s.scope.wait(patience, s.end)
	s.end()
	s.serving.Wait()
	return s.release()
}

// release lets go of whatever is held, in the order in which one depends on the next.
func (s *Server) release() error {
	var errs []error
	if s.core != nil {
		s.core.Close()
	}
	if s.hooks != nil {
		s.hooks.Close()
	}
	for _, listener := range []net.Listener{s.listener, s.admin} {
		if listener != nil {
			_ = listener.Close() // closed already after a shutdown
		}
	}
	if s.closeBus != nil {
		s.closeBus()
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	return errors.Join(errs...)
}

// urlOf is the address of a listener as a URL.
func urlOf(address net.Addr, secure bool) (string, error) {
	tcp, ok := address.(*net.TCPAddr)
	if !ok || tcp.IP.IsUnspecified() {
		return "", fmt.Errorf("listening on every address of the machine (%s): say with --public-url how apps and agents reach it", address)
	}
	scheme := "http"
	if secure {
		scheme = "https"
	}
	return scheme + "://" + address.String(), nil
}

// audiences are the names that apps on this machine may know the core by: those of the loopback interface, if it listens there
// in the clear.
func audiences(address net.Addr, secure bool) []string {
	tcp, ok := address.(*net.TCPAddr)
	if !ok || secure || !tcp.IP.IsLoopback() && !tcp.IP.IsUnspecified() {
		return nil
	}
	return []string{fmt.Sprintf("http://127.0.0.1:%d", tcp.Port), fmt.Sprintf("http://localhost:%d", tcp.Port)}
}
