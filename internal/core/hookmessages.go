package core

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/rouse-dev/rouse/internal/wake"
)

// maxHookBody is how many bytes a message may have; receivers may refuse more.
const maxHookBody = 262_144

// reasonTooLarge is why a message was not sent that would have more.
const reasonTooLarge = "too_large"

// A hookMessage is what an endpoint is sent: the same each time it is tried.
type hookMessage struct {
	id   string
	body []byte
}

// message is what a job sends. ok is false when it would be too large.
func (c *Core) message(j job) (m hookMessage, ok bool, err error) {
	m.id = messageID(j.hook, j.delivery)
	dialect, _ := DialectNamed(j.hook.Dialect)
	switch j.delivery.Kind {
	case wake.DeliveryGap:
		m.body, err = json.Marshal(map[string]any{"type": "gap", "cursor": c.cursor(j.delivery.Seq)})
	case wake.DeliveryTerminated:
		m.body, err = json.Marshal(map[string]any{"type": "terminated", "error": dialect.ErrorOf(whyEnded(j.hook))})
	default:
		if !dialect.MessageID {
			m.id = j.occurrence.EventID(c.epoch)
		}
		body := c.onWire(j.occurrence)
		body.Cursor = c.cursor(j.delivery.Watermark) // up to there it is owed nothing once this was received
		if m.body, err = json.Marshal(body); err == nil && len(m.body) > maxHookBody {
			body.Meta = nil // it repeats for readers what the data say
			m.body, err = json.Marshal(body)
		}
	}
	return m, len(m.body) <= maxHookBody, err
}

// messageID is the webhook-id of a delivery: the same each time it is tried, and another one for any other message.
func messageID(w wake.Webhook, d wake.Delivery) string {
	name := w.ID + "/" + strconv.FormatInt(int64(d.Seq), 10)
	prefix := "msg_"
	if d.Kind != wake.DeliveryOccurrence {
		// A webhook that begins anew has its id again, and may end again at the same place.
		prefix += string(d.Kind) + "_"
		name += "/" + strconv.FormatInt(w.CreatedAt.UnixMicro(), 10) + "/" + strconv.FormatInt(w.EndedAt.UnixMicro(), 10)
	}
	sum := sha256.Sum256([]byte(name))
	return prefix + hex.EncodeToString(sum[:16])
}

// target is where a webhook's messages go, and what signs them.
func (c *Core) target(hook wake.Webhook) (HookTarget, error) {
	secret, err := c.master.Unseal(secretPurpose, hook.ID, hook.Secret)
	if err != nil {
		return HookTarget{}, err
	}
	target := HookTarget{URL: hook.URL, Subscription: hook.ID, Secrets: []string{string(secret)}}
	if now().Before(hook.FormerUntil) {
		former, err := c.master.Unseal(formerPurpose, hook.ID, hook.Former)
		if err != nil {
			return HookTarget{}, err
		}
		target.Secrets = append(target.Secrets, string(former))
	}
	return target, nil
}
