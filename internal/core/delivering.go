package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// How webhook deliveries are made.
const (
	perWebhook    = 4                // deliveries of one webhook under way at once, on all nodes together
	deliveryLease = 30 * time.Second // an attempt and as long again to wait for its turn, with room; after it a claimed delivery is due again
	attemptTime   = 10 * time.Second // an attempt takes no longer
	deliveryPoll  = 5 * time.Second  // how often the queue is looked at without a hint: another node may have filled it and died
	maxWaiting    = 512              // claimed deliveries whose host has no room yet
	maxExcepted   = 1000             // hosts without room that the store is asked to leave out
)

// retryAfter are the pauses after each failed attempt; after the last one the delivery is abandoned.
var retryAfter = []time.Duration{2 * time.Second, 10 * time.Second, 30 * time.Second, 5 * time.Minute}

func (c *Core) hintDeliveries() {
	select {
	case c.deliveries <- struct{}{}:
	default:
	}
}

// A deliverer makes the webhook deliveries of a node. Its methods belong to one goroutine, except where they say otherwise.
type deliverer struct {
	*Core
	running  sync.WaitGroup
	outcomes chan outcome
	waiting  []job     // claimed, in order; their hosts had no room
	due      time.Time // when the first delivery can be claimed, as of the last look
}

// A job is a claimed delivery with what it takes to make it.
type job struct {
	delivery   wake.Delivery
	hook       wake.Webhook
	occurrence wake.Occurrence // of a notice the zero one
	host       string
	claimed    time.Time
}

// An outcome is what became of a claimed delivery.
type outcome struct {
	job
	is     fate
	result HookResult    // of an attempt
	at     time.Time     // when it began
	took   time.Duration // how long it was under way
	next   time.Time     // of one that is put off: when it is due
}

// A fate is one of the ways a claimed delivery comes out.
type fate int

const (
	attempted fate = iota
	putOff         // not tried, and due again: it counts for nothing
	dropped        // nobody is owed it any more
	oversized      // its message would be too large
)

// deliver makes the queued webhook deliveries as they fall due, until ctx ends. Attempts under way are finished.
func (c *Core) deliver(ctx context.Context) {
	d := &deliverer{Core: c, outcomes: make(chan outcome, maxAttempts)}
	var recording sync.WaitGroup
	recording.Go(func() { c.recordAll(d.outcomes) })
	defer recording.Wait()
	defer close(d.outcomes)
	defer d.running.Wait()
	for {
		d.resume(ctx)
		claimed, err := d.claim(ctx)
		if err == nil {
			err = d.begin(ctx, claimed)
		}
		if err != nil && ctx.Err() == nil {
			c.log.Error("reading the webhook queue failed; it is tried again", "error", err)
		}
		if len(claimed) > 0 && err == nil {
			continue
		}
		if !d.await(ctx) {
			break
		}
	}
	for _, j := range d.waiting {
		d.putOff(j, now())
	}
}

// claim takes deliveries that are due, as many as there are workers free, and none for hosts that have no room.
func (d *deliverer) claim(ctx context.Context) (claimed []wake.Delivery, err error) {
	limit := d.hosts.free()
	if limit <= 0 || ctx.Err() != nil {
		return nil, nil
	}
	except := d.withoutRoom()
	err = d.store.View(ctx, func(r store.Reader) (err error) {
		d.due, err = r.NextDelivery(except)
		return err
	})
	at := now()
	if err != nil || d.due.IsZero() || d.due.After(at) {
		return nil, err
	}
	err = d.store.Update(ctx, func(tx store.Tx) (err error) {
		claimed, err = tx.ClaimDeliveries(store.ClaimQuery{Now: at, Lease: at.Add(deliveryLease), Limit: limit, PerWebhook: perWebhook, ExceptHosts: except})
		return err
	})
	return claimed, err
}

// withoutRoom lists the hosts that can take nothing now, or have something waiting.
func (d *deliverer) withoutRoom() []string {
	names, _ := d.hosts.full(time.Now(), maxExcepted)
	listed := make(map[string]bool, len(names))
	for _, name := range names {
		listed[name] = true
	}
	for _, j := range d.waiting {
		if !listed[j.host] && len(names) < maxExcepted {
			listed[j.host] = true
			names = append(names, j.host)
		}
	}
	return names
}

