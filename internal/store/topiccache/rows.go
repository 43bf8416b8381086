package topiccache

import (
	"cmp"
	"slices"
)

// Rows are those of one topic in the order of creation, which may be shared: who was given them does not change them.
type Rows[T any] struct {
	List []T
	N    []int64 // each one's place in the order of creation among the rows of all topics; rising
}

// InOrder gives the rows that a query returned in the order of creation.
func InOrder[R, T any](rows []R, to func(R) (T, error), n func(R) int64) (*Rows[T], error) {
	o := &Rows[T]{List: make([]T, 0, len(rows)), N: make([]int64, 0, len(rows))}
	for _, r := range rows {
		v, err := to(r)
		if err != nil {
			return nil, err
		}
		o.List, o.N = append(o.List, v), append(o.N, n(r))
	}
	return o, nil
}

// Join joins what one topic after the other holds, in the order of creation. A row has one topic, so none comes twice. One
// topic's rows are passed on as they are.
func Join[T any](topics []string, on func(topic string) (*Rows[T], error)) ([]T, error) {
	var found []*Rows[T]
	for i, topic := range topics {
		if slices.Contains(topics[:i], topic) {
			continue
		}
		o, err := on(topic)
		if err != nil {
			return nil, err
		}
		if len(o.List) > 0 {
			found = append(found, o)
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0].List, nil
	}
	return merge(found), nil
}

func merge[T any](lists []*Rows[T]) []T {
	type place struct {
		n   int64
		row *T
	}
	var places []place
	for _, o := range lists {
		for i := range o.List {
			places = append(places, place{o.N[i], &o.List[i]})
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.n, b.n) })
	rows := make([]T, len(places))
	for i, p := range places {
		rows[i] = *p.row
	}
	return rows
}
