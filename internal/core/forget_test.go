package core_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// turn emits the personal event to a user.
func (b *bench) turn(to, note string) core.Emitted {
	b.Helper()
	done, err := b.core.Emit(b.Context(), b.app, core.Emit{Name: "your.turn", Arguments: json.RawMessage(`{"game":"g"}`), To: to,
		Payload: json.RawMessage(`{"note":"` + note + `"}`)})
	if err != nil {
		b.Fatal(err)
	}
	return done
}

func (b *bench) forget(user string) bool {
	b.Helper()
	forgotten, err := b.core.ForgetUser(b.Context(), b.app, user)
	if err != nil {
		b.Fatal(err)
	}
	return forgotten
}

// found lists the database's files that hold a text.
func (b *bench) found(text string) (files []string) {
	b.Helper()
	all, err := filepath.Glob(b.path + "*")
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range all {
		content, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		if strings.Contains(string(content), text) {
			files = append(files, filepath.Base(file))
		}
	}
	return files
}

func TestAUserIsForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ada := wake.Call{Client: "claude-code", User: "ada-lovelace"}
	done := b.subscribe(ada, "j1")
	if _, err := b.core.SubscribeEvent(t.Context(), b.app, ada, "your.turn", json.RawMessage(`{"game":"g"}`), false); err != nil {
		t.Fatal(err)
	}
	b.subscribe(claude, "j1")
	if _, _, err := b.core.EventPublishURL(t.Context(), b.app, "your.turn", json.RawMessage(`{"game":"g"}`), "ada-lovelace"); err != nil {
		t.Fatal(err)
	}
	b.turn("ada-lovelace", "a canary for ada")
	b.turn("bob", "a canary for bob")
	in := b.inbox(done)
	b.read(in)

	if !b.forget("ada-lovelace") {
		t.Error("there was nothing to forget")
	}
	select {
	case <-in.Changed():
	default:
		t.Error("the user's stream is not told")
	}
	if _, err := in.Read(t.Context(), 10); !errors.Is(err, core.ErrGone) || !in.Finished() {
		t.Errorf("the user's stream goes on: %v", err)
	}
	if b.forget("ada-lovelace") || b.forget("a stranger") {
		t.Error("nobody was forgotten")
	}
	if got := b.emit("j1", "1"); got.Matched != 1 {
		t.Errorf("matched %d, want the other user's", got.Matched)
	}
	again := ada
	again.Session = done.Session
	_, err := b.core.SubscribeEvent(t.Context(), b.app, again, "crawl.finished", args("j1"), false)
	b.refused(err, refusal.UnknownSession)
	if err := b.core.Scrub(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"ada-lovelace", "canary for ada"} {
		if files := b.found(text); len(files) > 0 {
			t.Errorf("%q is still in %v", text, files)
		}
	}
	if len(b.found("canary for bob")) == 0 {
		t.Error("what is kept is not found in the files either, so that this test says nothing")
	}
}

func TestForgettingChecksTheUser(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, user := range map[string]string{"empty": "", "too long": strings.Repeat("a", wake.MaxUser+1), "control characters": "a\nb"} {
		_, err := b.core.ForgetUser(t.Context(), b.app, user)
		if !refusal.Is(err, refusal.BadRequest) || !strings.HasPrefix(refusal.Of(err).Message, "user: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestForgettingIsApartPerApp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.newApp("other")
	b.subscribe(claude, "j1")
	if forgotten, err := b.core.ForgetUser(t.Context(), other, claude.User); err != nil || forgotten {
		t.Errorf("%v, %v", forgotten, err)
	}
	if got := b.emit("j1", "1"); got.Matched != 1 {
		t.Errorf("matched %d", got.Matched)
	}
}

// What a crash interrupts after its first step is finished by the next sweep.
func TestTheSweepFinishesForgetting(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 20 {
		b.turn("ada-lovelace", fmt.Sprint(i))
	}
	var step store.Forgotten
	if err := b.store.Update(t.Context(), func(tx store.Tx) (err error) {
		step, err = tx.Forget(b.app.ID, "ada-lovelace", 5)
		return err
	}); err != nil || !step.More {
		t.Fatalf("%+v, %v", step, err)
	}
	if err := b.core.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.forget("ada-lovelace") {
		t.Error("something was left to forget")
	}
}

func TestErasedContentIsScrubbedByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.turn("ada-lovelace", "a canary for ada")
		b.forget("ada-lovelace")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if files := b.found("canary"); len(files) > 0 {
			t.Errorf("still in %v", files)
		}
	})
}