// begin starts what was claimed, as far as there is room.
func (d *deliverer) begin(ctx context.Context, claimed []wake.Delivery) error {
	if len(claimed) == 0 {
		return nil
	}
	at := now()
	jobs := make([]job, 0, len(claimed))
	var others []outcome
	err := d.store.View(ctx, func(r store.Reader) error {
		jobs, others = jobs[:0], others[:0]
		read := jobReader{Reader: r, at: at, hooks: map[string]hookState{}, occurrences: map[wake.Seq]wake.Occurrence{}}
		for _, one := range claimed {
			j, other, err := read.job(one)
			switch {
			case err != nil:
				return err
			case other != nil:
				others = append(others, *other)
			default:
				jobs = append(jobs, j)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, o := range others {
		d.outcomes <- o
	}
	for _, j := range jobs {
		if j.host = j.hook.Host; j.host == "" { // kept before hosts were
			j.host = d.webhooks.Host(j.hook.URL)
		}
		if !d.start(ctx, j) {
			d.wait(j)
		}
	}
	return nil
}

// A jobReader reads what claimed deliveries need, each webhook and occurrence once.
type jobReader struct {
	store.Reader
	at          time.Time
	hooks       map[string]hookState
	occurrences map[wake.Seq]wake.Occurrence
}

type hookState struct {
	wake.Webhook
	throttled time.Time
}

// job reads what a delivery needs, or says what becomes of it without an attempt.
func (r *jobReader) job(d wake.Delivery) (j job, other *outcome, err error) {
	j = job{delivery: d, claimed: r.at}
	hook, err := r.hook(d.Webhook)
	if err == nil && d.Kind == wake.DeliveryOccurrence {
		j.occurrence, err = r.occurrence(d.Seq)
	}
	j.hook = hook.Webhook
	owed := hook.Live(r.at) || d.Kind == wake.DeliveryTerminated && !hook.EndedAt.IsZero()
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && (!owed || j.occurrence.Kind == wake.KindErased):
		return j, &outcome{job: j, is: dropped}, nil
	case err == nil && hook.throttled.After(r.at):
		return j, &outcome{job: j, is: putOff, next: hook.throttled}, nil
	}
	return j, nil, err
}

func (r *jobReader) hook(id string) (hookState, error) {
	if known, ok := r.hooks[id]; ok {
		return known, nil
	}
	w, err := r.Webhook(id)
	if err != nil {
		return hookState{}, err
	}
	health, err := r.Health(id)
	r.hooks[id] = hookState{w, health.ThrottledUntil}
	return r.hooks[id], err
}

func (r *jobReader) occurrence(seq wake.Seq) (wake.Occurrence, error) {
	if known, ok := r.occurrences[seq]; ok {
		return known, nil
	}
	o, err := r.Occurrence(seq)
	if err == nil {
		r.occurrences[seq] = o
	}
	return o, err
}

// start begins an attempt, unless its host has no room.
func (d *deliverer) start(ctx context.Context, j job) bool {
	t, ok := d.hosts.begin(j.host, j.hook.ID, time.Now())
	if ok {
		d.running.Go(func() {
			defer d.hintDeliveries()
			d.attempt(ctx, j, t)
		})
	}
	return ok
}

// wait keeps a job until its host has room, or puts it off when that may take long or too many wait.
func (d *deliverer) wait(j job) {
	switch pause := d.hosts.pausedUntil(j.host); {
	case pause.After(time.Now()):
		d.putOff(j, pause)
	case len(d.waiting) >= maxWaiting:
		d.putOff(j, now().Add(time.Second+rand.N(time.Second)))
	default:
		d.waiting = append(d.waiting, j)
	}
}

// resume starts jobs that waited and whose hosts have room now. One that could not be finished within its claim any more is put off.
func (d *deliverer) resume(ctx context.Context) {
	waited := d.waiting
	d.waiting = nil
	refused := map[string]bool{}
	for _, j := range waited {
		if now().Sub(j.claimed) > deliveryLease-attemptTime-time.Second {
			d.putOff(j, now())
		} else if refused[j.host] || !d.start(ctx, j) {
			refused[j.host] = true
			d.wait(j)
		}
	}
}

// putOff gives a claim back. It may be called by any goroutine.
func (d *deliverer) putOff(j job, until time.Time) {
	d.outcomes <- outcome{job: j, is: putOff, next: until}
}

// await waits until there may be something to deliver. It returns false when ctx ends.
func (d *deliverer) await(ctx context.Context) bool {
	wait := deliveryPoll
	if _, pause := d.hosts.full(time.Now(), 0); !pause.IsZero() {
		wait = min(wait, time.Until(pause))
	}
	if len(d.waiting) > 0 {
		wait = min(wait, slowAfter) // hosts that nothing is known of may have got room
	}
	if !d.due.IsZero() && d.hosts.free() > 0 {
		wait = min(wait, time.Until(d.due))
	}
	// Claims by others may not be due before their lease: a little patience keeps this from spinning.
	timer := time.NewTimer(max(wait, 50*time.Millisecond))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-d.deliveries:
	case <-timer.C:
	}
	return true
}

// attempt makes one attempt at a delivery and hands on how it went. It may be called by any goroutine.
func (d *deliverer) attempt(ctx context.Context, j job, t *try) {
	o := outcome{job: j, at: now()}
	is := unheard
	defer func() { d.hosts.end(t, is, time.Now()) }()
	m, fits, err := d.message(j)
	if err == nil && !fits {
		o.is = oversized
		d.outcomes <- o
		return
	}
	var target HookTarget
	if err == nil {
		target, err = d.target(j.hook)
	}
	if err != nil {
		d.log.Error("a webhook delivery could not be made; it is tried again", "subscription", j.hook.ID, "error", err)
		d.putOff(j, now().Add(retryAfter[len(retryAfter)-1]))
		return
	}
	begun := time.Now()
	o.result = d.webhooks.Deliver(ctx, target, m.id, m.body)
	o.took = time.Since(begun)
	if !o.result.Delivered && ctx.Err() != nil {
		d.putOff(j, now()) // the core is stopping: this was no fair attempt
		return
	}
	is = verdictOf(o.result)
	d.outcomes <- o
}

// verdictOf is what an attempt says of its host. Whoever asks for time is well.
func verdictOf(result HookResult) verdict {
	switch {
	case result.Delivered, result.RetryAfter > 0:
		return answered
	case result.Status == 0:
		return dead
	case result.Status >= 500:
		return faulty
	}
	return answered
}
