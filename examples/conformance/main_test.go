package main

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/rousetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRunStopsWhenAsked(t *testing.T) {
	rousetest.NewCore(t).Setenv()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, "127.0.0.1:0"); err != nil {
		t.Error(err)
	}
}

func TestRunRefuses(t *testing.T) {
	t.Setenv("WAKESHIFT_KEY", "")
	if err := run(t.Context(), "127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), "WAKESHIFT_KEY") {
		t.Errorf("without a key: %v", err)
	}
}
