package sqlite

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A run is one row of the topic index: some of a topic's places, rising. A busy topic has many places for each time that
// the index is written, and one row for them costs hardly more than one row for a single place.
type run struct {
	topicKey
	places []wake.Seq
}

// runLength is how many places a run has at most: a reader that wants a few decodes no more than these.
const runLength = 256

// last is the run's last place, which its row is found by.
func (r run) last() wake.Seq { return r.places[len(r.places)-1] }

// earlier is what its row keeps of the other places: from the last backwards, how far each lies before the next.
func (r run) earlier() []byte {
	var b []byte
	for i := len(r.places) - 1; i > 0; i-- {
		b = binary.AppendUvarint(b, uint64(r.places[i]-r.places[i-1]))
	}
	return b
}

// placesOf gives the places of a row.
func placesOf(last wake.Seq, earlier []byte) ([]wake.Seq, error) {
	places := []wake.Seq{last}
	for len(earlier) > 0 {
		distance, n := binary.Uvarint(earlier)
		if n <= 0 || distance == 0 || distance >= uint64(last) {
			return nil, fmt.Errorf("%w: a run of the topic index that ends at place %d", store.ErrCorrupt, places[0])
		}
		earlier = earlier[n:]
		last -= wake.Seq(distance)
		places = append(places, last)
	}
	slices.Reverse(places)
	return places, nil
}
