package webhook_test

import (
	"net/netip"
	"testing"

	"github.com/rouse-dev/rouse/internal/wakepath/webhook"
)

func TestIsPublic(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		// Around the edges of each block of the IPv4 registry.
		"0.0.0.0": false, "0.255.255.255": false, "1.0.0.0": true,
		"9.255.255.255": true, "10.0.0.0": false, "10.255.255.255": false, "11.0.0.0": true,
		"100.63.255.255": true, "100.64.0.0": false, "100.127.255.255": false, "100.128.0.0": true,
		"126.255.255.255": true, "127.0.0.1": false, "127.255.255.255": false, "128.0.0.0": true,
		"169.253.255.255": true, "169.254.0.0": false, "169.254.169.254": false, "169.254.255.255": false, "169.255.0.0": true,
		"172.15.255.255": true, "172.16.0.0": false, "172.31.255.255": false, "172.32.0.0": true,
		"191.255.255.255": true, "192.0.0.0": false, "192.0.0.9": false, "192.0.0.255": false, "192.0.1.0": true,
		"192.0.2.0": false, "192.0.2.255": false, "192.0.3.0": true,
		"192.31.195.255": true, "192.31.196.0": false, "192.31.197.0": true,
		"192.52.192.255": true, "192.52.193.0": false, "192.52.194.0": true,
		"192.88.98.255": true, "192.88.99.0": false, "192.88.99.255": false, "192.88.100.0": true,
		"192.167.255.255": true, "192.168.0.0": false, "192.168.255.255": false, "192.169.0.0": true,
		"192.175.47.255": true, "192.175.48.0": false, "192.175.49.0": true,
		"198.17.255.255": true, "198.18.0.0": false, "198.19.255.255": false, "198.20.0.0": true,
		"198.51.99.255": true, "198.51.100.0": false, "198.51.100.255": false, "198.51.101.0": true,
		"203.0.112.255": true, "203.0.113.0": false, "203.0.113.255": false, "203.0.114.0": true,
		"223.255.255.255": true, "224.0.0.0": false, "239.255.255.255": false, "240.0.0.0": false, "255.255.255.255": false,

		// IPv6: loopback, unspecified, IPv4 in IPv6 in each way, local, multicast, documentation, the rest of the registry.
		"::": false, "::1": false, "::127.0.0.1": false, "::8.8.8.8": false,
		"::ffff:127.0.0.1": false, "::ffff:7f00:1": false, "::ffff:169.254.169.254": false, "::ffff:0.0.0.0": false, "::ffff:8.8.8.8": true,
		"::ffff:0:127.0.0.1": false, "::ffff:0:8.8.8.8": false,
		"64:ff9b::127.0.0.1": false, "64:ff9b::10.0.0.1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b::": false,
		"64:ff9b::8.8.8.8": true, "64:ff9b:0:0:0:1:8.8.8.8": false,
		"64:ff9b:1::": false, "64:ff9b:1::8.8.8.8": false, "64:ff9b:1:ffff:ffff:ffff:ffff:ffff": false, "64:ff9b:2::8.8.8.8": false,
		"100::": false, "100::1": false, "100:0:0:1::": false,
		"1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff": false, "2000::": true,
		"2001::": false, "2001:0:7f00:1::": false, "2001:0:808:808:0:0:f7f7:f7f7": false, "2001:1::1": false, "2001:2::": false, "2001:3::": false,
		"2001:4:112::": false, "2001:10::": false, "2001:20::": false, "2001:30::": false, "2001:1ff:ffff::": false, "2001:200::": true,
		"2001:db7:ffff::": true, "2001:db8::": false, "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff": false, "2001:db9::": true,
		"2002::": false, "2002:7f00:1::": false, "2002:a9fe:a9fe::1": false, "2002:808:808::1": false, "2003::": true,
		"2606:4700::1111": true, "2620:4f:7fff::": true, "2620:4f:8000::": false, "2620:4f:8001::": true,
		"3ffe:ffff::": true, "3fff::": false, "3fff:fff:ffff::": false, "3fff:1000::": true,
		"4000::": false, "5f00::": false, "fbff::": false, "fc00::": false, "fd00::1": false, "fdff::": false,
		"fe80::1": false, "febf::1": false, "fec0::1": false, "ff02::1": false, "ff0e::1": false,
		"fe80::1%eth0": false, "2606:4700::1111%eth0": false,
	} {
		address, err := netip.ParseAddr(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := webhook.IsPublic(address); got != want {
			t.Errorf("%s: public is %v, want %v", text, got, want)
		}
	}
	if webhook.IsPublic(netip.Addr{}) {
		t.Error("no address at all is public")
	}
}

// FuzzIsPublic holds the table against what the standard library knows of addresses.
func FuzzIsPublic(f *testing.F) {
	f.Add([]byte{127, 0, 0, 1})
	f.Add([]byte{8, 8, 8, 8})
	f.Add([]byte("\x00\x64\xff\x9b\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, bytes []byte) {
		address, ok := netip.AddrFromSlice(bytes)
		if !ok || !webhook.IsPublic(address) {
			return
		}
		plain := address.Unmap()
		if plain.IsLoopback() || plain.IsPrivate() || plain.IsMulticast() || plain.IsUnspecified() || !plain.IsGlobalUnicast() {
			t.Fatalf("%s is public", address)
		}
		if mapped := netip.AddrFrom16(address.As16()); !webhook.IsPublic(mapped) {
			t.Fatalf("%s is public, but %s is not", address, mapped)
		}
	})
}
