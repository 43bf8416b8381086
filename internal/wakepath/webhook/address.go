package webhook

import (
	"net/netip"
	"slices"
)

// special4 are the blocks of the IANA IPv4 special-purpose registry, and multicast. All of it is refused, also the few
// blocks the registry calls reachable: they are anycast relays and sinks, where no receiver lives.
var special4 = prefixes(
	"0.0.0.0/8",       // this network
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // carrier NAT
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link local, with the metadata services of clouds
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // IETF protocol assignments
	"192.0.2.0/24",    // documentation
	"192.31.196.0/24", // AS112 sinks
	"192.52.193.0/24", // AMT relays
	"192.88.99.0/24",  // 6to4 relays
	"192.168.0.0/16",  // private
	"192.175.48.0/24", // AS112 sinks
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, with the broadcast address
)

// global6 is all the address space IANA has given out for IPv6 unicast. Everything outside it is loopback, local, mapped,
// multicast or reserved.
var global6 = netip.MustParsePrefix("2000::/3")

// special6 are the blocks of the IANA IPv6 special-purpose registry inside global6. 6to4 and Teredo carry an IPv4 address
// that a relay would dial; both are given up as protocols, so they are refused whatever that address is.
var special6 = prefixes(
	"2001::/23",         // IETF protocol assignments: Teredo, benchmarks, ORCHID and others
	"2001:db8::/32",     // documentation
	"2002::/16",         // 6to4
	"2620:4f:8000::/48", // AS112 sinks
	"3fff::/20",         // documentation
)

// nat64 is where networks with IPv6 alone find the IPv4 internet: the last four bytes are the address that is dialled.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func prefixes(texts ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		parsed[i] = netip.MustParsePrefix(text)
	}
	return parsed
}

// isPublic reports whether a packet to the address leaves for the open internet.
func isPublic(address netip.Addr) bool {
	address = address.Unmap()
	contains := func(block netip.Prefix) bool { return block.Contains(address) }
	switch {
	case !address.IsValid() || address.Zone() != "":
		return false
	case address.Is4():
		return !slices.ContainsFunc(special4, contains)
	case nat64.Contains(address):
		bytes := address.As16()
		return isPublic(netip.AddrFrom4([4]byte(bytes[12:])))
	default:
		return global6.Contains(address) && !slices.ContainsFunc(special6, contains)
	}
}
