package server

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// clientAddress is the address a request came from: of the addresses in X-Forwarded-For and the connection's own, the last
// that is no trusted proxy's. The zero Addr stands for a connection without one.
func clientAddress(r *http.Request, proxies []netip.Prefix) netip.Addr {
	client := parseHop(r.RemoteAddr)
	trusted := func(hop netip.Addr) bool {
		return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(hop) })
	}
	if !trusted(client) {
		return client
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(hops) {
		hop := parseHop(strings.TrimSpace(text))
		if !hop.IsValid() {
			return client // what a trusted proxy did not write in good form says nothing
		}
		client = hop
		if !trusted(hop) {
			return client
		}
	}
	return client
}

// parseHop reads an address with or without a port; the zero Addr when it is none.
func parseHop(text string) netip.Addr {
	if with, err := netip.ParseAddrPort(text); err == nil {
		return with.Addr().Unmap().WithZone("")
	}
	address, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return address.Unmap().WithZone("")
}

// streams counts the open streams of each client address. A network of IPv6 counts as one, since one client has all of it.
type streams struct {
	most int // 0: no limit

	mu    sync.Mutex
	count map[netip.Addr]int
}

// open counts one more stream, or reports that there are too many. Each one that was opened must be closed.
func (s *streams) open(client netip.Addr) bool {
	client = network(client)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most > 0 && s.count[client] >= s.most {
		return false
	}
	if s.count == nil {
		s.count = map[netip.Addr]int{}
	}
	s.count[client]++
	return true
}

func (s *streams) close(client netip.Addr) {
	client = network(client)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count[client]--; s.count[client] == 0 {
		delete(s.count, client)
	}
}

// network is what one client is counted by: an address of IPv4, the /64 of one of IPv6.
func network(client netip.Addr) netip.Addr {
	if !client.Is6() {
		return client
	}
	prefix, err := client.Prefix(64)
	if err != nil {
		return client
	}
	return prefix.Addr()
}
