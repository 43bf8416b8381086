package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// An Addition is what the core adds to a tool result: text for the agent, _meta for its harness. It is complete for the
// conversation. Once the answer that carries it has been written, the caller calls Settle.
type Addition struct {
	Text string
	Meta map[string]any // nil for none

	settle func(context.Context) error
}

// Settle records that the held messages in the addition have been handed over.
func (a Addition) Settle(ctx context.Context) error {
	if a.settle == nil {
		return nil
	}
	return a.settle(ctx)
}

// connectorMeta is the key of a result's _meta that carries a connector's beacon; pinned by the public docs page.
const connectorMeta = "wakeshift/connector"

// ticketTTL is how long a beacon's ticket may be redeemed.
const ticketTTL = 10 * time.Minute

// Annotate is the addition to a result of any tool of the app: what waits for the calling conversation. It creates nothing; a
// call that names no conversation has none.
func (c *Core) Annotate(ctx context.Context, app wake.App, call wake.Call) (Addition, harness.Agent, error) {
	if err := call.Check(); err != nil {
		return Addition{}, harness.Agent{}, err
	}
	agent := harness.Recognise(call)
	var conversation wake.Conversation
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		conversation, err = c.find(r, app, call, agent)
		return err
	})
	if errors.Is(err, errNoConversation) {
		return Addition{}, agent, nil
	}
	if err != nil {
		return Addition{}, agent, fault(err)
	}
	addition, err := c.compose(ctx, app, call, agent, conversation, false)
	return addition, agent, fault(err)
}

// compose makes a conversation's addition. subscribed says that the call has just subscribed it to something.
func (c *Core) compose(ctx context.Context, app wake.App, call wake.Call, agent harness.Agent, conversation wake.Conversation, subscribed bool) (Addition, error) {
	setup := harness.Setup{App: app.Name, SessionKey: c.master.Mint(credential.SessionKey, conversation.ID),
		Listening: c.presence.via(conversation.ID) != ""}
	switch agent.Path {
	case harness.PathMonitor:
		setup.Command = c.monitorCommand(conversation)
		if subscribed {
			return Addition{Text: harness.MonitorText(setup)}, nil
		}
		return c.remind(ctx, conversation, setup)
	case harness.PathConnector:
		return c.beacon(call, conversation, setup, subscribed)
	case harness.PathVoucher:
		return c.vouch(ctx, app, conversation, setup, subscribed)
	case harness.PathNative:
		return Addition{}, nil
	}
	return c.held(ctx, app, conversation, setup, subscribed)
}

// monitorCommand is what Claude Code's Monitor runs. Its form is pinned; what is in it: curl fails on an error status and on a
// stream cut short, so that the loop tries again, and succeeds on a clean end and on 204, so that the loop ends. A silent minute
// is a dead connection, since the stream has a blank line every 20 s.
func (c *Core) monitorCommand(conversation wake.Conversation) string {
	// Conversations wait differently long, lest all come back at once after a restart.
	pause := 2 + int(conversation.ID[0])%5
	return fmt.Sprintf(`u='%s/w/%s'; until curl -sfN --connect-timeout 10 --speed-limit 1 --speed-time 60 "$u"; do sleep %d; done`,
		c.publicURL, c.master.Mint(credential.Stream, conversation.ID), pause)
}

// remind is for a conversation whose Monitor does not run while messages wait.
func (c *Core) remind(ctx context.Context, conversation wake.Conversation, setup harness.Setup) (Addition, error) {
	if setup.Listening {
		return Addition{}, nil
	}
	waiting, err := c.waiting(ctx, conversation)
	if err != nil || len(waiting.occurrences) == 0 {
		return Addition{}, err
	}
	return Addition{Text: harness.MonitorReminder(setup, len(waiting.occurrences))}, nil
}

// beacon hands a connector its ticket.
func (c *Core) beacon(call wake.Call, conversation wake.Conversation, setup harness.Setup, subscribed bool) (Addition, error) {
	if !subscribed {
		return Addition{}, nil
	}
	at := now()
	token, err := c.master.SignBeacon(credential.Beacon{
		Issuer: c.publicURL, Redeem: c.publicURL + "/redeem", Tool: call.Tool, Issued: at, Expires: at.Add(ticketTTL),
		Ticket: c.master.MintTicket(credential.Ticket{Conversation: conversation.ID, Nonce: credential.NewID(), Expires: at.Add(ticketTTL)}),
	})
	if err != nil {
		return Addition{}, err
	}
	return Addition{Text: harness.ConnectorText(setup), Meta: map[string]any{connectorMeta: token}}, nil
}

