package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

func testOccurrences(s *suite) {
	app := s.addApp()
	var before store.Log
	s.check(func(r store.Reader) {
		before = got[store.Log](s)(r.Log())
		s.same("an empty log", store.Log{Epoch: before.Epoch}, before)
		s.is("nothing there", store.ErrNotFound, fails(r.Occurrence(1)))
	})
	if len(before.Epoch) != 4 || strings.Trim(before.Epoch, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		s.Errorf("epoch %q, want four characters of lower-case base32", before.Epoch)
	}

	full := wake.Occurrence{
		App: app.ID, Kind: wake.KindEnded, Event: "a", Topics: []string{"ev/a/1", "$conversation/x"}, Arguments: []byte(`{"n":1.0}`),
		Text: "Line one\nline two 日本", Data: []byte(`{"x":"<&>"}`), To: "ada", Key: "key of its own", Matched: 3, At: start,
	}
	bare := wake.Occurrence{App: app.ID, Topics: []string{"plain"}}
	large := occurrence(app.ID, "plain")
	large.Data = []byte(`{"x":"` + strings.Repeat("y", 256<<10) + `"}`)
	s.change(func(t store.Tx) error {
		for _, o := range []*wake.Occurrence{&full, &bare, &large} {
			seq, err := t.Append(*o)
			if err != nil {
				return err
			}
			o.Seq = seq
		}
		return nil
	}, func(r store.Reader) {
		s.same("places", []wake.Seq{1, 2, 3}, []wake.Seq{full.Seq, bare.Seq, large.Seq})
		s.same("with everything", full, got[wake.Occurrence](s)(r.Occurrence(full.Seq)))
		s.same("with nothing", bare, got[wake.Occurrence](s)(r.Occurrence(bare.Seq)))
		s.same("a large one", large, got[wake.Occurrence](s)(r.Occurrence(large.Seq)))
		s.is("none yet", store.ErrNotFound, fails(r.Occurrence(large.Seq+1)))
		s.same("the log", store.Log{Epoch: before.Epoch, Head: large.Seq}, got[store.Log](s)(r.Log()))
	})
}

func testOccurrenceKeys(s *suite) {
	app, other := s.addApp(), s.addApp()
	keyed := func(app, event, key string) wake.Occurrence {
		o := occurrence(app, "topic")
		o.Event, o.Key = event, key
		return o
	}
	first := keyed(app.ID, "a", "k")
	s.change(func(t store.Tx) (err error) {
		s.is("none yet", store.ErrNotFound, fails(t.OccurrenceOf(app.ID, "a", "k")))
		if first.Seq, err = t.Append(keyed(app.ID, "a", "k")); err != nil {
			return err
		}
		s.is("again in its transaction", store.ErrExists, fails(t.Append(keyed(app.ID, "a", "k"))))
		return nil
	}, func(r store.Reader) {
		s.same("by its key", first, got[wake.Occurrence](s)(r.OccurrenceOf(app.ID, "a", "k")))
		s.is("another event's", store.ErrNotFound, fails(r.OccurrenceOf(app.ID, "b", "k")))
		s.is("another app's", store.ErrNotFound, fails(r.OccurrenceOf(other.ID, "a", "k")))
		s.is("a publish's", store.ErrNotFound, fails(r.OccurrenceOf(app.ID, "", "k")))
		s.is("no key", store.ErrNotFound, fails(r.OccurrenceOf(app.ID, "a", "")))
	})
	s.is("again later", store.ErrExists, s.Update(s.Context(), func(t store.Tx) error {
		return fails(t.Append(keyed(app.ID, "a", "k")))
	}))

	// Other names of the same key, and no key at all, are free.
	for _, o := range []wake.Occurrence{
		keyed(app.ID, "b", "k"), keyed(app.ID, "", "k"), keyed(other.ID, "a", "k"), keyed(app.ID, "a", "K"),
		keyed(app.ID, "a", ""), keyed(app.ID, "a", ""),
	} {
		o := s.append(o)
		s.check(func(r store.Reader) {
			s.same("by place", o, got[wake.Occurrence](s)(r.Occurrence(o.Seq)))
			if o.Key != "" {
				s.same("by key", o, got[wake.Occurrence](s)(r.OccurrenceOf(o.App, o.Event, o.Key)))
			}
		})
	}
}

