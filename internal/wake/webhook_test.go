package wake_test

import (
	"testing"

	"github.com/rouse-dev/rouse/internal/wake"
)

func TestOnlyTheHostOfAWebhookIsShown(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://Hooks.Example.com/a/secret?token=x#y": "hooks.example.com",
		"https://ada:pass@hooks.example.com:8443/":     "hooks.example.com:8443",
		"https://[2001:DB8::1]/x":                      "[2001:db8::1]",
		"no address\x00":                               "",
		"":                                             "",
	} {
		if got := wake.ShownHost(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}
