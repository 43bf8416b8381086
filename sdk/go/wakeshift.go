package wakeshift

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// DefaultCore is the address of the core when neither [WithCore] nor
// WAKESHIFT_CORE gives one: a core on this machine.
const DefaultCore = "http://127.0.0.1:8787"

// A Wakeshift is an app's connection to its core: the app's key, its events, and
// what is running for it. Make one with [New], share it by every server of the
// process, and [Wakeshift.Close] it at the end. It is safe for concurrent use.
type Wakeshift struct {
	eventTools eventToolCache

	core     *coreClient
	log      *slog.Logger
	manifest *manifest
	watches  *watches
	schemas  *toolSchemas
	streams  *streams
	outlets  *outlets
	listens  *listens
}

// An Option configures [New].
type Option func(*options)

type options struct {
	key  string
	core string
	http *http.Client
	log  *slog.Logger
}

// WithKey gives the app key, instead of the environment's WAKESHIFT_KEY.
func WithKey(key string) Option { return func(o *options) { o.key = key } }

// WithCore gives the base address of the core, such as https://wake.example.com,
// instead of the environment's WAKESHIFT_CORE.
func WithCore(address string) Option { return func(o *options) { o.core = address } }

// WithHTTPClient gives the client for calls to the core; nil means one made for
// it. Redirects are not followed, whatever the client says, since they would
// carry the app's assertion elsewhere.
func WithHTTPClient(client *http.Client) Option { return func(o *options) { o.http = client } }

// WithLogger gives the logger for what no caller hears of, such as a failing
// hook; nil means [slog.Default].
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// New makes an app's connection to its core. It reads the environment for what
// the options do not give: WAKESHIFT_KEY, the app key, and WAKESHIFT_CORE, the
// core's address (see [DefaultCore]; a key of the form wst_test_… comes from a
// core of its own and needs the address). New checks both and calls nobody. Its
// errors never show the key.
func New(opts ...Option) (*Wakeshift, error) {
	var o options
	for _, option := range opts {
		option(&o)
	}
	key := cmp.Or(o.key, os.Getenv("WAKESHIFT_KEY"))
	if strings.TrimSpace(key) == "" {
		return nil, errors.New("wakeshift: no app key: set WAKESHIFT_KEY or pass WithKey")
	}
	signer, err := parseKey(key)
	if err != nil {
		return nil, err
	}
	address := cmp.Or(o.core, os.Getenv("WAKESHIFT_CORE"))
	if address == "" && signer.test {
		return nil, errors.New("wakeshift: a wst_test_ key has no default core: " +
			"set WAKESHIFT_CORE or pass WithCore, with the address the key came from")
	}
	base, err := parseCore(cmp.Or(address, DefaultCore))
	if err != nil {
		return nil, err
	}
	if o.log == nil {
		o.log = slog.Default()
	}
	core := newCoreClient(base, signer, o.http)
	listens := newListens()
	return &Wakeshift{
		core:     core,
		log:      o.log,
		manifest: newManifest(core, listens.changed),
		watches:  newWatches(),
		schemas:  newToolSchemas(),
		streams:  newStreams(core, o.log),
		outlets:  newOutlets(),
		listens:  listens,
	}, nil
}

// parseCore checks the base address of a core and drops a slash at its end.
func parseCore(address string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("wakeshift: the core's address (WAKESHIFT_CORE or WithCore) " +
			"must be an http or https URL without user, query and fragment")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// Close stops all watches, waits up to 5 seconds for those that are in the
// middle of a check, ends the streams of clients, which may take 5 seconds more
// if some do not read, and closes idle connections.
// Later calls fail with [ErrClosed]. Close may be called more than once. It
// returns an error if a watch's check, or an Authorize that is asked again, has
// not returned in time.
//
// Whoever waits for requests to end, as [http.Server.Shutdown] and
// [mcp.ServerSession.Close] do, may wait for open streams too: call Close first,
// or at the same time.
func (w *Wakeshift) Close() error {
	w.listens.close()
	stopped := w.streams.close()
	running := w.watches.close()
	w.manifest.close()
	w.core.close()
	var errs []error
	if running > 0 {
		errs = append(errs, fmt.Errorf("wakeshift: %d watches did not stop in %v", running, closePatience))
	}
	if !stopped {
		errs = append(errs, fmt.Errorf("wakeshift: an Authorize did not return in %v", closePatience))
	}
	return errors.Join(errs...)
}

// request calls the core once its manifest is up to date. A core that does not
// know an event has lost the manifest, as one restored from a backup has, or was
// given another by an older process of the app: it is told once more.
func (w *Wakeshift) request(ctx context.Context, r coreRequest, answer any) error {
	if err := w.manifest.publish(ctx); err != nil {
		return err
	}
	err := w.core.call(ctx, r, answer)
	if !IsCode(err, codeUnknownEvent) {
		return err
	}
	w.manifest.forgotten()
	if err := w.manifest.publish(ctx); err != nil {
		return err
	}
	return w.core.call(ctx, r, answer)
}

const codeUnknownEvent = "unknown_event"