func testOccurrencesByTopic(s *suite) {
	app, other := s.addApp(), s.addApp()
	type occurrences = []wake.Occurrence
	a := s.append(occurrence(app.ID, "a"))
	b := s.append(occurrence(app.ID, "b"))
	both := s.append(occurrence(app.ID, "a", "b", "a"))
	elsewhere := s.append(occurrence(other.ID, "a"))
	last := occurrence(app.ID, "a")
	s.change(func(t store.Tx) (err error) {
		last.Seq, err = t.Append(last)
		return err
	}, func(r store.Reader) {
		on := func(after wake.Seq, limit int, topics ...string) occurrences {
			return got[occurrences](s)(r.Occurrences(app.ID, topics, after, limit))
		}
		s.same("on one topic", occurrences{a, both, last}, on(0, 10, "a"))
		s.same("after one", occurrences{both, last}, on(a.Seq, 10, "a"))
		s.same("after another's", occurrences{both, last}, on(b.Seq, 10, "a"))
		s.same("after the last", occurrences{}, on(last.Seq, 10, "a"))
		s.same("after what does not exist", occurrences{}, on(last.Seq+100, 10, "a"))
		s.same("at most two", occurrences{a, both}, on(0, 2, "a"))
		s.same("at most none", occurrences{}, on(0, 0, "a"))
		s.same("on two, each once", occurrences{a, b, both, last}, on(0, 10, "b", "a", "b"))
		s.same("on two, at most three", occurrences{a, b, both}, on(0, 3, "a", "b"))
		s.same("on two, after one", occurrences{both, last}, on(b.Seq, 10, "a", "b"))
		s.same("on none", occurrences{}, on(0, 10))
		s.same("on an unknown one", occurrences{}, on(0, 10, "ab"))
		s.same("of the other app", occurrences{elsewhere}, got[occurrences](s)(r.Occurrences(other.ID, []string{"a", "b"}, 0, 10)))
	})
}

func testTopicNames(s *suite) {
	app := s.addApp()
	for _, topic := range []string{"", "a\nb"} {
		err := s.Update(s.Context(), func(t store.Tx) error { return fails(t.Append(occurrence(app.ID, "topic", topic))) })
		if err == nil {
			s.Errorf("topic %q was taken", topic)
		}
	}
	odd := s.append(occurrence(app.ID, "ev/日本/%_*", "a b", "'\";--", "\x00"))
	s.check(func(r store.Reader) {
		for _, topic := range odd.Topics {
			s.same(topic, []wake.Occurrence{odd}, got[[]wake.Occurrence](s)(r.Occurrences(app.ID, []string{topic}, 0, 10)))
		}
	})
}

// testOccurrencePages reads a long log in pages, across whatever a store keeps in different places, and after pruning.
func testOccurrencePages(s *suite) {
	const topics, rounds = 7, 1000
	app := s.addApp()
	var all []string
	for i := range topics {
		all = append(all, fmt.Sprintf("topic/%d", i))
	}
	want := map[string][]wake.Seq{}
	for round := range rounds / 100 {
		s.fill(app.ID, all, round*100, want)
		if round == rounds/200 {
			s.reopen()
		}
	}
	read := func(r store.Reader) {
		for topic, seqs := range want {
			s.same(topic, seqs, s.pages(r, app.ID, topic))
		}
		s.same("all topics together", want["everything"], s.pages(r, app.ID, all...))
	}
	s.check(read)

	const pruned = rounds*2/3 + 5
	s.prune(start.Add(pruned*time.Second), 64)
	horizon := want["everything"][pruned-1]
	for topic, seqs := range want {
		want[topic] = slices.DeleteFunc(seqs, func(seq wake.Seq) bool { return seq <= horizon })
	}
	s.check(read)
}

