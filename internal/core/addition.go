package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// An Addition is what the core adds to a tool result: text for the agent, _meta for its harness. It is complete for the
// conversation. Once the answer that carries it has been written, or could not be, the caller calls Settle.
type Addition struct {
	Text string
	Meta map[string]any // nil for none

	settle func(ctx context.Context, arrived bool) error // nil when it holds no messages
}

// Holds reports whether there are held messages in the addition, so that Settle has something to do.
func (a Addition) Holds() bool { return a.settle != nil }

// Settle records that the held messages in the addition have arrived, or that they have not, so that the next call has them.
func (a Addition) Settle(ctx context.Context, arrived bool) error {
	if a.settle == nil {
		return nil
	}
	return a.settle(ctx, arrived)
}

// connectorMeta is the key of a result's _meta that carries a connector's beacon; pinned by the public docs page.
const connectorMeta = "wakeshift/connector"

// ticketTTL is how long a beacon's ticket may be redeemed.
const ticketTTL = 10 * time.Minute

// Annotate is the addition to a result of any tool of the app: what waits for the calling conversation. It creates nothing; a
// call that names no conversation has none.
func (c *Core) Annotate(ctx context.Context, app wake.App, call wake.Call) (Addition, harness.Agent, error) {
	if err := c.checkCall(app, call); err != nil {
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
	paths, err := c.via(ctx, conversation.ID)
	if err != nil {
		return Addition{}, err
	}
	setup := harness.Setup{App: app.Name, SessionKey: c.master.Mint(credential.SessionKey, conversation.ID),
		Listening: paths[conversation.ID] != ""}
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
	messages, _, err := c.waiting(ctx, conversation)
	if err != nil || len(messages) == 0 {
		return Addition{}, err
	}
	return Addition{Text: harness.MonitorReminder(setup, len(messages))}, nil
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

func join(a, b string) string { return strings.TrimSpace(a + "\n\n" + b) }
