package main

import (
	"context"
	"strings"
	"testing"

	"github.com/rouse-dev/rouse/rousetest"
)

func TestRunStopsWhenAsked(t *testing.T) {
	rousetest.NewCore(t).Setenv()
	for _, stateful := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := run(ctx, "127.0.0.1:0", false, stateful); err != nil {
			t.Error(err)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	t.Setenv("WAKESHIFT_KEY", "")
	if err := run(t.Context(), "127.0.0.1:0", false, false); err == nil || !strings.Contains(err.Error(), "WAKESHIFT_KEY") {
		t.Errorf("without a key: %v", err)
	}
	rousetest.NewCore(t).Setenv()
	if err := run(t.Context(), "nowhere.invalid:1", false, false); err == nil {
		t.Error("an address that cannot be listened on is accepted")
	}
}
