package events

import (
	"context"
	"encoding/json"
	"time"
)

// What a poll may ask of the client.
const (
	defaultPoll = 30 * time.Second // the wait where the server names none
	mostPoll    = 24 * time.Hour
	// mostAtOnce is how often in a row the server may say that it has more.
	mostAtOnce = 100
)

// A polled is the result of events/poll.
type polled struct {
	Events     []wireOccurrence `json:"events"`
	Cursor     *string          `json:"cursor"`
	Truncated  bool             `json:"truncated"`
	HasMore    bool             `json:"hasMore"`
	NextPollMs *float64         `json:"nextPollMs"`
}

// poll polls once.
func (s *Subscription) poll(ctx context.Context, cursor string) (polled, error) {
	params := s.position(s.base(), cursor)
	if s.opts.MaxEvents > 0 {
		params["maxEvents"] = s.opts.MaxEvents
	}
	result, err := s.client.conn.call(ctx, request{method: methodPoll, name: s.name, params: params})
	if err != nil {
		return polled{}, err
	}
	var p polled
	if json.Unmarshal(result, &p) != nil {
		return polled{}, errMalformed
	}
	return p, nil
}

// startPolling polls for the first time, which fixes where the subscription
// begins and tells what is refused.
func (s *Subscription) startPolling(ctx, running context.Context) (func(), error) {
	cursor := s.state.Cursor
	first, err := s.poll(ctx, cursor)
	if err != nil {
		if isOutdated(err) {
			s.finish(ctx, err)
		}
		return nil, err
	}
	if next := value(first.Cursor); cursor == "" && next != "" && len(first.Events) == 0 {
		if err := s.moveTo(ctx, next); err != nil {
			return nil, err
		}
	}
	return func() { s.keepPolling(running, cursor, first) }, nil
}

// keepPolling goes on from the first answer.
func (s *Subscription) keepPolling(ctx context.Context, cursor string, answer polled) {
	var failures backoff
	for row := 1; ; row++ {
		next := value(answer.Cursor)
		if !s.takePolled(ctx, answer, cursor != "") {
			return
		}
		moved := len(answer.Events) > 0 || next != cursor
		if !answer.HasMore || !moved || row >= mostAtOnce {
			row = 0
			if !sleep(ctx, s.pollWait(answer)) {
				return
			}
		}
		cursor = next
		for {
			var err error
			if answer, err = s.poll(ctx, cursor); err == nil {
				failures.reset()
				break
			}
			if ctx.Err() != nil {
				return
			}
			if isLasting(err) {
				s.finish(ctx, err)
				return
			}
			s.trouble("a poll failed and is tried again", err)
			if !sleep(ctx, failures.wait(err)) {
				return
			}
		}
	}
}

// takePolled delivers what an answer has. The position moves with the last of it.
func (s *Subscription) takePolled(ctx context.Context, answer polled, wasResumed bool) bool {
	cursor := value(answer.Cursor)
	if answer.Truncated && wasResumed && !s.deliver(ctx, s.gap(cursor), "") {
		return false
	}
	for i := range answer.Events {
		if !s.deliver(ctx, answer.Events[i].occurrence(), "") {
			return false
		}
	}
	s.advance(ctx, cursor)
	return ctx.Err() == nil
}

// pollWait is how long to wait after an answer without more.
func (s *Subscription) pollWait(answer polled) time.Duration {
	wait := defaultPoll
	if ms := answer.NextPollMs; ms != nil {
		wait = time.Duration(min(max(*ms, 0), float64(mostPoll.Milliseconds()))) * time.Millisecond
	}
	return max(wait, s.client.opts.LeastPoll)
}
