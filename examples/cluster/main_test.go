package main

import (
	"context"
	"net"
	"strings"
	"testing"
)

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), "127.0.0.1:0", nil); err == nil || !strings.Contains(err.Error(), "nodes") {
		t.Errorf("without nodes: %v", err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if err := run(t.Context(), taken.Addr().String(), []string{"127.0.0.1:1"}); err == nil {
		t.Error("an address that is taken is listened on")
	}
}

func TestRunStopsWhenAsked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, "127.0.0.1:0", []string{"127.0.0.1:1"}); err != nil {
		t.Error(err)
	}
}
