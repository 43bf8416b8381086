package sqlite

import (
	"cmp"

	"github.com/rouse-dev/rouse/internal/store/topiccache"
)

// A topicKey names a topic of an app.
type topicKey struct{ app, topic string }

func compareTopics(a, b topicKey) int {
	return cmp.Or(cmp.Compare(a.app, b.app), cmp.Compare(a.topic, b.topic))
}

// ordered holds rows of one topic in the order of creation.
type ordered[T any] = topiccache.Rows[T]

// onTopics joins what the app's topics hold, see [topiccache.Join].
func onTopics[T any](app string, topics []string, on func(topicKey) (*ordered[T], error)) ([]T, error) {
	return topiccache.Join(topics, func(topic string) (*ordered[T], error) { return on(topicKey{app, topic}) })
}
