package storetest

import (
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

func testConversations(s *suite) {
	app := s.addApp()
	full := wake.Conversation{
		ID: "full", App: app.ID, Harness: "codex", Client: "codex-mcp-client", Version: "0.171", User: "ada", Thread: "t",
		Position: 17, CreatedAt: start, SeenAt: start.Add(time.Second),
	}
	bare := wake.Conversation{ID: "bare", App: app.ID}
	s.change(func(t store.Tx) error {
		return do(
			func() error { return t.PutConversation(full) },
			func() error { return t.PutConversation(bare) },
		)
	}, func(r store.Reader) {
		s.same("with everything", full, got[wake.Conversation](s)(r.Conversation("full")))
		s.same("with nothing", bare, got[wake.Conversation](s)(r.Conversation("bare")))
		s.is("none", store.ErrNotFound, fails(r.Conversation("other")))
	})

	replaced := wake.Conversation{
		ID: "full", App: app.ID, Harness: "claude-code", Client: "c", Version: "2", User: "bob", Thread: "u",
		Position: 99, CreatedAt: start.Add(time.Hour), SeenAt: start.Add(2 * time.Hour),
	}
	want := replaced
	want.Position = full.Position
	s.change(func(t store.Tx) error { return t.PutConversation(replaced) }, func(r store.Reader) {
		s.same("replaced, but for its position", want, got[wake.Conversation](s)(r.Conversation("full")))
	})
}

func testConversationOf(s *suite) {
	app, other := s.addApp(), s.addApp()
	of := func(id, app, harness, client, user, thread string) wake.Conversation {
		return wake.Conversation{
			ID: id, App: app, Harness: harness, Client: client, User: user, Thread: thread, CreatedAt: start, SeenAt: start,
		}
	}
	all := []wake.Conversation{
		of("one", app.ID, "codex", "codex-mcp-client", "ada", "t"),
		of("nobody", app.ID, "codex", "codex-mcp-client", "", "t"),
		of("client", app.ID, "", "Some-Client", "ada", "t"),
		of("elsewhere", other.ID, "codex", "codex-mcp-client", "ada", "t"),
		of("threadless", app.ID, "codex", "codex-mcp-client", "ada", ""),
		of("later", app.ID, "codex", "codex-mcp-client", "ada", "t"),
	}
	s.change(func(t store.Tx) error {
		for _, c := range all {
			if err := t.PutConversation(c); err != nil {
				return err
			}
		}
		return nil
	}, func(r store.Reader) {
		for _, c := range all[:4] {
			s.same(c.ID, c, got[wake.Conversation](s)(r.ConversationOf(c.App, c.Kind(), c.User, c.Thread)))
		}
		s.is("another user", store.ErrNotFound, fails(r.ConversationOf(app.ID, "codex", "bob", "t")))
		s.is("another kind", store.ErrNotFound, fails(r.ConversationOf(app.ID, "claude-code", "ada", "t")))
		s.is("another thread", store.ErrNotFound, fails(r.ConversationOf(app.ID, "codex", "ada", "T")))
		s.is("no thread", store.ErrNotFound, fails(r.ConversationOf(app.ID, "codex", "ada", "")))
	})

	moved := all[1]
	moved.Thread = "elsewhere"
	s.change(func(t store.Tx) error { return t.PutConversation(moved) }, func(r store.Reader) {
		s.is("by its former thread", store.ErrNotFound, fails(r.ConversationOf(app.ID, "codex", "", "t")))
		s.same("by its new one", moved, got[wake.Conversation](s)(r.ConversationOf(app.ID, "codex", "", "elsewhere")))
	})
}

func testAdvance(s *suite) {
	c := s.addConversation(s.addApp().ID)
	for _, step := range []struct{ to, want wake.Seq }{{5, 5}, {5, 5}, {4, 5}, {0, 5}, {6, 6}} {
		c.Position = step.want
		s.change(func(t store.Tx) error { return t.Advance(c.ID, step.to) }, func(r store.Reader) {
			s.same("the conversation", c, got[wake.Conversation](s)(r.Conversation(c.ID)))
		})
	}
	s.update(func(t store.Tx) error { return t.Advance("none", 7) })
}

func testHand(s *suite) {
	c := s.addConversation(s.addApp().ID)
	hand := func(id string, at, lease int) bool {
		var reserved bool
		s.update(func(t store.Tx) (err error) {
			reserved, err = t.Hand(id, start.Add(time.Duration(at)*time.Second), start.Add(time.Duration(lease)*time.Second))
			return err
		})
		return reserved
	}
	handed := func(id string, lease int) {
		s.update(func(t store.Tx) error { return t.Handed(id, start.Add(time.Duration(lease)*time.Second)) })
	}
	s.same("the first", true, hand(c.ID, 0, 10))
	s.same("another meanwhile", false, hand(c.ID, 9, 19))
	s.same("after the lease", true, hand(c.ID, 10, 20))
	handed(c.ID, 10)
	s.same("after the first one's end", false, hand(c.ID, 11, 21))
	s.update(func(t store.Tx) error { return t.PutConversation(c) })
	s.same("after the conversation was put again", false, hand(c.ID, 11, 21))
	handed(c.ID, 20)
	s.same("after its end", true, hand(c.ID, 11, 21))
	s.same("of no conversation", false, hand("none", 0, 10))
	handed("none", 10)
	s.check(func(r store.Reader) { s.same("the conversation", c, got[wake.Conversation](s)(r.Conversation(c.ID))) })
}
