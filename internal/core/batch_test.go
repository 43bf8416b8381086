package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

func batchEmit(job, text, id string) core.Emit {
	return core.Emit{Name: "crawl.finished", Arguments: args(job), Payload: json.RawMessage(`{"pages":1}`), Text: text, ID: id}
}

func TestEmitBatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := b.inbox(b.subscribe(claude, "j1"))
	if _, err := b.core.Emit(t.Context(), b.app, batchEmit("j1", "before", "known")); err != nil {
		t.Fatal(err)
	}
	got, err := b.core.EmitBatch(t.Context(), b.app, []core.Emit{
		batchEmit("j1", "one", ""), batchEmit("j1", "two", "once"), batchEmit("J1", "bad", ""), batchEmit("j1", "again", "once"),
		batchEmit("j1", "again", "known"), {Name: "no.such"}, batchEmit("j1", "three", ""),
	})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, one := range got {
		switch {
		case one.Refused != nil:
			said = append(said, string(one.Refused.Code))
		case one.Duplicate:
			said = append(said, "duplicate")
		case one.Matched == 1 && one.ID != "":
			said = append(said, "matched")
		}
	}
	want := []string{"matched", "matched", "bad_arguments", "duplicate", "duplicate", "unknown_event", "matched"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
	if got[1].ID != got[3].ID {
		t.Errorf("a duplicate within the batch has the id %s, the first %s", got[3].ID, got[1].ID)
	}
	if diff := cmp.Diff([]string{"before", "one", "two", "three"}, b.read(in)); diff != "" {
		t.Error(diff)
	}
}

func TestEmitBatchFulfilsOnceOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done, err := b.core.SubscribeEvent(t.Context(), b.app, claude, "crawl.finished", args("j1"), true)
	if err != nil {
		t.Fatal(err)
	}
	in := b.inbox(done)
	got, err := b.core.EmitBatch(t.Context(), b.app, []core.Emit{batchEmit("j1", "first", ""), batchEmit("j1", "second", "")})
	if err != nil || got[0].Matched != 1 || got[1].Matched != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if diff := cmp.Diff([]string{"first"}, b.read(in)); diff != "" {
		t.Error(diff)
	}
}

func TestEmitBatchOfTooManyOrOfNothingGood(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.core.EmitBatch(t.Context(), b.app, make([]core.Emit, core.MaxBatch+1))
	b.refused(err, refusal.BadRequest)
	got, err := b.core.EmitBatch(t.Context(), b.app, make([]core.Emit, 3))
	if err != nil || len(got) != 3 || got[2].Refused == nil || got[2].Refused.Code != refusal.UnknownEvent {
		t.Errorf("%+v, %v", got, err)
	}
}

// A faultyStore fails at the third occurrence of a transaction.
type faultyStore struct{ store.Store }

type faultyTx struct {
	store.Tx
	appended int
}

var errFaulty = errors.New("the disk is on fire")

func (s faultyStore) Update(ctx context.Context, f func(store.Tx) error) error {
	return s.Store.Update(ctx, func(tx store.Tx) error { return f(&faultyTx{Tx: tx}) })
}

func (t *faultyTx) Append(o wake.Occurrence) (wake.Seq, error) {
	if t.appended++; t.appended == 3 {
		return 0, errFaulty
	}
	return t.Tx.Append(o)
}

func TestEmitBatchIsOneTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *core.Options) { o.Store = faultyStore{o.Store} })
	in := b.inbox(b.subscribe(claude, "j1"))
	batch := []core.Emit{batchEmit("j1", "one", ""), batchEmit("j1", "two", "k"), batchEmit("j1", "three", "")}
	if got, err := b.core.EmitBatch(t.Context(), b.app, batch); got != nil || !errors.Is(err, errFaulty) {
		t.Errorf("%+v, %v", got, err)
	}
	if texts := b.read(in); len(texts) != 0 {
		t.Errorf("of a batch that failed %q were received", texts)
	}
	if got, err := b.core.EmitBatch(t.Context(), b.app, batch[:2]); err != nil || got[1].Duplicate {
		t.Errorf("again: %+v, %v", got, err)
	}
}
