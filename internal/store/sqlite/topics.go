package sqlite

import (
	"cmp"
	"slices"
)

// A topicKey names a topic of an app.
type topicKey struct{ app, topic string }

func compareTopics(a, b topicKey) int {
	return cmp.Or(cmp.Compare(a.app, b.app), cmp.Compare(a.topic, b.topic))
}

// ordered holds rows of one topic, and beside each its place in the order of creation.
type ordered[T any] struct {
	rows []T
	n    []int64
}

func inOrder[R, T any](rows []R, to func(R) (T, error), n func(R) int64) (*ordered[T], error) {
	o := &ordered[T]{rows: make([]T, 0, len(rows)), n: make([]int64, 0, len(rows))}
	for _, r := range rows {
		v, err := to(r)
		if err != nil {
			return nil, err
		}
		o.rows, o.n = append(o.rows, v), append(o.n, n(r))
	}
	return o, nil
}

// onTopics joins what one topic after the other holds, in the order of creation. A row has one topic, so none comes twice.
// One topic's rows are passed on as they are.
func onTopics[T any](app string, topics []string, on func(topicKey) (*ordered[T], error)) ([]T, error) {
	var found []*ordered[T]
	for i, topic := range topics {
		if slices.Contains(topics[:i], topic) {
			continue
		}
		o, err := on(topicKey{app, topic})
		if err != nil {
			return nil, err
		}
		if len(o.rows) > 0 {
			found = append(found, o)
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0].rows, nil
	}
	return merge(found), nil
}

func merge[T any](lists []*ordered[T]) []T {
	type place struct {
		n   int64
		row *T
	}
	var places []place
	for _, o := range lists {
		for i := range o.rows {
			places = append(places, place{o.n[i], &o.rows[i]})
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.n, b.n) })
	rows := make([]T, len(places))
	for i, p := range places {
		rows[i] = *p.row
	}
	return rows
}
