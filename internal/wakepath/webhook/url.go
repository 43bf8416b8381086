package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// maxURL bounds a target's URL, in characters.
const maxURL = 2048

// ErrURL says that a URL can be no target. The error around it says why.
var ErrURL = errors.New("not a URL to deliver to")

func badURL(reason string) error { return fmt.Errorf("%w: %s", ErrURL, reason) }

// CheckURL refuses a URL that can be no target, without looking up or calling anything: it must be https, or http to
// localhost or a loopback address if the options allow that, with a host, a port of 1 to 65535 if any, no user, no fragment,
// and 2,048 characters at most, all of them ASCII. The error wraps [ErrURL].
func (s *Sender) CheckURL(raw string) error {
	if len(raw) > maxURL {
		return badURL(fmt.Sprintf("longer than %d characters", maxURL))
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return badURL("it may hold no spaces, backslashes, control characters or letters beyond ASCII")
	}
	parsed, err := url.Parse(raw)
	if err != nil {
		return badURL("it cannot be read")
	}
	host := parsed.Hostname()
	switch {
	case parsed.Scheme != "https" && !(parsed.Scheme == "http" && s.allowHTTP):
		return badURL("it must begin with https://")
	case host == "":
		return badURL("it names no host")
	case parsed.User != nil:
		return badURL("it may hold no user or password")
	case strings.Contains(raw, "#"):
		return badURL("it may hold no fragment")
	case !isPort(parsed):
		return badURL("its port must be a number from 1 to 65535")
	case parsed.Scheme == "http" && !isLoopback(host):
		return badURL("http is only for localhost and loopback addresses: use https")
	}
	return checkHost(host)
}

// isPort reports whether a URL's port is a number that can be dialled, or absent.
func isPort(parsed *url.URL) bool {
	text := parsed.Port()
	if text == "" {
		return !strings.HasSuffix(parsed.Host, ":")
	}
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

// isLoopback reports whether a host is this machine, going by its spelling.
func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// checkHost takes an address in its usual form or a name. What some resolvers take for an address (2130706433, 0x7f.1,
// 127.1) is neither.
func checkHost(host string) error {
	address, err := netip.ParseAddr(host)
	if err == nil && address.Zone() == "" {
		return nil
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	if err == nil || len(host) > 253 || strings.Trim(host, letters) != "" || strings.Contains(host, "..") || host[0] == '.' {
		return badURL("its host is neither a name nor an address")
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	last := strings.ToLower(labels[len(labels)-1])
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return badURL("its host looks like an address but is not one in the usual form")
	}
	return nil
}
