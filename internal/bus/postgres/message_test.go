package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/bus"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	many := func(n, length int) (keys []bus.Key) {
		for i := range n {
			keys = append(keys, bus.Key{App: "app", Topic: fmt.Sprintf("%0*d", length, i)})
		}
		return keys
	}
	tests := map[string]struct {
		keys     []bus.Key
		all      bool
		messages int
		wantAll  bool
	}{
		"nothing":                  {},
		"one":                      {keys: many(1, 10), messages: 1},
		"odd names":                {keys: []bus.Key{{App: "a", Topic: `"\<&>` + "\n\x00é日本"}, {}}, messages: 1},
		"several in one":           {keys: many(100, 50), messages: 1},
		"several messages":         {keys: many(1000, 50), messages: 8},
		"more than is worth it":    {keys: many(5000, 50), messages: 1, wantAll: true},
		"too long a name":          {keys: many(1, maxMessage), messages: 1, wantAll: true},
		"a name that grows":        {keys: []bus.Key{{App: "a", Topic: strings.Repeat("\x01", maxMessage/3)}}, messages: 1, wantAll: true},
		"everything":               {keys: many(3, 10), all: true, messages: 1, wantAll: true},
		"as long as there is room": {keys: many(1, 7800), messages: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			payloads := encode("node", test.keys, test.all)
			if len(payloads) != test.messages {
				t.Errorf("%d messages, want %d", len(payloads), test.messages)
			}
			var got []bus.Key
			all := false
			for _, payload := range payloads {
				if len(payload) > maxMessage {
					t.Errorf("a message of %d bytes", len(payload))
				}
				from, keys, everything, err := decode(payload)
				if err != nil || from != "node" {
					t.Errorf("decoded: from %q, %v", from, err)
				}
				got, all = append(got, keys...), all || everything
			}
			if all != test.wantAll {
				t.Errorf("everything: %t, want %t", all, test.wantAll)
			}
			if diff := cmp.Diff(test.keys, got); diff != "" && !all {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzDecode: whatever somebody sends, decoding does not fail otherwise than by an error, and what it takes is taken again.
func FuzzDecode(f *testing.F) {
	f.Add(`{"from":"a","keys":[["app","topic"]]}`)
	f.Add(`{"from":"a","all":true}`)
	f.Add(`{"keys":[["a"],["a","b","c"]]}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, payload string) {
		from, keys, all, err := decode(payload)
		if err != nil {
			return
		}
		for _, again := range encode(from, keys, all) {
			if _, _, _, err := decode(again); err != nil && len(again) <= maxMessage {
				t.Errorf("%q: %v", again, err)
			}
		}
	})
}
