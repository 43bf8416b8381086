package postgres

import (
	"errors"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
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
	if err := t.flush(); err != nil {
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
		f.state.Erased++
		return f.changed(f.q.BeginForgetting(background, queries.BeginForgettingParams{App: f.app, UserID: f.user}))
	}
	begun, err := f.changedRows(f.q.EndForgetting(background, queries.EndForgettingParams{App: f.app, UserID: f.user}))
	if err == nil && (begun || f.done.Removed > 0) {
		f.state.Erased++
		f.note()
	}
	return err
}

func (f *forgetting) conversations() error {
	ids, err := f.q.ConversationsOfUser(background, queries.ConversationsOfUserParams{App: f.app, UserID: f.user, Max: most(f.left)})
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
	principals := make([]string, len(subs))
	for i, s := range subs {
		principals[i] = wake.VoucherPrincipal(s.ID)
		f.w.cache.subscriptions.Forget(topicKey{s.App, s.Topic})
	}
	f.w.outdates = true
	hooks, err := f.q.WebhooksOfPrincipals(background, queries.WebhooksOfPrincipalsParams{App: f.app, Principals: principals})
	if err := f.deleteWebhooks(hooks, err); err != nil {
		return err
	}
	if err := f.deleteConversations([]string{id}); err != nil {
		return err
	}
	f.done.Conversations = append(f.done.Conversations, id)
	f.removed(1 + len(subs))
	return nil
}

func (f *forgetting) webhooks() error {
	hooks, err := f.q.WebhooksFor(background, queries.WebhooksForParams{App: f.app, UserID: f.user, Max: most(f.left)})
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
	rows, err := f.q.OccurrencesTo(background, queries.OccurrencesToParams{App: f.app, Recipient: nullText(f.user), Max: most(f.left)})
	if err != nil {
		return f.fault(err)
	}
	gone := make([]placed, len(rows))
	for i, row := range rows {
		gone[i] = placed{row.Seq, f.app, splitTopics(row.Topics)}
	}
	f.removed(len(gone))
	_, err = f.removeOccurrences(gone)
	return err
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

// topics removes what lies on the topics from one up to another. An occurrence that other topics have too stays there.
func (f *forgetting) topics(from, to string) error {
	if f.left <= 0 {
		return nil
	}
	rows, err := f.q.PlacesFrom(background, queries.PlacesFromParams{
		App: f.app, FromTopic: []byte(from), ToTopic: []byte(to), Max: most(f.left),
	})
	if err != nil {
		return f.fault(err)
	}
	var gone []placed
	var left queries.DeletePlacesParams // places that stay on other topics
	for _, row := range rows {
		left.Apps, left.Topics, left.Seqs = append(left.Apps, f.app), append(left.Topics, row.Topic), append(left.Seqs, row.Seq)
		topics := splitTopics(row.Topics)
		others := slices.DeleteFunc(slices.Clone(topics), func(topic string) bool { return topic >= from && topic < to })
		if len(others) == 0 {
			gone = append(gone, placed{row.Seq, f.app, topics})
			continue
		}
		if len(others) < len(topics) {
			joined := []byte(strings.Join(others, topicSeparator))
			if err := f.changed(f.q.SetTopics(background, queries.SetTopicsParams{Topics: joined, Seq: row.Seq})); err != nil {
				return err
			}
		}
	}
	if len(rows) > 0 {
		if err := f.changed(f.q.DeletePlaces(background, left)); err != nil {
			return err
		}
	}
	f.removed(len(rows))
	_, err = f.removeOccurrences(gone)
	return err
}

func (f *forgetting) publishURLs() error {
	n, err := f.q.DeletePublishURLsTo(background, queries.DeletePublishURLsToParams{App: f.app, Recipient: f.user, Max: most(f.left)})
	if _, err := f.changedRows(n, err); err != nil {
		return err
	}
	f.removed(int(n))
	from, to := privateRange(f.user)
	if from == "" || f.left <= 0 {
		return nil
	}
	n, err = f.q.DeletePublishURLsFrom(background, queries.DeletePublishURLsFromParams{
		App: f.app, FromTopic: []byte(from), ToTopic: []byte(to), Max: most(f.left),
	})
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
