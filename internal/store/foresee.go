package store

import "context"

// Topics are some topics of one app.
type Topics struct {
	App    string
	Topics []string
}

type topicsKey struct{}

// WithTopics gives a context for an Update that will ask who is on these topics ([Reader].SubscriptionsTo, WebhooksTo). It is a
// hint: a store may look them up for several updates at once, and need not. What the update is told is the same.
func WithTopics(ctx context.Context, app string, topics []string) context.Context {
	return context.WithValue(ctx, topicsKey{}, Topics{App: app, Topics: topics})
}

// TopicsOf are those of [WithTopics], none without it.
func TopicsOf(ctx context.Context) Topics {
	t, _ := ctx.Value(topicsKey{}).(Topics)
	return t
}
