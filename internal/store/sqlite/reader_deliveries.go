package sqlite

import (
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

func (r *reader) VerifiedAt(app, principal, url string) (time.Time, error) {
	at, err := r.q.VerifiedAt(background, queries.VerifiedAtParams{App: app, Principal: principal, Url: url})
	return fromMicros(at), r.fault(err)
}

func (r *reader) NextDelivery(exceptHosts []string) (time.Time, error) {
	hosts, err := list(exceptHosts)
	if err != nil {
		return time.Time{}, err
	}
	due, err := r.q.NextDue(background, hosts)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, nil
	}
	return fromMicros(due.Int64), r.fault(err)
}

// list gives names as a statement takes them.
func list(names []string) (string, error) {
	if len(names) == 0 {
		return "[]", nil
	}
	b, err := json.Marshal(names)
	return string(b), err
}

func (r *reader) Watermark(webhook string) (wake.Seq, error) {
	lowest, err := r.q.LowestQueued(background, webhook)
	if errors.Is(err, sql.ErrNoRows) {
		return wake.Seq(r.state.Head), nil
	}
	return wake.Seq(lowest - 1), r.fault(err)
}

func (r *reader) Overfull(most, limit int) ([]string, error) {
	webhooks, err := r.q.Overfull(background, queries.OverfullParams{Most: atLeastZero(most), Max: atLeastZero(limit)})
	return webhooks, r.fault(err)
}

func (r *reader) Health(webhook string) (wake.Health, error) {
	row, err := r.q.Health(background, webhook)
	if errors.Is(err, sql.ErrNoRows) {
		return wake.Health{Webhook: webhook}, nil
	}
	return toHealth(row), r.fault(err)
}

func (r *reader) Attempts(q store.AttemptQuery) ([]wake.Attempt, error) {
	before, until := q.Before, int64(math.MaxInt64)
	if before == 0 {
		before = math.MaxInt64
	}
	if !q.Until.IsZero() {
		until = micros(q.Until)
	}
	of := queries.AttemptsOfAppParams{App: q.App, Before: before, Since: micros(q.Since), Until: until, Max: atLeastZero(q.Limit)}
	var rows []queries.Attempt
	var err error
	failed := int64(0)
	if q.Failed {
		failed = 1
	}
	switch {
	case q.Seq != 0:
		rows, err = r.q.AttemptsAt(background, queries.AttemptsAtParams{
			Seq: int64(q.Seq), App: of.App, Webhook: q.Webhook, Before: of.Before, Since: of.Since, Until: of.Until, Failed: failed, Max: of.Max,
		})
	case q.Webhook != "":
		rows, err = r.q.AttemptsOfWebhook(background, queries.AttemptsOfWebhookParams{
			Webhook: q.Webhook, App: of.App, Before: of.Before, Since: of.Since, Until: of.Until, Failed: failed, Max: of.Max,
		})
	case q.Failed:
		rows, err = r.q.FailuresOfApp(background, queries.FailuresOfAppParams(of))
	default:
		rows, err = r.q.AttemptsOfApp(background, of)
	}
	return convert(rows, r.fault(err), sure(toAttempt))
}
