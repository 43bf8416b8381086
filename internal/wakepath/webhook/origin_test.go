package webhook_test

import (
	"errors"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/wakepath/webhook"
)

func trusted(t testing.TB, prefix string) webhook.Trusted {
	t.Helper()
	parsed, err := webhook.ParseTrusted(prefix)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestParseTrustedRefuses(t *testing.T) {
	t.Parallel()
	const (
		begin = "not a prefix of webhook URLs: it must begin with https:// and a host"
		holds = "not a prefix of webhook URLs: it may hold no user, query or fragment"
		path  = "not a prefix of webhook URLs: its path may hold no empty, . or .. segments, no escaped slashes or percent signs, " +
			"no backslashes and no semicolons"
	)
	for _, c := range []struct{ text, want string }{
		{"https://hooks.example.com", ""},
		{"https://hooks.example.com/", ""},
		{"https://hooks.example.com:8443/a/b", ""},
		{"HTTPS://Hooks.Example.COM./a/", ""},
		{"http://localhost:8080/a", ""},
		{"https://[2606:4700::1111]/a", ""},
		{"https://hooks.example.com/a%20b", ""},

		{"", begin},
		{"hooks.example.com", begin},
		{"//hooks.example.com/a", begin},
		{"/a", begin},
		{"https:", begin},
		{"https://", begin},
		{"https:///a", begin},
		{"https://:443/a", begin},
		{"https:hooks.example.com", begin},
		{"ftp://hooks.example.com/", begin},
		{"https://hooks.example.com:port/", begin},
		{"https://hooks.example.com/%zz", begin},
		{"https://hooks.example.com/\x7f", begin},

		{"https://user@hooks.example.com/", holds},
		{"https://user:password@hooks.example.com/", holds},
		{"https://@hooks.example.com/", holds},
		{"https://hooks.example.com/?", holds},
		{"https://hooks.example.com/?a=b", holds},
		{"https://hooks.example.com/#", holds},
		{"https://hooks.example.com/#a", holds},

		{"https://hooks.example.com//", path},
		{"https://hooks.example.com//a", path},
		{"https://hooks.example.com/a//b", path},
		{"https://hooks.example.com/.", path},
		{"https://hooks.example.com/a/../b", path},
		{"https://hooks.example.com/a/..", path},
		{"https://hooks.example.com/a/%2e%2e/b", path},
		{"https://hooks.example.com/a%2fb", path},
		{"https://hooks.example.com/a%2Fb", path},
		{"https://hooks.example.com/a%252fb", path},
		{"https://hooks.example.com/a%5cb", path},
		{`https://hooks.example.com/a\b`, path},
		{"https://hooks.example.com/a;b", path},
		{"https://hooks.example.com/a%00", path},
	} {
		_, err := webhook.ParseTrusted(c.text)
		if diff := cmp.Diff(c.want, text(err)); diff != "" {
			t.Errorf("%q: %s", c.text, diff)
		}
		if err != nil && !errors.Is(err, webhook.ErrTrusted) {
			t.Errorf("%q: %v is no ErrTrusted", c.text, err)
		}
	}
}

func TestWhatATrustedPrefixCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		prefix    string
		yes, no   []string
		allowHTTP bool
	}{
		{prefix: "https://hooks.example.com/events",
			yes: []string{"https://hooks.example.com/events", "https://hooks.example.com/events/", "https://hooks.example.com/events/a/b",
				"https://hooks.example.com/events?a=b", "https://hooks.example.com/events/a?b=../c", "https://hooks.example.com:443/events",
				"HTTPS://HOOKS.Example.com/events", "https://hooks.example.com./events", "https://hooks.example.com/%65vents/a", "https://hooks.example.com/events/a%20b"},
			no: []string{"https://hooks.example.com/", "https://hooks.example.com", "https://hooks.example.com/event", "https://hooks.example.com/events-a",
				"https://hooks.example.com/eventss/a", "https://hooks.example.com/Events", "https://hooks.example.com/a/events",
				"https://hooks.example.com:8443/events", "http://hooks.example.com/events", "http://hooks.example.com:443/events",
				// Other hosts that look like it.
				"https://example.com/events", "https://hooks.example.com.evil.example/events", "https://evil-hooks.example.com/events",
				"https://evil.example/events?https://hooks.example.com/events", "https://evil.example/https://hooks.example.com/events",
				"https://hooks.example.com@evil.example/events", "https://user@hooks.example.com/events",
				// Paths that a server may take for another.
				"https://hooks.example.com/events/../admin", "https://hooks.example.com/events/..", "https://hooks.example.com/events/./a",
				"https://hooks.example.com/events/%2e%2e/admin", "https://hooks.example.com/events/%2E%2E/admin", "https://hooks.example.com/events/.%2e/admin",
				"https://hooks.example.com/events%2f..%2fadmin", "https://hooks.example.com/events%2Fa", "https://hooks.example.com/events/a%2fb",
				"https://hooks.example.com/events/%252e%252e/admin", "https://hooks.example.com/events/a%252fb",
				"https://hooks.example.com//events", "https://hooks.example.com/events//a", `https://hooks.example.com/events\..\admin`,
				"https://hooks.example.com/events/%5c..%5cadmin", "https://hooks.example.com/events/..;/admin", "https://hooks.example.com/events/a%00",
				"", "https://", "/events", "hooks.example.com/events", "https://hooks.example.com:port/events", "https://hooks.example.com/events#a"}},
		{prefix: "https://hooks.example.com/events/",
			yes: []string{"https://hooks.example.com/events/", "https://hooks.example.com/events/a", "https://hooks.example.com/events/a/b/"},
			no:  []string{"https://hooks.example.com/events", "https://hooks.example.com/events-a"}},
		{prefix: "https://hooks.example.com",
			yes: []string{"https://hooks.example.com", "https://hooks.example.com/", "https://hooks.example.com/a/b", "https://hooks.example.com?a=b"},
			no:  []string{"https://hooks.example.com:444", "https://hooks.example.co", "https://hooks.example.com//a"}},
		{prefix: "HTTPS://Hooks.Example.COM.:443/",
			yes: []string{"https://hooks.example.com/a", "https://hooks.example.com:443/a"}, no: []string{"https://hooks.example.com:80/a"}},
		{prefix: "https://hooks.example.com:8443/a",
			yes: []string{"https://hooks.example.com:8443/a/b"}, no: []string{"https://hooks.example.com/a/b", "https://hooks.example.com:443/a/b"}},
		{prefix: "http://localhost/a", allowHTTP: true,
			yes: []string{"http://localhost/a", "http://localhost:80/a", "http://LOCALHOST/a/b"},
			no:  []string{"https://localhost/a", "https://localhost:80/a", "http://localhost:8080/a", "http://127.0.0.1/a"}},
		{prefix: "https://[2606:4700::1111]/a",
			yes: []string{"https://[2606:4700::1111]:443/a"}, no: []string{"https://[2606:4700::1112]/a"}},
		// Trusted or not, what can be no target is none.
		{prefix: "http://localhost/a", no: []string{"http://localhost/a"}},
		{prefix: "http://hooks.example.com/a", allowHTTP: true, no: []string{"http://hooks.example.com/a"}},
	} {
		sender := newSender(t, webhook.Options{AllowHTTP: c.allowHTTP, Trusted: []webhook.Trusted{{}, trusted(t, c.prefix)}})
		for want, list := range map[bool][]string{true: c.yes, false: c.no} {
			for _, raw := range list {
				if got := sender.Trusts(raw); got != want {
					t.Errorf("%s: %q is trusted: %v", c.prefix, raw, got)
				}
			}
		}
	}
}

