package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// begins counts how many attempts at a host are let through, and keeps them under way.
func begins(h *hosts, name string, at time.Time) (tries []*try) {
	for {
		t, ok := h.begin(name, fmt.Sprintf("w%d", len(tries)), at)
		if !ok {
			return tries
		}
		tries = append(tries, t)
	}
}

// answers lets one attempt at a host be answered.
func answers(h *hosts, name string, at time.Time) {
	if one, ok := h.begin(name, "w", at); ok {
		h.end(one, answered, at)
	}
}

// fails lets attempts at a host fail, one after another.
func fails(t *testing.T, h *hosts, name, webhook string, is verdict, times int, at time.Time) {
	t.Helper()
	for range times {
		one, ok := h.begin(name, webhook, at)
		if !ok {
			t.Fatalf("%s is not let through", name)
		}
		h.end(one, is, at)
	}
}

func TestAHostHasSoManyAttempts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(h *hosts)
		want   int
	}{
		"nothing is known of": {func(*hosts) {}, freshAttempts},
		"answers":             {func(h *hosts) { answers(h, "a", noon) }, hostAttempts},
		"proved itself":       {func(h *hosts) { h.proved("a", noon) }, freshAttempts},
		"answered long ago":   {func(h *hosts) { answers(h, "a", noon.Add(-heardFor)) }, freshAttempts},
		"failed last":         {func(h *hosts) { answers(h, "a", noon); fails(t, h, "a", "w", dead, 1, noon) }, doubtedAttempts},
		"failed and answered": {func(h *hosts) { fails(t, h, "a", "w", dead, 2, noon); fails(t, h, "a", "w", answered, 1, noon) }, hostAttempts},
		"was broken off":      {func(h *hosts) { fails(t, h, "a", "w", unheard, 9, noon) }, freshAttempts},
		"keeps one waiting": {func(h *hosts) {
			answers(h, "a", noon.Add(-slowAfter))
			_, _ = h.begin("a", "w", noon.Add(-slowAfter))
		}, doubtedAttempts - 1},
		"answered since": {func(h *hosts) {
			_, _ = h.begin("a", "w", noon.Add(-slowAfter))
			answers(h, "a", noon.Add(-slowAfter/2))
		}, hostAttempts - 1},
	} {
		h := new(hosts)
		c.before(h)
		if got := len(begins(h, "a", noon)); got != c.want {
			t.Errorf("one that %s: %d attempts, want %d", name, got, c.want)
		}
	}
}

func TestTheNodeHasSoManyAttempts(t *testing.T) {
	t.Parallel()
	h := new(hosts)
	made := 0
	for i := range 100 {
		name := fmt.Sprintf("h%d", i)
		answers(h, name, noon)
		made += len(begins(h, name, noon))
	}
	if made != maxAttempts || h.free() != 0 {
		t.Errorf("%d attempts, and %d more", made, h.free())
	}
}

// Whatever the number of hosts that fail, keep waiting or are new, those that answer have workers left.
func TestDeadHostsLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	h := new(hosts)
	answers(h, "well", noon)
	failing, fresh := 0, 0
	for i := range 1000 {
		name := fmt.Sprintf("failing%d", i)
		answers(h, name, noon)
		if one, ok := h.begin(name, "w", noon); ok {
			h.end(one, dead, noon)
		}
		failing += len(begins(h, name, noon))
	}
	if failing != maxDoubted {
		t.Errorf("%d attempts at hosts that fail, want %d", failing, maxDoubted)
	}
	for i := range 1000 {
		fresh += len(begins(h, fmt.Sprintf("fresh%d", i), noon))
	}
	if fresh != maxFresh {
		t.Errorf("%d attempts at hosts that are new, want %d", fresh, maxFresh)
	}
	later := noon.Add(slowAfter)
	if got := len(begins(h, "fresh0", later)) + len(begins(h, "failing0", later)); got != 0 {
		t.Errorf("%d more attempts at hosts that kept waiting or failed", got)
	}
	if got := len(begins(h, "well", later)); got != hostAttempts {
		t.Errorf("%d attempts at a host that answers, want %d", got, hostAttempts)
	}
}

