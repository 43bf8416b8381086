package core

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// VoucherArgument is the event argument a voucher is given as; pinned by the public docs page.
const VoucherArgument = "wakeshift_voucher"

// TextMeta is the _meta key of a native occurrence under which the app's own line for it stands, as the public SDK names it.
const TextMeta = "ai.wakeshift/text"

// A Native is a request of an MCP Events client about one event, as its app's SDK passed it on.
type Native struct {
	Call      wake.Call
	Refused   bool // the app's own authorization said no
	Name      string
	Arguments json.RawMessage // the voucher among them, if any
}

// An OccurrenceWire is an occurrence as MCP Events writes it.
type OccurrenceWire struct {
	EventID   string          `json:"eventId"`
	Name      string          `json:"name"`
	Timestamp string          `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
	Cursor    string          `json:"cursor,omitempty"` // a place after the occurrence; empty where the answer has one for all
	Meta      map[string]any  `json:"_meta,omitempty"`
}

// access is an event that a native client may have, with these arguments.
type access struct {
	event     *wake.Event
	arguments wake.Arguments
	principal string // who asks: "user/…", "voucher/…", or empty for nobody
	voucher   string // id of the subscription whose voucher was given
}

// admit decides whether a native request may have its event.
func (c *Core) admit(ctx context.Context, app wake.App, m manifest, n Native) (access, error) {
	event, err := m.event(n.Name)
	if err != nil {
		return access{}, err
	}
	arguments, voucher, err := splitVoucher(n.Arguments)
	if err != nil {
		return access{}, err
	}
	a := access{event: event}
	if a.arguments, err = event.Bind(arguments); err != nil {
		return access{}, err
	}
	if n.Call.User != "" {
		a.principal = wake.UserPrincipal(n.Call.User)
	}
	if voucher != "" {
		if a.voucher, err = c.redeemVoucher(ctx, app, a, voucher); err != nil {
			return access{}, err
		}
		if a.principal == "" {
			a.principal = wake.VoucherPrincipal(a.voucher)
		}
	}
	switch {
	case n.Refused:
		err = refused(n.Name)
	case a.voucher != "":
	case event.Public != nil && !*event.Public:
		err = toolsOnly(n.Name)
	case n.Call.User == "" && (event.Public == nil || event.Personal):
		err = refusal.New(refusal.Forbidden, "%s needs a signed-in user, or a voucher from a tool's result", n.Name).With("reason", "sign_in")
	}
	return a, err
}

// toolsOnly is the answer to who asks for an event that is not public.
func toolsOnly(event string) *refusal.Refusal {
	return refusal.New(refusal.Forbidden, "%s is for tools only: call a tool of the app that subscribes to it", event).With("reason", "tools_only")
}

// refused is the answer to what the app's own authorization does not allow.
func refused(event string) *refusal.Refusal {
	return refusal.New(refusal.Forbidden, "the app does not allow %s with these arguments", event).With("reason", "app")
}

// offers refuses a way to have the event that it does not offer.
func (a access) offers(delivery string) error {
	if a.event.Offers(delivery) {
		return nil
	}
	return refusal.New(refusal.Unsupported, "%s is not offered by %s", a.event.Name, delivery).
		With("feature", "deliveryMode").With("value", delivery)
}

// wants are the occurrences that whoever was admitted gets, as a subscription that never ends takes them.
func (a access) wants(app wake.App, user string) wake.Subscription {
	return wake.Subscription{App: app.ID, Topic: a.arguments.Topic, Event: a.event.Name, Filter: a.arguments.Filter, User: user,
		ExpiresAt: time.Unix(math.MaxInt32, 0)}
}

// splitVoucher takes the voucher out of an event's arguments.
func splitVoucher(raw json.RawMessage) (arguments json.RawMessage, voucher string, err error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return raw, "", nil // Bind says what is wrong with it
	}
	given, ok := fields[VoucherArgument]
	if !ok {
		return raw, "", nil
	}
	if json.Unmarshal(given, &voucher) != nil {
		return nil, "", refusal.New(refusal.BadArguments, "%s: must be a string", VoucherArgument)
	}
	delete(fields, VoucherArgument)
	arguments, err = json.Marshal(fields)
	return arguments, voucher, err
}

// redeemVoucher finds the subscription a voucher stands for, and refuses it for another app, event, arguments or user.
func (c *Core) redeemVoucher(ctx context.Context, app wake.App, a access, voucher string) (string, error) {
	refused := refusal.New(refusal.Forbidden, "the voucher is not good for this event with these arguments: call the tool again for a fresh one").With("reason", "voucher")
	id, ok := c.master.OpenVoucher(voucher)
	if !ok {
		return "", refused
	}
	var s wake.Subscription
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		s, err = r.Subscription("sub_" + id)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return "", refused
	}
	if err != nil {
		return "", err
	}
	if s.App != app.ID || s.Event != a.event.Name || string(s.Arguments) != string(a.arguments.Canonical) || !s.Live(now()) ||
		a.principal != "" && a.principal != wake.UserPrincipal(s.User) {
		return "", refused
	}
	return s.ID, nil
}

// onWire writes an occurrence as MCP Events does.
func (c *Core) onWire(o wake.Occurrence) OccurrenceWire {
	return OccurrenceWire{EventID: o.EventID(c.epoch), Name: o.Event, Timestamp: o.At.UTC().Format(time.RFC3339Nano), Data: o.Data,
		Meta: map[string]any{TextMeta: o.Text}}
}

// cursor is a place in this log as clients keep it: opaque to them. The epoch makes a recreated log noticed.
func (c *Core) cursor(at wake.Seq) string {
	return "c1." + c.epoch + "." + strconv.FormatInt(int64(at), 36)
}

func (c *Core) parseCursor(text string) (wake.Seq, bool) {
	rest, ok := strings.CutPrefix(text, "c1."+c.epoch+".")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(rest, 36, 64)
	if err != nil || n < 0 || c.cursor(wake.Seq(n)) != text {
		return 0, false
	}
	return wake.Seq(n), true
}
