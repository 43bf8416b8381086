package webhook_test

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/wakepath/webhook"
)

func TestCheckURL(t *testing.T) {
	t.Parallel()
	const (
		https    = "not a URL to deliver to: it must begin with https://"
		loopback = "not a URL to deliver to: http is only for localhost and loopback addresses: use https"
		letters  = "not a URL to deliver to: it may hold no spaces, backslashes, control characters or letters beyond ASCII"
		unread   = "not a URL to deliver to: it cannot be read"
		nobody   = "not a URL to deliver to: it names no host"
		user     = "not a URL to deliver to: it may hold no user or password"
		fragment = "not a URL to deliver to: it may hold no fragment"
		port     = "not a URL to deliver to: its port must be a number from 1 to 65535"
		host     = "not a URL to deliver to: its host is neither a name nor an address"
		number   = "not a URL to deliver to: its host looks like an address but is not one in the usual form"
		long     = "not a URL to deliver to: longer than 2048 characters"
	)
	exactly := "https://a.example/" + strings.Repeat("x", 2048-len("https://a.example/"))
	for _, c := range []struct{ url, strict, dev string }{
		{"https://hooks.example.com/a/b?c=d&e=%20", "", ""},
		{"https://hooks.example.com", "", ""},
		{"HTTPS://Hooks.Example.COM./x", "", ""},
		{"https://hooks.example.com:8443/x", "", ""},
		{"https://xn--bcher-kva.example/", "", ""},
		{"https://under_score.example/", "", ""},
		{"https://1.2.3.4/", "", ""},
		{"https://[2606:4700::1111]:443/", "", ""},
		{"https://127.0.0.1/", "", ""}, // whether it may be dialled is asked when it is
		{"https://localhost/", "", ""},
		{"https://3com.example/", "", ""},
		{exactly, "", ""},
		{exactly + "x", long, long},

		{"http://localhost:8080/x", https, ""},
		{"http://LOCALHOST/", https, ""},
		{"http://127.0.0.1:9/x", https, ""},
		{"http://127.9.9.9/x", https, ""},
		{"http://[::1]:9/x", https, ""},
		{"http://[::ffff:127.0.0.1]/x", https, ""},
		{"http://hooks.example.com/x", https, loopback},
		{"http://localhost.example/x", https, loopback},
		{"http://10.0.0.1/x", https, loopback},
		{"http://127.0.0.1.example/", https, loopback},
		{"http://127.1/", https, loopback},

		{"", https, https},
		{"hooks.example.com/x", https, https},
		{"//hooks.example.com/x", https, https},
		{"ftp://hooks.example.com/x", https, https},
		{"file:///etc/passwd", https, https},
		{"javascript:alert(1)", https, https},
		{"https:hooks.example.com", nobody, nobody},
		{"https:///x", nobody, nobody},
		{"https://:443/", nobody, nobody},
		{"https://", nobody, nobody},

		{"https://user@hooks.example.com/", user, user},
		{"https://user:pass@hooks.example.com/", user, user},
		{"https://@hooks.example.com/", user, user},
		{"https://hooks.example.com@127.0.0.1/", user, user},
		{"https://hooks.example.com:443@127.0.0.1:80/", user, user},
		{"https://hooks.example.com%40127.0.0.1/", unread, unread},
		{"https://127.0.0.1\\@hooks.example.com/", letters, letters},
		{"https://hooks.example.com/#x", fragment, fragment},
		{"https://hooks.example.com/#", fragment, fragment},
		{"https://hooks.example.com#@127.0.0.1/", fragment, fragment},

		{"https://hooks.example.com:/", port, port},
		{"https://hooks.example.com:0/", port, port},
		{"https://hooks.example.com:65536/", port, port},
		{"https://hooks.example.com:x/", unread, unread},
		{"https://hooks.example.com:-1/", unread, unread},
		{"https://hooks.example.com:80:80/", unread, unread},

		{"https://2130706433/", number, number},
		{"https://0x7f000001/", number, number},
		{"https://0x7f.1/", number, number},
		{"https://0X7F.0X1/", number, number},
		{"https://017700000001/", number, number},
		{"https://0177.0.0.1/", number, number},
		{"https://127.1/", number, number},
		{"https://127.0.1/", number, number},
		{"https://127.0.0.1./", number, number},
		{"https://127.0.0.01/", number, number},
		{"https://1.2.3.4.5/", number, number},
		{"https://256.1.1.1/", number, number},
		{"https://example.0x1/", number, number},
		{"https://１２７.０.０.１/", letters, letters},
		{"https://127。0。0。1/", letters, letters},

		{"https://[fe80::1%25eth0]/", host, host},
		{"https://[::1/", unread, unread},
		{"https://[localhost]/", unread, unread},
		{"https://..example/", host, host},
		{"https://.example/", host, host},
		{"https://a..example/", host, host},
		{"https://./", host, host},
		{"https://a*b.example/", host, host},
		{"https://" + strings.Repeat("a.", 130) + "example/", host, host},

		{"https://hooks.example.com/a b", letters, letters},
		{" https://hooks.example.com/", letters, letters},
		{"https://hooks.example.com/\r\nHost: x", letters, letters},
		{"https://hooks.example.com/\x00", letters, letters},
		{"https://hooks.example.com/\x7f", letters, letters},
		{"https://hooks.example.com/é", letters, letters},
		{"https://hooks.example.com/%zz", unread, unread},
	} {
		strict := webhook.New(webhook.Options{}).CheckURL(c.url)
		dev := webhook.New(webhook.Options{AllowHTTP: true, AllowPrivate: true}).CheckURL(c.url)
		if diff := cmp.Diff([]string{c.strict, c.dev}, []string{text(strict), text(dev)}); diff != "" {
			t.Errorf("%.100q: %s", c.url, diff)
		}
		if strict != nil && !errors.Is(strict, webhook.ErrURL) {
			t.Errorf("%.100q: %v is no ErrURL", c.url, strict)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// FuzzCheckURL looks at what was accepted with its own eyes.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{"https://a.example:1/?x#y", "http://127.0.0.1", "https://a@b", "https://[::1%25a]", "https://0x7f.1", "https://127.0.0.1."} {
		f.Add(seed)
	}
	sender := webhook.New(webhook.Options{AllowHTTP: true, AllowPrivate: true})
	f.Fuzz(func(t *testing.T, raw string) {
		if err := sender.CheckURL(raw); err != nil {
			if !errors.Is(err, webhook.ErrURL) {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		parsed, err := url.Parse(raw)
		if err != nil || parsed.User != nil || parsed.Fragment != "" || parsed.Host == "" || strings.ContainsAny(parsed.Host, "@\\/ %") {
			t.Fatalf("%q was accepted", raw)
		}
		address, err := netip.ParseAddr(parsed.Hostname())
		here := err == nil && address.Unmap().IsLoopback() || strings.ToLower(parsed.Hostname()) == "localhost"
		if !strings.EqualFold(parsed.Scheme, "https") && !(strings.EqualFold(parsed.Scheme, "http") && here) {
			t.Fatalf("%q was accepted", raw)
		}
	})
}
