package webhook

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/strictjson"
)

// A receiver document says, at a fixed address of an origin, which of its paths want deliveries (MCP Events, endpoint
// verification).
const (
	documentPath  = "/.well-known/mcp-webhook-receiver.json"
	maxDocument   = 64 << 10
	maxReceivers  = 1000
	maxDocuments  = 1000           // that are remembered
	documentTTL   = 24 * time.Hour // at most, whatever the answer allows
	maxAgeControl = "max-age="
)

// documents remembers receiver documents for as long as their servers allow. The zero value is ready for use; it is safe for
// concurrent use.
type documents struct {
	mu    sync.Mutex
	known map[string]document // by origin
}

type document struct {
	receivers []string
	until     time.Time
}

func (d *documents) get(origin string, at time.Time) ([]string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.known[origin]
	return found.receivers, ok && at.Before(found.until)
}

func (d *documents) put(origin string, one document, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[string]document{}
	}
	for other, old := range d.known {
		if len(d.known) < maxDocuments {
			break
		}
		if !at.Before(old.until) {
			delete(d.known, other)
		}
	}
	for other := range d.known {
		if len(d.known) < maxDocuments {
			break
		}
		delete(d.known, other)
	}
	d.known[origin] = one
}

// isDeclared reports whether the receiver document of a target's origin names its path. A document that cannot be had, or is none,
// names nothing.
func (s *Sender) isDeclared(ctx context.Context, target string) bool {
	parsed, err := url.Parse(target)
	if err != nil {
		return false
	}
	path, ok := plainPath(parsed)
	if !ok {
		return false
	}
	origin := parsed.Scheme + "://" + hostOf(parsed)
	receivers, ok := s.documents.get(origin, time.Now())
	if !ok {
		receivers, ok = s.fetchDocument(ctx, parsed, origin)
	}
	return ok && slices.ContainsFunc(receivers, func(prefix string) bool { return within(path, prefix) })
}

// fetchDocument asks an origin for its receiver document, the same way deliveries go.
func (s *Sender) fetchDocument(ctx context.Context, target *url.URL, origin string) (receivers []string, ok bool) {
	address := url.URL{Scheme: target.Scheme, Host: target.Host, Path: documentPath}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, false
	}
	request.Header = http.Header{"Accept": {"application/json"}, "User-Agent": {userAgent}}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, false
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, false
	}
	if receivers, ok = parseDocument(body); !ok {
		return nil, false
	}
	if at := time.Now(); freshness(response.Header) > 0 {
		s.documents.put(origin, document{receivers, at.Add(freshness(response.Header))}, at)
	}
	return receivers, true
}

// parseDocument reads {"receivers":["/hooks/"]}. Entries that are no paths count for nothing.
func parseDocument(body []byte) (receivers []string, ok bool) {
	var read struct {
		Receivers []string `json:"receivers"`
	}
	if strictjson.Decode(body, strictjson.Limits{MaxBytes: maxDocument}, &read) != nil {
		return nil, false
	}
	for _, prefix := range read.Receivers[:min(len(read.Receivers), maxReceivers)] {
		// As a URL's path, so that it is read as the path of a target is.
		parsed, err := url.Parse(prefix)
		if err != nil || parsed.Scheme != "" || parsed.Host != "" || strings.ContainsAny(prefix, "?#") || !strings.HasPrefix(prefix, "/") {
			continue
		}
		if path, ok := plainPath(parsed); ok {
			receivers = append(receivers, path)
		}
	}
	return receivers, true
}

// freshness is how long an answer may be used again (RFC 9111, for a cache of one's own): 0 unless it says for how long.
func freshness(header http.Header) time.Duration {
	var fresh time.Duration
	for directive := range strings.SplitSeq(strings.ToLower(strings.Join(header.Values("Cache-Control"), ",")), ",") {
		directive = strings.TrimSpace(directive)
		if directive == "no-store" || strings.HasPrefix(directive, "no-cache") {
			return 0
		}
		if text, ok := strings.CutPrefix(directive, maxAgeControl); ok {
			fresh = secondsOf(strings.Trim(text, `"`))
		}
	}
	return max(min(fresh, documentTTL)-secondsOf(header.Get("Age")), 0)
}

// secondsOf reads whole seconds, as many as are of use; 0 for anything else.
func secondsOf(text string) time.Duration {
	seconds, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
