package sqlite

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

func (r *reader) Forgetting() ([]store.Person, error) {
	rows, err := r.q.Forgetting(background)
	return convert(rows, r.fault(err), sure(func(row queries.Forgetting) store.Person { return store.Person{App: row.App, User: row.UserID} }))
}

func (t *tx) Forget(app, user string, limit int) (store.Forgotten, error) {
	state, err := t.app(app)
	if err != nil || !state.exists || user == "" {
		return store.Forgotten{}, err
	}
	if err := t.settle(); err != nil {
		return store.Forgotten{}, err
	}
	f := &forgetting{tx: t, app: app, user: user, left: max(limit, 1)}
	for _, step := range []func() error{
		f.conversations, f.webhooks, f.occurrences, f.privateTopics, f.publishURLs, f.workspace,
	} {
		if err := step(); err != nil {
			return store.Forgotten{}, err
		}
		if f.left <= 0 {
			break
		}
	}
	f.done.More = f.left <= 0
	return f.done, f.keepCount()
}

// A forgetting is one step of forgetting one user.
type forgetting struct {
	*tx
	app, user string
	left      int // removals this step may still make
	done      store.Forgotten
}

// removed counts what was removed.
func (f *forgetting) removed(n int) {
	f.done.Removed += n
	f.left -= n
}

// keepCount records whether the user is to be forgotten further, and that there is something to scrub.
func (f *forgetting) keepCount() error {
	if f.done.More {
		err := f.q.BeginForgetting(background, queries.BeginForgettingParams{App: f.app, UserID: f.user})
		return errors.Join(f.changed(err), f.countErasure())
	}
	begun, err := f.changedRows(f.q.EndForgetting(background, queries.EndForgettingParams{App: f.app, UserID: f.user}))
	if err != nil || !begun && f.done.Removed == 0 {
		return err
	}
	return f.countErasure()
}

func (f *forgetting) conversations() error {
	ids, err := f.q.ConversationsOfUser(background, queries.ConversationsOfUserParams{App: f.app, UserID: f.user, Max: int64(f.left)})
	if err != nil {
		return f.fault(err)
	}
	for _, id := range ids {
		if err := f.topics(wake.ConversationTopic(id), wake.ConversationTopic(id)+"\x00"); err != nil || f.left <= 0 {
			return err
		}
		if err := f.conversation(id); err != nil || f.left <= 0 {
			return err
		}
	}
	return nil
}

// conversation removes a conversation with its subscriptions, and webhooks that came by their vouchers.
func (f *forgetting) conversation(id string) error {
	subs, err := f.SubscriptionsEver(id)
	if err != nil {
		return err
	}
	for _, s := range subs {
		hooks, err := f.q.WebhooksOfPrincipal(background, queries.WebhooksOfPrincipalParams{App: f.app, Principal: wake.VoucherPrincipal(s.ID)})
		if err := f.deleteWebhooks(hooks, err); err != nil {
			return err
		}
	}
	if err := f.deleteConversation(id, subs); err != nil {
		return err
	}
	f.done.Conversations = append(f.done.Conversations, id)
	f.removed(1 + len(subs))
	return nil
}

func (f *forgetting) webhooks() error {
	hooks, err := f.q.WebhooksFor(background, queries.WebhooksForParams{App: f.app, UserID: f.user, Max: int64(f.left)})
	return f.deleteWebhooks(hooks, err)
}

func (f *forgetting) deleteWebhooks(ids []string, err error) error {
	if err != nil {
		return f.fault(err)
	}
	for _, id := range ids {
		if _, err := f.DeleteWebhook(id); err != nil {
			return err
		}
	}
	f.removed(len(ids))
	return nil
}

// occurrences removes those that were for the user alone.
func (f *forgetting) occurrences() error {
	rows, err := f.q.OccurrencesTo(background, queries.OccurrencesToParams{App: f.app, Recipient: nullString(f.user), Max: int64(f.left)})
	if err != nil {
		return f.fault(err)
	}
	gone := make([]placed, len(rows))
	for i, row := range rows {
		gone[i] = newPlaced(row.Seq, row.Topics)
	}
	return f.remove(gone)
}

// privateTopics removes what lies on the user's own topics.
func (f *forgetting) privateTopics() error {
	from, to := privateRange(f.user)
	if from == "" {
		return nil
	}
	return f.topics(from, to)
}

// privateRange gives the first topic that may be the user's and the first after those; both are empty when there are none.
func privateRange(user string) (from, to string) {
	if from = wake.PrivateTopicPrefix(user); from == "" {
		return "", ""
	}
	return from, strings.TrimSuffix(from, "/") + "0" // which comes after the slash
}

// runsForgotten is how many runs are read at once: each has up to [runLength] places.
const runsForgotten = 4

// topics removes what lies on the topics from one up to another. An occurrence that other topics have too stays there.
func (f *forgetting) topics(from, to string) error {
	for f.left > 0 {
		runs, err := f.q.RunsFrom(background, queries.RunsFromParams{App: f.app, FromTopic: from, ToTopic: to, Max: runsForgotten})
		if err != nil || len(runs) == 0 {
			return f.fault(err)
		}
		for _, run := range runs {
			places, err := placesOf(wake.Seq(run.Last), run.Earlier)
			if err != nil {
				return err
			}
			if err := f.leave(places, from, to); err != nil {
				return err
			}
			key := queries.DeleteRunParams{App: f.app, Topic: run.Topic, Last: run.Last}
			if err := f.changed(f.q.DeleteRun(background, key)); err != nil {
				return err
			}
			f.removed(1)
		}
	}
	return nil
}

// leave takes the occurrences at these places off the topics from one up to another, and removes those that have no other.
func (f *forgetting) leave(places []wake.Seq, from, to string) error {
	list, err := json.Marshal(places)
	if err != nil {
		return err
	}
	rows, err := f.q.TopicsAt(background, string(list))
	if err != nil {
		return f.fault(err)
	}
	var gone []placed
	for _, row := range rows {
		p := newPlaced(row.Seq, row.Topics)
		others := slices.DeleteFunc(slices.Clone(p.topics), func(topic string) bool { return topic >= from && topic < to })
		if len(others) == 0 {
			gone = append(gone, p)
			continue
		}
		joined, err := joinTopics(others)
		if err != nil {
			return err
		}
		if err := f.changed(f.q.SetTopics(background, queries.SetTopicsParams{Topics: joined, Seq: row.Seq})); err != nil {
			return err
		}
	}
	return f.remove(gone)
}

func (f *forgetting) remove(gone []placed) error {
	f.removed(len(gone))
	return f.removeOccurrences(f.app, gone)
}

func (f *forgetting) publishURLs() error {
	n, err := f.q.DeletePublishURLsTo(background, queries.DeletePublishURLsToParams{App: f.app, Recipient: f.user, Max: int64(f.left)})
	if _, err := f.changedRows(n, err); err != nil {
		return err
	}
	f.removed(int(n))
	from, to := privateRange(f.user)
	if from == "" || f.left <= 0 {
		return nil
	}
	n, err = f.q.DeletePublishURLsFrom(background, queries.DeletePublishURLsFromParams{App: f.app, FromTopic: from, ToTopic: to, Max: int64(f.left)})
	if _, err := f.changedRows(n, err); err != nil {
		return err
	}
	f.removed(int(n))
	return nil
}

func (f *forgetting) workspace() error {
	w, err := f.WorkspaceOf(f.app, f.user)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	f.removed(1)
	_, err = f.DeleteWorkspace(w.ID)
	return err
}