func TestTheZeroTrustedCoversNothing(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "/", "//", "https://", "https:///", "https://hooks.example.com/", ":443", "%"} {
		if (webhook.Trusted{}).Covers(raw) {
			t.Errorf("it covers %q", raw)
		}
	}
}

// Endpoints of one host share its limits, however it is spelled.
func TestHost(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://hooks.example.com/a":       "hooks.example.com:443",
		"https://hooks.example.com":         "hooks.example.com:443",
		"https://hooks.example.com:443/b":   "hooks.example.com:443",
		"HTTPS://HOOKS.example.COM./a?b":    "hooks.example.com:443",
		"https://hooks.example.com:8443/a":  "hooks.example.com:8443",
		"http://localhost/a":                "localhost:80",
		"http://127.0.0.1:9/a":              "127.0.0.1:9",
		"https://[2606:4700::1111]/a":       "[2606:4700::1111]:443",
		"https://[2606:4700::AbCd]:8443/a":  "[2606:4700::abcd]:8443",
		"":                                  "",
		"/a":                                "",
		"hooks.example.com":                 "",
		"https://hooks.example.com:port/":   "",
		"https://hooks.example.com/%zz":     "",
		"https:hooks.example.com/no/slash/": "",
	} {
		if diff := cmp.Diff(want, webhook.Host(raw)); diff != "" {
			t.Errorf("%q: %s", raw, diff)
		}
	}
}

// FuzzParseTrusted looks at what a prefix covers with its own eyes.
func FuzzParseTrusted(f *testing.F) {
	for _, seed := range [][2]string{
		{"https://a.example/b", "https://a.example/b/c"}, {"https://a.example", "https://a.example:443/b?c"}, {"http://A.example.:80/b/", "http://a.example/b/../c"},
		{"https://[::1]/", "https://[::1]/%2e%2e/"}, {"https://a.example/b", "https://a.example@b.example/b"}, {"https://a/b", "https://a/b;/c"},
		{"https://a/b%20c", "https://a/b%20c/%252e%252e"}, {"//", "\x00"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, prefix, raw string) {
		parsed, err := webhook.ParseTrusted(prefix)
		if err != nil && !errors.Is(err, webhook.ErrTrusted) {
			t.Fatalf("%q: %v", prefix, err)
		}
		if !parsed.Covers(raw) {
			return
		}
		if err != nil {
			t.Fatalf("%q is no prefix and covers %q", prefix, raw)
		}
		p, err := url.Parse(prefix)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if u.Scheme != p.Scheme || place(u) != place(p) {
			t.Fatalf("%q covers %q", prefix, raw)
		}
		// What the dots in it mean, and what a second reading of its escapes would.
		twice, err := url.PathUnescape(u.Path)
		if err != nil || twice != u.Path {
			t.Fatalf("%q covers %q", prefix, raw)
		}
		inside, outside := path.Clean("/"+u.Path), path.Clean("/"+p.Path)
		if inside != outside && !strings.HasPrefix(inside, strings.TrimSuffix(outside, "/")+"/") {
			t.Fatalf("%q covers %q", prefix, raw)
		}
	})
}

// place is the host and port that a URL names.
func place(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) + " " + port
}
