package monitor_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/wake"
)

func publish(t *testing.T, b *coretest.Bench, text string, topics ...string) {
	t.Helper()
	if _, err := b.Core.Publish(t.Context(), b.App, core.Publish{Topics: topics, Text: text}); err != nil {
		t.Fatal(err)
	}
}

func subscribeTopic(t *testing.T, b *coretest.Bench, call wake.Call, topic string, o core.TopicOptions) core.Subscribed {
	t.Helper()
	done, err := b.Core.SubscribeTopic(t.Context(), b.App, call, topic, o)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// wholes are the subjects at the address in a line's whole.
func wholes(t *testing.T, h http.Handler, line string) []string {
	t.Helper()
	var l struct{ Whole string }
	if err := json.Unmarshal([]byte(line), &l); err != nil || l.Whole == "" {
		t.Fatalf("%s, %v", line, err)
	}
	given := get(t, h, strings.TrimPrefix(l.Whole, "http://core.test"))
	synctest.Wait()
	return given.subjects(t)
}

// A digest of a replay gives what the replay brings, and not what lies between in the log; what comes after it is a digest of its own.
func TestAReplayIsFoldedForItself(t *testing.T) {
	inBubble(t, func(t *testing.T, b *coretest.Bench, h http.Handler) {
		done := subscribeTopic(t, b, claude, "t", core.TopicOptions{})
		for i := range 100 {
			publish(t, b, fmt.Sprintf("t%d", i), "t")
			publish(t, b, fmt.Sprintf("u%d", i), "u")
		}
		call := claude
		call.Session = done.Session
		subscribeTopic(t, b, call, "u", core.TopicOptions{Replay: time.Hour})
		w := run(t, h, done.Addition.Text, "")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		got := w.subjects(t)
		if len(got) != 11 || got[0] != "u0" || got[8] != "u8" {
			t.Fatalf("lines: %q", got)
		}
		if folded := wholes(t, h, w.lines[9].line); len(folded) != 91 || folded[0] != "u9" || folded[90] != "u99" {
			t.Errorf("the digest gives %d: %q", len(folded), folded)
		}
		if folded := wholes(t, h, w.lines[10].line); len(folded) != 100 || folded[0] != "t0" || folded[99] != "t99" {
			t.Errorf("the digest after it gives %d: %q", len(folded), folded)
		}
		w.stop()
		again := run(t, h, done.Addition.Text, "")
		synctest.Wait()
		if got := again.subjects(t); len(got) != 0 {
			t.Errorf("came again: %q", got)
		}
	})
}

func TestAReplayedMessageIsGivenInFull(t *testing.T) {
	inBubble(t, func(t *testing.T, b *coretest.Bench, h http.Handler) {
		long := strings.Repeat("x", 2000)
		publish(t, b, long, "t")
		w := run(t, h, subscribeTopic(t, b, claude, "t", core.TopicOptions{Replay: time.Hour, Once: true}).Addition.Text, "")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(w.lines) != 1 || !w.ended() || w.cut {
			t.Fatalf("%d lines, ended %v, cut %v", len(w.lines), w.ended(), w.cut)
		}
		if got := wholes(t, h, w.lines[0].line); len(got) != 1 || got[0] != long {
			t.Errorf("the address gives %d messages", len(got))
		}
	})
}
