package sqlite

import (
	"encoding/binary"
	"testing"
)

func TestUnused(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		number         uint32
		kind           byte
		cells, content uint16
		from, size     int // of what is unused; none: 0
	}{
		"a table's leaf":                {7, 13, 2, 4000, 12, 3988},
		"an index's leaf":               {7, 10, 0, 4096, 8, 4088},
		"a table's inner page":          {7, 5, 1, 100, 14, 86},
		"an index's inner page":         {7, 2, 3, 18, 18, 0},
		"the first page":                {1, 13, 1, 200, 110, 90},
		"another page":                  {7, 0, 2, 4000, 0, 0},
		"what SQLite would not write":   {7, 13, 60000, 4000, 0, 0},
		"what would lie behind its end": {7, 13, 1, 5000, 0, 0},
	} {
		page := make([]byte, 4096)
		header := page
		if test.number == 1 {
			header = page[100:]
		}
		header[0] = test.kind
		binary.BigEndian.PutUint16(header[3:], test.cells)
		binary.BigEndian.PutUint16(header[5:], test.content)
		got := unused(test.number, page)
		if len(got) != test.size || test.size > 0 && &got[0] != &page[test.from] {
			t.Errorf("%s: %d bytes, want %d from %d on", what, len(got), test.size, test.from)
		}
	}
}
