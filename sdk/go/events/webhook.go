package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

const (
	// verificationTime is how long subscribing may take: the server calls the
	// receiver meanwhile.
	verificationTime = 20 * time.Second
	// The bounds of the time between two refreshes, whatever the clocks say.
	leastRefresh = time.Second
	mostRefresh  = 24 * time.Hour
)

// A granted is the result of events/subscribe.
type granted struct {
	ID             string  `json:"id"`
	RefreshBefore  *string `json:"refreshBefore"`
	Cursor         *string `json:"cursor"`
	Truncated      bool    `json:"truncated"`
	DeliveryStatus *struct {
		Active      *bool   `json:"active"`
		LastError   *string `json:"lastError"`
		FailedSince *string `json:"failedSince"`
	} `json:"deliveryStatus"`
}

// isFailing says that the server could not deliver of late.
func (g granted) isFailing() bool {
	return g.DeliveryStatus != nil && g.DeliveryStatus.LastError != nil
}

// hasGivenUp says that the server may have given up on deliveries, which it
// repeats only to a new subscription.
func (g granted) hasGivenUp(window time.Duration) bool {
	status := g.DeliveryStatus
	if status == nil {
		return false
	}
	if status.Active != nil && !*status.Active {
		return true
	}
	since := readTime(value(status.FailedSince))
	return g.isFailing() && !since.IsZero() && time.Since(since) > window
}

// startReceiving subscribes at the server. After a time away the server may have
// given up on what it could not deliver, which it does not repeat to a
// subscription that lives: so that is ended first, and begun at the stored cursor.
func (s *Subscription) startReceiving(ctx, running context.Context) (func(), error) {
	receiver := s.client.opts.Receiver
	stored := s.state
	if len(stored.Secrets) == 0 || stored.Token == "" {
		stored.Token, stored.Secrets = newToken(), []secret{newSecret()}
	}
	address := receiver.address(stored.Token)
	if stored.URL != "" && stored.URL != address {
		s.leaveWebhook(ctx) // the receiver has moved
		stored.ID = ""
	}
	stored.URL = address
	// What the server is to know is stored first: after a crash it would deliver
	// what nobody could verify.
	if err := s.update(ctx, func(st *state) { *st = stored }); err != nil {
		return nil, err
	}
	s.hook = &endpoint{token: stored.Token, take: s.take, secrets: stored.Secrets, id: stored.ID}
	receiver.add(s.hook)
	away := stored.ID != "" && time.Since(stored.Alive) > s.client.opts.RetryWindow
	if away && stored.Cursor == "" {
		if err := s.keepGap(ctx, newToken(), ""); err != nil {
			receiver.remove(s.hook, false)
			return nil, err
		}
	} else if away {
		s.leaveWebhook(ctx)
	}
	g, err := s.renew(ctx, stored.Cursor)
	if err != nil {
		receiver.remove(s.hook, false)
		if isOutdated(err) {
			s.finish(ctx, err)
		}
		return nil, err
	}
	return func() { s.keepReceiving(running, g) }, nil
}

// leaveWebhook ends the stored webhook at the server, if it can.
func (s *Subscription) leaveWebhook(ctx context.Context) {
	if err := s.unsubscribe(ctx, s.current().URL); err != nil && ctx.Err() == nil {
		s.trouble("an earlier webhook could not be ended", err)
	}
}

