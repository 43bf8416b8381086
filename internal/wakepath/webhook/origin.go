package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// hostOf is the host and port of a URL in one form, whatever way it is spelled: endpoints of one host share its limits.
func hostOf(parsed *url.URL) string {
	port := parsed.Port()
	if port == "" {
		port = "443"
		if parsed.Scheme == "http" {
			port = "80"
		}
	}
	return net.JoinHostPort(strings.TrimSuffix(strings.ToLower(parsed.Hostname()), "."), port)
}

// Host is the host and port of a URL that [Sender.CheckURL] let pass, in one form; empty for what is no URL.
func Host(raw string) string {
	parsed, err := url.Parse(raw)
	if err != nil || parsed.Host == "" {
		return ""
	}
	return hostOf(parsed)
}

// ErrTrusted says that a text is no prefix of URLs. The error around it says why.
var ErrTrusted = errors.New("not a prefix of webhook URLs")

// A Trusted is a prefix of URLs whose endpoints are known to want deliveries. The zero value is a prefix of nothing.
type Trusted struct{ scheme, host, path string }

// ParseTrusted reads a prefix such as https://hooks.example.com/events: scheme, host and port count exactly, the path up to the end
// of a segment, so that it is one of …/events/a and not of …/events-a. The error wraps [ErrTrusted].
func ParseTrusted(text string) (Trusted, error) {
	parsed, err := url.Parse(text)
	switch {
	case err != nil || parsed.Scheme != "https" && parsed.Scheme != "http" || parsed.Hostname() == "":
		return Trusted{}, fmt.Errorf("%w: it must begin with https:// and a host", ErrTrusted)
	case parsed.User != nil || strings.ContainsAny(text, "?#"):
		return Trusted{}, fmt.Errorf("%w: it may hold no user, query or fragment", ErrTrusted)
	}
	path, ok := plainPath(parsed)
	if !ok {
		return Trusted{}, fmt.Errorf("%w: its path may hold no empty, . or .. segments, no escaped slashes or percent signs, no backslashes and no semicolons", ErrTrusted)
	}
	return Trusted{scheme: parsed.Scheme, host: hostOf(parsed), path: path}, nil
}

// Covers reports whether it is a prefix of a URL that [Sender.CheckURL] let pass.
func (t Trusted) Covers(raw string) bool {
	parsed, err := url.Parse(raw)
	if err != nil || t.host == "" || parsed.Scheme != t.scheme || hostOf(parsed) != t.host {
		return false
	}
	path, ok := plainPath(parsed)
	return ok && within(path, t.path)
}

// plainPath is a URL's path, if it means the same to everybody who reads it: one that a server may take for another, such as by
// unescaping it twice, is none.
func plainPath(parsed *url.URL) (path string, ok bool) {
	path = parsed.Path
	if path == "" {
		path = "/"
	}
	escaped := strings.ToLower(parsed.EscapedPath())
	if path[0] != '/' || strings.Contains(escaped, "%2f") || strings.ContainsAny(path, "\\;%\x00") {
		return "", false
	}
	segments := strings.Split(path[1:], "/")
	for i, segment := range segments {
		if segment == "." || segment == ".." || segment == "" && i < len(segments)-1 {
			return "", false
		}
	}
	return path, true
}

// within reports whether a path begins with a prefix that ends where a segment does.
func within(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || strings.HasSuffix(prefix, "/") || rest[0] == '/')
}
