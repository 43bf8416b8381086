package core

import (
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// owed is one page of what somebody is owed.
type owed struct {
	occurrences []wake.Occurrence
	through     wake.Seq // everything up to here was looked at
	more        bool     // there may be more after it
}

// A stretch of the log is the places after one and up to another.
type stretch struct{ after, through wake.Seq }

// maxLooked is about how many occurrences one read looks at: a filter may pass over a million that it does not want, and a
// snapshot is not to be held for as long as that takes.
const maxLooked = 5000

// leastPage is how many occurrences are read from the store at once at least: of a few, most may not be wanted.
const leastPage = 32

// readLog reads the occurrences on some topics within a stretch of the log, at most limit that are taken.
func readLog(r store.Reader, app string, topics []string, within stretch, limit int, takes func(wake.Occurrence) bool) (owed, error) {
	log, err := r.Log()
	if err != nil {
		return owed{}, err
	}
	end, size := min(within.through, log.Head), max(limit, leastPage)
	page := owed{through: within.after}
	for looked := 0; page.through < end; looked += size {
		if looked >= maxLooked {
			page.more = true
			return page, nil
		}
		found, err := r.Occurrences(app, topics, page.through, size)
		if err != nil {
			return owed{}, err
		}
		for _, o := range found {
			switch {
			case o.Seq > end:
				page.through = end
				return page, nil
			case len(page.occurrences) == limit:
				page.more = true
				return page, nil
			}
			page.through = o.Seq
			if takes(o) {
				page.occurrences = append(page.occurrences, o)
			}
		}
		if len(found) < size {
			// Nothing on these topics lies between the last one found and the log's end.
			page.through = end
		}
	}
	return page, nil
}

// readOn is readLog of one topic, again until there are limit or the stretch was read to its end.
func readOn(r store.Reader, app, topic string, within stretch, limit int, takes func(wake.Occurrence) bool) (owed, error) {
	all := owed{through: within.after, more: true}
	for all.more && len(all.occurrences) < limit {
		page, err := readLog(r, app, []string{topic}, stretch{all.through, within.through}, limit-len(all.occurrences), takes)
		if err != nil {
			return owed{}, err
		}
		all = owed{append(all.occurrences, page.occurrences...), page.through, page.more}
	}
	return all, nil
}

// readOwed reads what a conversation is owed of a stretch of the log: what one of its subscriptions takes, and its own topic.
func readOwed(r store.Reader, conversation wake.Conversation, subs []wake.Subscription, within stretch, limit int) (owed, error) {
	own, takers := conversation.Topic(), takersOf(subs)
	return readLog(r, conversation.App, topicsOf(conversation, subs), within, limit, func(o wake.Occurrence) bool {
		return o.Topics[0] == own || takers.take(o)
	})
}

// takers are subscriptions by their topics: of the thousands a conversation may have, an occurrence concerns few.
type takers map[string][]wake.Subscription

func takersOf(subs []wake.Subscription) takers {
	t := make(takers, len(subs))
	for _, s := range subs {
		t.add(s)
	}
	return t
}

func (t takers) add(s wake.Subscription) {
	if !s.EndedAt.IsZero() && s.Until == 0 {
		return // it ended before the log began
	}
	t[s.Topic] = append(t[s.Topic], s)
}

// take reports whether one of them takes the occurrence.
func (t takers) take(o wake.Occurrence) bool {
	for _, topic := range o.Topics {
		for _, s := range t[topic] {
			if s.Takes(o) {
				return true
			}
		}
	}
	return false
}

// topicsOf lists the topics that a conversation reads, each once, its own first.
func topicsOf(conversation wake.Conversation, subs []wake.Subscription) []string {
	topics, seen := make([]string, 1, 1+len(subs)), make(map[string]bool, len(subs))
	topics[0] = conversation.Topic()
	for _, s := range subs {
		if !seen[s.Topic] {
			seen[s.Topic] = true
			topics = append(topics, s.Topic)
		}
	}
	return topics
}