// unsubscribe ends a webhook at the server. One that is not there is no error.
func (s *Subscription) unsubscribe(ctx context.Context, address string) error {
	params := s.base()
	params["delivery"] = map[string]any{"mode": Webhook, "url": address}
	_, err := s.client.conn.call(ctx, request{method: methodUnsubscribe, name: s.name, params: params, timeout: verificationTime})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// subscribe makes or refreshes the webhook at the server.
func (s *Subscription) subscribe(ctx context.Context, cursor string) (granted, error) {
	now := s.current()
	params := s.position(s.base(), cursor)
	params["delivery"] = map[string]any{"mode": Webhook, "url": now.URL, "secret": now.Secrets[0].Text}
	switch ttl := s.opts.TTL; {
	case ttl < 0:
		params["ttlMs"] = nil
	case ttl > 0:
		params["ttlMs"] = ttl.Milliseconds()
	}
	result, err := s.client.conn.call(ctx, request{method: methodSubscribe, name: s.name, params: params, timeout: verificationTime})
	if err != nil {
		return granted{}, err
	}
	var g granted
	if json.Unmarshal(result, &g) != nil || g.ID == "" {
		return granted{}, errMalformed
	}
	return g, nil
}

// grant stores what the server granted. While it cannot deliver, the position
// stays: the server's own passes what it gives up.
func (s *Subscription) grant(ctx context.Context, g granted, asked string) error {
	next := value(g.Cursor)
	if g.Truncated && asked != "" {
		if err := s.keepGap(ctx, newToken(), next); err != nil {
			return err
		}
	}
	err := s.update(ctx, func(st *state) {
		st.ID, st.Alive, st.Secrets = g.ID, time.Now(), taken(st.Secrets)
		if next != "" && !g.isFailing() {
			st.Cursor, st.Sequence = next, s.sequence.Load()
		}
	})
	s.hook.set(s.current().Secrets, g.ID)
	return err
}

// keepReceiving refreshes the webhook in time.
func (s *Subscription) keepReceiving(ctx context.Context, g granted) {
	defer s.rest(context.WithoutCancel(ctx))
	var failures backoff
	wait := refreshWait(g)
	for {
		timer := time.NewTimer(wait)
		var answer chan<- error
		select {
		case <-timer.C:
		case answer = <-s.rotations:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
		next, err := s.refresh(ctx, answer != nil)
		if answer != nil {
			answer <- err // it has room for one
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			failures.reset()
			wait = refreshWait(next)
		case isLasting(err):
			s.finish(ctx, err)
			return
		default:
			s.trouble("a refresh failed and is tried again", err)
			wait = failures.wait(err)
		}
	}
}

// rest records that all was well until now.
func (s *Subscription) rest(ctx context.Context) {
	if err := s.update(ctx, func(st *state) { st.Alive = time.Now() }); err != nil {
		s.trouble("the end of a subscription could not be stored", err)
	}
}

// refreshWait is when to refresh: at about 60 % of the time granted.
func refreshWait(g granted) time.Duration {
	before := readTime(value(g.RefreshBefore))
	if before.IsZero() {
		return mostRefresh // there is no end, but it does no harm to look
	}
	left := min(max(time.Until(before), 0), 2*mostRefresh)
	wait := time.Duration((0.57 + 0.06*rand.Float64()) * float64(left))
	return min(max(wait, leastRefresh), mostRefresh)
}

// refresh subscribes once more, with a new secret if it is time for one.
func (s *Subscription) refresh(ctx context.Context, rotate bool) (granted, error) {
	now := s.current()
	if every := s.opts.RotateEvery; rotate || every > 0 && time.Since(now.Secrets[0].Made) >= every {
		// Both are good here before the server hears of the new one.
		if err := s.update(ctx, func(st *state) { st.Secrets = rotated(st.Secrets) }); err != nil {
			return granted{}, err
		}
		s.hook.set(s.current().Secrets, "")
	}
	return s.renew(ctx, now.Cursor)
}

// renew subscribes from a position on. If the server has given up on deliveries,
// the webhook is made anew, so that they are replayed, or a gap is told.
func (s *Subscription) renew(ctx context.Context, cursor string) (granted, error) {
	g, err := s.subscribe(ctx, cursor)
	if err == nil && g.hasGivenUp(s.client.opts.RetryWindow) {
		switch {
		case cursor != "":
			s.leaveWebhook(ctx)
			g, err = s.subscribe(ctx, cursor)
		default:
			err = s.keepGap(ctx, newToken(), "")
		}
	}
	if err != nil {
		return granted{}, err
	}
	return g, s.grant(ctx, g, cursor)
}

// Rotate gives a webhook another secret. The old one stays good here for a day,
// for what the server has signed already. It does nothing in other modes.
func (s *Subscription) Rotate(ctx context.Context) error {
	if s.mode != Webhook {
		return nil
	}
	answer := make(chan error, 1)
	select {
	case s.rotations <- answer:
	case <-s.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take keeps a delivery, durably, and queues it.
func (s *Subscription) take(ctx context.Context, webhookID string, d delivery) error {
	switch d.kind {
	case "":
		_, err := s.keep(ctx, keyOf("event "+d.occurrence.EventID), record{Event: &d.occurrence, Cursor: d.cursor})
		return err
	case kindGap:
		return s.keepGap(ctx, webhookID, d.cursor)
	case kindTerminated:
		isNew, err := s.keep(ctx, keyOf("control "+webhookID), record{Done: true})
		if err != nil || !isNew { // it may be about a subscription before this one
			return err
		}
		s.finish(ctx, d.ended)
		s.cancel()
		return s.update(ctx, func(st *state) { st.ID = "" })
	}
	return nil // of a kind that is not known: there is nothing to do
}

// keepGap keeps a gap; id tells it from others.
func (s *Subscription) keepGap(ctx context.Context, id, cursor string) error {
	_, err := s.keep(ctx, keyOf("control "+id), record{Gap: true, Cursor: cursor})
	return err
}

// keep stores a record if it is new, and queues it unless it is done. One at a
// time: what comes twice at once is stored once.
func (s *Subscription) keep(ctx context.Context, key string, r record) (isNew bool, err error) {
	select {
	case s.keeping <- struct{}{}:
		defer func() { <-s.keeping }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if s.erased {
		return false, ErrClosed
	}
	if s.seen.has(key) {
		return false, nil
	}
	if r.Gap && s.queue.endsInGap() { // one says it all
		r.Done = true
	}
	i := s.itemOf(key, r)
	if r.Event != nil && !s.queue.hasRoom(i.size()) { // a gap needs no room: there is one between two events at most
		return false, errNoRoom
	}
	r.Sequence = s.sequence.Add(1)
	i.sequence = r.Sequence
	if err := s.putRecord(ctx, key, r); err != nil {
		return false, err
	}
	s.remember(ctx, key)
	if !r.Done {
		s.queue.restore(i)
	}
	if r.Cursor != "" {
		s.mu.Lock() // the record has it, so the state need not be stored
		s.state.Cursor, s.state.Sequence = r.Cursor, r.Sequence
		s.mu.Unlock()
	}
	return true, nil
}

func (s *Subscription) itemOf(key string, r record) *item {
	i := &item{record: key, cursor: r.Cursor, sequence: r.Sequence, occurrence: s.gap(r.Cursor)}
	if r.Event != nil {
		i.occurrence = r.Event.occurrence()
	}
	return i
}

// remember adds a key to those seen. What is forgotten for it was handled long
// ago: fewer can wait than are remembered.
func (s *Subscription) remember(ctx context.Context, key string) {
	forgotten := s.seen.add(key)
	if forgotten == "" {
		return
	}
	if err := s.client.opts.Store.Delete(ctx, s.recordKey(forgotten)); err != nil {
		s.trouble("an old record could not be removed", err)
	}
}

const recordsIn = "/in/"

func (s *Subscription) recordKey(key string) string { return s.key + recordsIn + key }

func (s *Subscription) putRecord(ctx context.Context, key string, r record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.client.opts.Store.Put(ctx, s.recordKey(key), raw)
}

// settleRecord marks a record as handled.
func (s *Subscription) settleRecord(ctx context.Context, i *item) error {
	return s.putRecord(ctx, i.record, record{Sequence: i.sequence, Cursor: i.cursor, Done: true})
}

// loadRecords restores what was accepted before, in its order, and the position
// it brought.
func (s *Subscription) loadRecords(ctx context.Context) error {
	prefix := s.recordKey("")
	kept, err := s.client.opts.Store.List(ctx, prefix)
	if err != nil {
		return err
	}
	type loaded struct {
		key string
		record
	}
	var records []loaded
	for key, raw := range kept {
		l := loaded{key: strings.TrimPrefix(key, prefix)}
		if err := json.Unmarshal(raw, &l.record); err != nil {
			return fmt.Errorf("events: a stored delivery cannot be read: %w", err)
		}
		records = append(records, l)
	}
	slices.SortFunc(records, func(a, b loaded) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, l := range records {
		s.remember(ctx, l.key)
		s.sequence.Store(max(s.sequence.Load(), l.Sequence))
		if l.Sequence > s.state.Sequence && l.Cursor != "" {
			s.state.Cursor, s.state.Sequence = l.Cursor, l.Sequence
		}
		if !l.Done {
			s.queue.restore(s.itemOf(l.key, l.record))
		}
	}
	return nil
}
