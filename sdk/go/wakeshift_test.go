package wakeshift_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

func TestNewReadsTheEnvironment(t *testing.T) {
	core := startCore(t)
	t.Setenv("WAKESHIFT_KEY", core.key)
	t.Setenv("WAKESHIFT_CORE", core.URL+"/")
	wake, err := wakeshift.New()
	if err != nil {
		t.Fatal(err)
	}
	defer wake.Close()
	finished := define(t, wake, "crawl.finished", crawlEvent())
	if _, err := finished.Emit(t.Context(), crawlArgs{"j1"}, crawl{1}); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	key, _ := newKey()
	testKey := "wst_test_my-app_" + base64.RawURLEncoding.EncodeToString(make([]byte, 32))
	for name, test := range map[string]struct{ key, core, want string }{
		"no key":           {"", "", "WAKESHIFT_KEY"},
		"blank key":        {" ", "", "WAKESHIFT_KEY"},
		"bad key":          {key[:40], "", "50 base58"},
		"test key":         {testKey, "", "WAKESHIFT_CORE"},
		"no scheme":        {key, "core.example.com", "http or https"},
		"other scheme":     {key, "ftp://core.example.com", "http or https"},
		"user in the URL":  {key, "https://me:pw@core.example.com", "without user"},
		"query in the URL": {key, "https://core.example.com?x=1", "without user, query"},
		"no host":          {key, "http://", "http or https"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("WAKESHIFT_KEY", "")
			t.Setenv("WAKESHIFT_CORE", "")
			wake, err := wakeshift.New(wakeshift.WithKey(test.key), wakeshift.WithCore(test.core))
			if err == nil {
				wake.Close()
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %q, want something of %q", err, test.want)
			}
			if strings.Contains(err.Error(), "pw@") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}

// An older key names its app, and is the same key otherwise.
func TestOlderKeySigns(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	seed := make([]byte, 32)
	copy(seed, "an older key, of thirty-two byte")
	core.key = formatKey(seed)
	older := "wst_test_my-app_" + base64.RawURLEncoding.EncodeToString(seed)
	core.public = publicOf(seed)
	wake := newWake(t, core, wakeshift.WithKey(older))
	finished := define(t, wake, "crawl.finished", crawlEvent())
	if _, err := finished.Emit(t.Context(), crawlArgs{"j1"}, crawl{1}); err != nil {
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	finished := define(t, wake, "crawl.finished", crawlEvent())
	for range 2 {
		if err := wake.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := finished.Emit(t.Context(), crawlArgs{"j1"}, crawl{1})
	if !errors.Is(err, wakeshift.ErrClosed) || !wakeshift.IsCode(err, wakeshift.CodeClosed) {
		t.Errorf("Emit after Close: %v", err)
	}
	if err := finished.Watch(crawlArgs{"j1"}, never, wakeshift.WatchOptions{}); !errors.Is(err, wakeshift.ErrClosed) {
		t.Errorf("Watch after Close: %v", err)
	}
	if got := core.seen(""); len(got) != 0 {
		t.Errorf("%d requests were made", len(got))
	}
}
