package core

import (
	"context"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// MaxBatch is how many emits a batch may have.
const MaxBatch = 1000

// An EmitResult is what became of one emit of a batch.
type EmitResult struct {
	Emitted
	Refused *refusal.Refusal // nil when it was taken; else nothing else is set
}

// EmitBatch writes the emits that are good to the log, in their order and in one transaction, and returns once they are durable,
// with a result for each. One that is refused keeps none of the others back. An error is one of the whole batch, of which nothing
// is written then.
func (c *Core) EmitBatch(ctx context.Context, app wake.App, batch []Emit) ([]EmitResult, error) {
	if len(batch) > MaxBatch {
		return nil, refusal.New(refusal.BadRequest, "at most %d emits in one batch", MaxBatch)
	}
	var results []EmitResult
	err := c.withManifest(ctx, app.ID, func(m manifest) (err error) {
		var good []wake.Occurrence
		if results, good, err = m.bindAll(app, batch); err != nil {
			return err
		}
		if len(good) == 0 {
			return c.store.View(ctx, func(r store.Reader) error { return m.current(r, app.ID) })
		}
		done, err := c.appendAll(ctx, good, m.current)
		if err != nil {
			return err
		}
		for i := range results {
			if results[i].Refused == nil {
				results[i].Emitted, done = done[0], done[1:]
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// bindAll makes occurrences of those emits of a batch that are good. The results have what is wrong with the others.
func (m manifest) bindAll(app wake.App, batch []Emit) (results []EmitResult, good []wake.Occurrence, err error) {
	results = make([]EmitResult, len(batch))
	good = make([]wake.Occurrence, 0, len(batch))
	for i, e := range batch {
		err := e.check()
		var o wake.Occurrence
		if err == nil {
			o, err = m.bind(app, e)
		}
		if err == nil {
			good = append(good, o)
		} else if results[i].Refused = refusal.Of(err); results[i].Refused == nil {
			return nil, nil, err
		}
	}
	return results, good, nil
}