// fill appends a hundred occurrences, a second apart, each to one of the topics and to "everything", and notes their places.
func (s *suite) fill(app string, topics []string, from int, places map[string][]wake.Seq) {
	s.Helper()
	var appended map[string][]wake.Seq
	s.update(func(t store.Tx) error {
		appended = map[string][]wake.Seq{}
		for i := range 100 {
			topic := topics[(from/100+i*i)%len(topics)]
			o := occurrence(app, topic, "everything")
			o.At = start.Add(time.Duration(from+i) * time.Second)
			seq, err := t.Append(o)
			if err != nil {
				return err
			}
			appended[topic] = append(appended[topic], seq)
			appended["everything"] = append(appended["everything"], seq)
		}
		return nil
	})
	for topic, seqs := range appended {
		places[topic] = append(places[topic], seqs...)
	}
}

// pages reads all places on the topics, page by page.
func (s *suite) pages(r store.Reader, app string, topics ...string) []wake.Seq {
	s.Helper()
	const page = 100
	var seqs []wake.Seq
	for after := wake.Seq(0); ; after = seqs[len(seqs)-1] {
		found := got[[]wake.Occurrence](s)(r.Occurrences(app, topics, after, page))
		for _, o := range found {
			seqs = append(seqs, o.Seq)
		}
		if len(found) < page {
			return seqs
		}
	}
}

func testReferences(s *suite) {
	c := wake.Conversation{ID: "c", App: "none"}
	writes := map[string]func(store.Tx) error{
		"a key":          func(t store.Tx) error { return t.CreateKey(wake.Key{ID: "k", App: "none", Public: []byte{1}}) },
		"a manifest":     func(t store.Tx) error { return fails(t.PutManifest("none", []byte(`{}`))) },
		"a conversation": func(t store.Tx) error { return t.PutConversation(c) },
		"a subscription": func(t store.Tx) error { return t.PutSubscription(s.subscription(c, "topic")) },
		"a webhook":      func(t store.Tx) error { return t.PutWebhook(wake.Webhook{ID: "w", App: "none"}) },
		"a delivery":     func(t store.Tx) error { return t.QueueDelivery(wake.Delivery{Webhook: "w", Seq: 1}) },
		"a publish URL":  func(t store.Tx) error { return t.PutPublishURL(wake.PublishURL{ID: "u", App: "none"}) },
		"an occurrence":  func(t store.Tx) error { return fails(t.Append(occurrence("none", "topic"))) },
	}
	for what, write := range writes {
		s.is(what+" of what is not there", store.ErrNotFound, s.Update(s.Context(), write))
	}
	s.check(func(r store.Reader) {
		s.same("nothing in the log", wake.Seq(0), got[store.Log](s)(r.Log()).Head)
		s.is("no conversation", store.ErrNotFound, fails(r.Conversation("c")))
		s.is("no webhook", store.ErrNotFound, fails(r.Webhook("w")))
		s.same("no delivery", time.Time{}, got[time.Time](s)(r.NextDelivery(nil)))
	})
}

// A key that is taken is found among many that are not, whatever of them is written when, and spoils none of them.
func testTakenKeys(s *suite) {
	app := s.addApp()
	keyed := func(n int) wake.Occurrence {
		return wake.Occurrence{App: app.ID, Kind: wake.KindEvent, Event: "a", Topics: []string{"t"}, Key: fmt.Sprint(n), At: start}
	}
	s.update(func(t store.Tx) error { return fails(t.Append(keyed(33))) })
	const many = 100
	var refused []int
	s.update(func(t store.Tx) error {
		refused = nil
		for n := range many {
			switch _, err := t.Append(keyed(n)); {
			case errors.Is(err, store.ErrExists):
				refused = append(refused, n)
			case err != nil:
				return err
			}
		}
		return nil
	})
	s.same("refused", []int{33}, refused)
	s.check(func(r store.Reader) {
		kept := got[[]wake.Occurrence](s)(r.Occurrences(app.ID, []string{"t"}, 0, 2*many))
		s.same("kept", many, len(kept))
		for i, o := range kept {
			s.same("its place", wake.Seq(i+1), o.Seq)
			s.same("by its key", o, got[wake.Occurrence](s)(r.OccurrenceOf(app.ID, "a", o.Key)))
		}
	})
}
