package sqlite

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

func TestRun(t *testing.T) {
	t.Parallel()
	for _, places := range [][]wake.Seq{
		{1}, {1, 2}, {7, 8, 300, 70_000, 1 << 40}, {1, math.MaxInt64}, {math.MaxInt64 - 1, math.MaxInt64},
	} {
		r := run{places: places}
		got, err := placesOf(r.last(), r.earlier())
		if diff := cmp.Diff(places, got); diff != "" || err != nil {
			t.Errorf("places %v: %v (-want +got):\n%s", places, err, diff)
		}
	}
}

// FuzzPlacesOf gives it any bytes: what it makes of them is rising and positive, or an error.
func FuzzPlacesOf(f *testing.F) {
	f.Add(int64(10), []byte{})
	f.Add(int64(10), []byte{1, 2, 3})
	f.Add(int64(10), []byte{10})
	f.Add(int64(10), []byte{0})
	f.Add(int64(10), []byte{0x80})
	f.Add(int64(math.MaxInt64), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, last int64, earlier []byte) {
		if last <= 0 {
			return
		}
		places, err := placesOf(wake.Seq(last), earlier)
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		for i, seq := range places {
			if seq <= 0 || i > 0 && seq <= places[i-1] {
				t.Fatalf("places %v", places)
			}
		}
		again, err := placesOf(wake.Seq(last), run{places: places}.earlier())
		if diff := cmp.Diff(places, again); diff != "" || err != nil {
			t.Errorf("once more: %v (-first +second):\n%s", err, diff)
		}
	})
}