func TestACircuitOpensAndCloses(t *testing.T) {
	t.Parallel()
	h, at := new(hosts), noon
	fails(t, h, "a", "w", dead, opensAfter, at)
	var pauses []time.Duration
	for range 9 {
		until := h.pausedUntil("a")
		pauses = append(pauses, until.Sub(at))
		if _, ok := h.begin("a", "w", until.Add(-time.Millisecond)); ok {
			t.Fatal("tried before the pause was over")
		}
		at = until
		probe, ok := h.begin("a", "w", at)
		if !ok {
			t.Fatal("not probed after the pause")
		}
		if _, ok := h.begin("a", "w2", at); ok {
			t.Fatal("two probes at once")
		}
		h.end(probe, faulty, at)
	}
	want := []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second,
		5 * time.Minute, 5 * time.Minute, 5 * time.Minute}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Error(diff)
	}
	probe, ok := h.begin("a", "w", h.pausedUntil("a"))
	if !ok {
		t.Fatal("not probed")
	}
	h.end(probe, answered, at)
	if got := len(begins(h, "a", at)); got != hostAttempts || !h.pausedUntil("a").IsZero() {
		t.Errorf("%d attempts once it answered, paused until %v", got, h.pausedUntil("a"))
	}
}

// A probe that was broken off says nothing: the next one may go at once.
func TestAProbeThatWasBrokenOff(t *testing.T) {
	t.Parallel()
	h := new(hosts)
	fails(t, h, "a", "w", dead, opensAfter, noon)
	at := h.pausedUntil("a")
	probe, _ := h.begin("a", "w", at)
	h.end(probe, unheard, at)
	if _, ok := h.begin("a", "w", at); !ok {
		t.Error("not probed again")
	}
}

func TestFaultsOfOneWebhookOpenNoCircuit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		webhooks []string
		is       verdict
		open     bool
	}{
		"faults of one":      {[]string{"w", "w", "w", "w", "w", "w", "w"}, faulty, false},
		"faults of several":  {[]string{"w", "w", "w", "v", "w"}, faulty, true},
		"no answer to one":   {[]string{"w", "w", "w", "w", "w"}, dead, true},
		"few without answer": {[]string{"w", "v", "u", "t"}, dead, false},
	} {
		h := new(hosts)
		for _, webhook := range c.webhooks {
			fails(t, h, "a", webhook, c.is, 1, noon)
		}
		if got := !h.pausedUntil("a").IsZero(); got != c.open {
			t.Errorf("%s: open is %v", name, got)
		}
	}
}

// Attempts that began before the circuit opened do not lengthen its pause.
func TestLateFailuresDoNotLengthenThePause(t *testing.T) {
	t.Parallel()
	h := new(hosts)
	answers(h, "a", noon)
	for _, one := range begins(h, "a", noon) {
		h.end(one, dead, noon.Add(time.Second))
	}
	if got, want := h.pausedUntil("a"), noon.Add(time.Second+firstPause); !got.Equal(want) {
		t.Errorf("paused until %v, want %v", got, want)
	}
}

func TestFullHostsAreListed(t *testing.T) {
	t.Parallel()
	h := new(hosts)
	answers(h, "well", noon)
	answers(h, "busy", noon)
	begins(h, "busy", noon)
	fails(t, h, "open", "w", dead, opensAfter, noon)
	fails(t, h, "later", "w", dead, opensAfter, noon.Add(time.Second))
	names, next := h.full(noon.Add(time.Second), 10)
	slices.Sort(names)
	if diff := cmp.Diff([]string{"busy", "later", "open"}, names); diff != "" || !next.Equal(noon.Add(firstPause)) {
		t.Errorf("%s, next %v", diff, next)
	}
	if names, _ := h.full(noon, 2); len(names) != 2 {
		t.Errorf("%q, want 2", names)
	}
	names, _ = h.full(noon.Add(firstPause), 10)
	slices.Sort(names)
	if diff := cmp.Diff([]string{"busy", "later"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestHostsAreForgottenInTime(t *testing.T) {
	t.Parallel()
	h := new(hosts)
	fails(t, h, "open", "w", dead, opensAfter, noon)
	_, _ = h.begin("busy", "w", noon)
	for i := range 3 * maxHosts {
		answers(h, fmt.Sprintf("h%d", i), noon)
	}
	if len(h.known) > maxHosts {
		t.Errorf("%d are remembered", len(h.known))
	}
	if h.pausedUntil("open").IsZero() || h.known["busy"] == nil {
		t.Error("one that fails, or is in use, was forgotten before those that are well and idle")
	}
}
