package topiccache

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type topicKey struct{ app, topic string }

func TestCache(t *testing.T) {
	t.Parallel()
	c := New[topicKey](Limits{Topics: 3, Rows: 4}, func(s string) string { return s })
	loaded := 0
	get := func(topic string, n int) []string {
		o, err := c.Get(topicKey{"app", topic}, func(topicKey) (*Rows[string], error) {
			loaded++
			o := &Rows[string]{}
			for i := range n {
				o.List, o.N = append(o.List, fmt.Sprint(topic, i)), append(o.N, int64(i))
			}
			return o, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return o.List
	}
	check := func(what string, loads, topics, rows int) {
		t.Helper()
		if loaded != loads || len(c.topics) != topics || c.recent.Len() != topics || c.rows != rows || len(c.topicOf) != rows {
			t.Errorf("%s: %d loads, %d topics, %d in the list, %d rows, %d ids; want %d loads, %d topics, %d rows",
				what, loaded, len(c.topics), c.recent.Len(), c.rows, len(c.topicOf), loads, topics, rows)
		}
	}
	get("a", 2)
	get("none", 0)
	get("a", 2)
	get("none", 0)
	check("held, an empty answer too", 2, 2, 2)
	get("b", 2)
	get("c", 0)
	check("too many topics: a, not used for longest, goes", 4, 3, 2)
	get("d", 3)
	check("too many rows: b goes as well", 5, 2, 3)
	get("large", 5)
	get("large", 5)
	check("more than all the room is not held", 7, 2, 3)

	before := get("d", 3)
	d := topicKey{"app", "d"}
	for _, test := range []struct {
		id   string
		n    int64
		want bool
	}{{"d0", 9, false}, {"new", 1, false}, {"new", 9, true}} {
		if got := c.Takes(d, test.id, test.n); got != test.want {
			t.Errorf("takes %s at %d: %v", test.id, test.n, got)
		}
	}
	c.Add(d, "new", 9)
	if diff := cmp.Diff([]string{"d0", "d1", "d2", "new"}, get("d", 3)); diff != "" {
		t.Errorf("after adding (-want +got):\n%s", diff)
	}
	if len(before) != 3 {
		t.Errorf("who was given the rows before sees %q", before)
	}
	if c.Takes(d, "more", 10) || c.Takes(topicKey{"app", "x"}, "more", 10) {
		t.Error("takes more than its room, or for a topic it does not hold")
	}
	c.ForgetRow("d1")
	c.ForgetRow("d1")
	check("a row's topic is forgotten", 7, 1, 0)
}