// vouch hands ChatGPT a voucher for each subscription it has not claimed yet. Until it does, messages are held for it.
func (c *Core) vouch(ctx context.Context, app wake.App, conversation wake.Conversation, setup harness.Setup, subscribed bool) (Addition, error) {
	addition, err := c.held(ctx, app, conversation, setup, false)
	if err != nil || !subscribed {
		return addition, err
	}
	var subs []wake.Subscription
	if err := c.store.View(ctx, func(r store.Reader) (err error) {
		subs, err = r.SubscriptionsOf(conversation.ID)
		return err
	}); err != nil {
		return Addition{}, err
	}
	for _, s := range subs {
		if s.Event != "" && s.Live(now()) && !s.Claimed {
			setup.Vouchers = append(setup.Vouchers, harness.Voucher{Event: s.Event, Arguments: string(s.Arguments), Code: c.voucher(s)})
		}
	}
	if len(setup.Vouchers) > 0 {
		addition.Text = join(harness.VoucherText(setup), addition.Text)
	}
	return addition, nil
}

func (c *Core) voucher(s wake.Subscription) string {
	return c.master.MintVoucher(strings.TrimPrefix(s.ID, "sub_"))
}

// How many held messages ride on one result, and how much of each.
const (
	maxHeld     = 20
	maxHeldData = 400
	maxHeldText = 1000
)

// held puts what waits for a conversation on its result.
func (c *Core) held(ctx context.Context, app wake.App, conversation wake.Conversation, setup harness.Setup, subscribed bool) (Addition, error) {
	var addition Addition
	if subscribed {
		addition.Text = harness.HeldText(setup)
	}
	page, err := c.waiting(ctx, conversation)
	if err != nil {
		return Addition{}, err
	}
	messages := c.messages(page.occurrences)
	if len(messages) == 0 {
		return addition, nil
	}
	more := max(0, len(messages)-maxHeld)
	messages = messages[:len(messages)-more]
	lines := make([]harness.Message, len(messages))
	for i, m := range messages {
		lines[i] = harness.Message{ID: m.ID, Subject: oneLine(m.Text, maxHeldText), Data: oneLine(string(m.Data), maxHeldData)}
	}
	addition.Text = join(addition.Text, harness.HeldMessages(app.Name, lines, more))
	c.accountSent(conversation, messages, "held")
	through := messages[len(messages)-1].Seq
	addition.settle = func(ctx context.Context) error { return c.settle(ctx, conversation, through, "held") }
	return addition, nil
}

// waiting reads what a conversation is owed and has not received, a little more than fits on one result.
func (c *Core) waiting(ctx context.Context, conversation wake.Conversation) (page owed, err error) {
	err = c.store.View(ctx, func(r store.Reader) error {
		current, err := r.Conversation(conversation.ID)
		if err != nil {
			return err
		}
		subs, err := r.SubscriptionsOf(conversation.ID)
		if err != nil {
			return err
		}
		page, err = readOwed(r, current, subs, current.Position, maxHeld*5)
		return err
	})
	return page, err
}

// Redeem exchanges a connector's ticket, once and for its own thread, for the address of the conversation's WebSocket.
func (c *Core) Redeem(ctx context.Context, ticket, thread string) (url string, err error) {
	refused := refusal.New(refusal.BadTicket, "the ticket is unknown, used, expired, or for another thread")
	t, ok := c.master.OpenTicket(ticket, now())
	if !ok || thread == "" {
		return "", refused
	}
	var conversation wake.Conversation
	err = c.store.View(ctx, func(r store.Reader) (err error) {
		conversation, err = r.Conversation(t.Conversation)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return "", refused
	}
	if err != nil {
		return "", fault(err)
	}
	if conversation.Thread != thread {
		return "", refused // and the ticket stays good: whoever guesses threads does not burn it
	}
	fresh, err := c.store.Spend(ctx, "ticket", t.Nonce, t.Expires)
	if err != nil {
		return "", fault(err)
	}
	if !fresh {
		return "", refused
	}
	base := "ws" + strings.TrimPrefix(c.publicURL, "http")
	return base + "/connect/" + c.master.Mint(credential.Connector, conversation.ID), nil
}

// oneLine is a text on one line of at most limit characters: a held message must not look like several.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return s
}

func join(a, b string) string { return strings.TrimSpace(a + "\n\n" + b) }
