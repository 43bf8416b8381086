package postgres

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

// topicSeparator joins an occurrence's topics in their column. No topic holds one.
const topicSeparator = "\n"

// micros is how a time is kept: 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// blob gives NULL for what is empty, so that nil comes back as nil.
func blob(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

// raw gives topics as their column has them.
func raw(topics []string) [][]byte {
	out := make([][]byte, len(topics))
	for i, topic := range topics {
		out[i] = []byte(topic)
	}
	return out
}

func encodeFilter(f wake.Filter) ([]byte, error) {
	if len(f) == 0 {
		return nil, nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // values stay as they were written
	if err := enc.Encode(f); err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

func decodeFilter(b []byte) (wake.Filter, error) {
	if b == nil {
		return nil, nil
	}
	var f wake.Filter
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("filter: %w: %w", store.ErrCorrupt, err)
	}
	return f, nil
}

func toApp(r queries.App) wake.App {
	return wake.App{ID: r.ID, Name: r.Name, CreatedAt: fromMicros(r.CreatedAt)}
}

func toKey(r queries.Key) wake.Key {
	return wake.Key{
		ID: r.ID, App: r.App, Name: r.Name, Public: r.Public,
		CreatedAt: fromMicros(r.CreatedAt), RevokedAt: fromMicros(r.RevokedAt),
	}
}

func toConversation(r queries.Conversation) wake.Conversation {
	return wake.Conversation{
		ID: r.ID, App: r.App, Harness: r.Harness, Client: r.Client, Version: r.Version, User: r.UserID, Thread: r.Thread,
		Position: wake.Seq(r.Position), CreatedAt: fromMicros(r.CreatedAt), SeenAt: fromMicros(r.SeenAt),
	}
}

func toSubscription(r queries.Subscription) (wake.Subscription, error) {
	filter, err := decodeFilter(r.Filter)
	return wake.Subscription{
		ID: r.ID, App: r.App, Conversation: r.Conversation, User: r.UserID, Topic: string(r.Topic), Event: r.Event,
		Arguments: r.Arguments, Filter: filter, Once: r.Once, Claimed: r.Claimed,
		From: wake.Seq(r.FromSeq), Until: wake.Seq(r.UntilSeq),
		CreatedAt: fromMicros(r.CreatedAt), ExpiresAt: fromMicros(r.ExpiresAt), EndedAt: fromMicros(r.EndedAt),
	}, err
}

func subscriptionRow(s wake.Subscription) (queries.PutSubscriptionParams, error) {
	filter, err := encodeFilter(s.Filter)
	return queries.PutSubscriptionParams{
		ID: s.ID, App: s.App, Conversation: s.Conversation, UserID: s.User, Topic: []byte(s.Topic), Event: s.Event,
		Arguments: blob(s.Arguments), Filter: filter, Once: s.Once, Claimed: s.Claimed,
		FromSeq: int64(s.From), UntilSeq: int64(s.Until),
		CreatedAt: micros(s.CreatedAt), ExpiresAt: micros(s.ExpiresAt), EndedAt: micros(s.EndedAt),
	}, err
}

func toWebhook(r queries.Webhook) (wake.Webhook, error) {
	filter, err := decodeFilter(r.Filter)
	return wake.Webhook{
		ID: r.ID, App: r.App, Principal: r.Principal, User: r.UserID, URL: r.Url, Host: r.Host, Event: r.Event, Arguments: r.Arguments,
		Topic: string(r.Topic), Filter: filter, Dialect: r.Dialect, From: wake.Seq(r.FromSeq),
		CreatedAt: fromMicros(r.CreatedAt), ExpiresAt: fromMicros(r.ExpiresAt),
		Secret: r.Secret, Former: r.Former, FormerUntil: fromMicros(r.FormerUntil), VerifiedAt: fromMicros(r.VerifiedAt),
		Suspended: r.Suspended, SuspendedAt: fromMicros(r.SuspendedAt), EndedAt: fromMicros(r.EndedAt), EndReason: r.EndReason,
	}, err
}

func webhookRow(w wake.Webhook) (queries.PutWebhookParams, error) {
	filter, err := encodeFilter(w.Filter)
	return queries.PutWebhookParams{
		ID: w.ID, App: w.App, Principal: w.Principal, UserID: w.User, Url: w.URL, Host: w.Host, Event: w.Event, Arguments: blob(w.Arguments),
		Topic: []byte(w.Topic), Filter: filter, Dialect: w.Dialect, FromSeq: int64(w.From),
		CreatedAt: micros(w.CreatedAt), ExpiresAt: micros(w.ExpiresAt),
		Secret: blob(w.Secret), Former: blob(w.Former), FormerUntil: micros(w.FormerUntil), VerifiedAt: micros(w.VerifiedAt),
		Suspended: w.Suspended, SuspendedAt: micros(w.SuspendedAt), EndedAt: micros(w.EndedAt), EndReason: w.EndReason,
	}, err
}

func toDelivery(r queries.Delivery) wake.Delivery {
	return wake.Delivery{
		Webhook: r.Webhook, Seq: wake.Seq(r.Seq), Kind: wake.DeliveryKind(r.Kind), Attempts: int(r.Attempts),
		NextAt: fromMicros(r.NextAt), Error: r.Error, Claim: r.Claim, Watermark: wake.Seq(r.Watermark.Int64),
	}
}

func toHealth(r queries.Health) wake.Health {
	return wake.Health{
		Webhook: r.Webhook, LastDeliveryAt: fromMicros(r.LastDeliveryAt), LastError: r.LastError,
		FailedSince: fromMicros(r.FailedSince), ThrottledUntil: fromMicros(r.ThrottledUntil),
		WindowAt: fromMicros(r.WindowAt), Attempts: int(r.Attempts), Failures: int(r.Failures),
	}
}

func toAttempt(r queries.Attempt) wake.Attempt {
	return wake.Attempt{
		N: r.N, Webhook: r.Webhook, Seq: wake.Seq(r.Seq), Kind: wake.DeliveryKind(r.Kind), Number: int(r.Number),
		At: fromMicros(r.At), Took: time.Duration(r.Took) * time.Microsecond, Status: int(r.Status), Reason: r.Reason,
		Outcome: r.Outcome, NextAt: fromMicros(r.NextAt),
	}
}

func toOccurrence(r queries.Occurrence) wake.Occurrence {
	return wake.Occurrence{
		Seq: wake.Seq(r.Seq), App: r.App, Kind: wake.Kind(r.Kind), Event: r.Event, Topics: splitTopics(r.Topics),
		Arguments: r.Arguments, Text: string(r.Text), Data: r.Data, To: r.Recipient.String, Key: r.OwnKey.String,
		Matched: int(r.Matched), At: fromMicros(r.At),
	}
}

func nullText(s string) pgtype.Text { return pgtype.Text{String: s, Valid: s != ""} }

func someInt(n int64) pgtype.Int8 { return pgtype.Int8{Int64: n, Valid: true} }

func joinTopics(topics []string) ([]byte, error) {
	for _, t := range topics {
		if strings.Contains(t, topicSeparator) || t == "" {
			return nil, fmt.Errorf("topic %q cannot be kept: it is empty or holds a line feed", t)
		}
	}
	return []byte(strings.Join(topics, topicSeparator)), nil
}

func splitTopics(joined []byte) []string {
	if len(joined) == 0 {
		return nil
	}
	return strings.Split(string(joined), topicSeparator)
}

// convert maps rows whose conversion may fail.
func convert[R, T any](rows []R, err error, to func(R) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	out := make([]T, 0, len(rows))
	for _, r := range rows {
		v, err := to(r)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// sure makes a conversion that cannot fail fit convert.
func sure[R, T any](to func(R) T) func(R) (T, error) {
	return func(r R) (T, error) { return to(r), nil }
}
