package appapi_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rouse-dev/rouse/internal/refusal"
)

// Every call that takes a body takes one JSON object and nothing else, but for emit, which takes an array too.
func TestBodiesThatAreNoObject(t *testing.T) {
	t.Parallel()
	l := setup(t)
	deep := 10_000
	for name, c := range map[string]struct{ body, says string }{
		"nothing":              {"", "the JSON ends too early, at byte 0"},
		"cut off":              {`{"name":`, "name: the JSON ends too early, at byte 8"},
		"an array":             {"[]", "must be a JSON object"},
		"a number":             {"7", "must be a JSON object"},
		"null":                 {"null", "must be a JSON object"},
		"a string":             {`"x"`, "must be a JSON object"},
		"two objects":          {"{}{}", "there is more after the JSON object, at byte 2"},
		"trailing garbage":     {"{} x", "there is more after the JSON object, at byte 2"},
		"a trailing comma":     {`{"name":"x",}`, "not valid JSON at byte 11"},
		"single quotes":        {"{'a':1}", "not valid JSON at byte 1"},
		"NaN":                  {`{"a":NaN}`, "a: not valid JSON at byte 5"},
		"UTF-16":               {"\xff\xfe{}", "not valid JSON at byte 0"},
		"invalid UTF-8":        {"{\"name\":\"\xff\"}", "name: not valid UTF-8 at byte 9"},
		"a raw NUL":            {"{\"name\":\"\x00\"}", "name: not valid JSON at byte 9"},
		"a key twice":          {`{"call":{"client":"a"},"name":"x","call":{"client":"b"}}`, "call: the key is there twice"},
		"a key twice, escaped": {`{"name":"x","n\u0061me":"y"}`, "name: the key is there twice"},
		"a key twice, inside":  {`{"payload":{"pages":"x","pages":1}}`, "payload.pages: the key is there twice"},
		"a lone surrogate":     {`{"name":"a\ud800b"}`, "name: a lone surrogate at byte 10"},
		"two of them":          {`{"text":"\udc00\ud800"}`, "text: a lone surrogate at byte 9"},
		"1e400":                {`{"payload":{"pages":1e400}}`, "payload.pages: the number is beyond the range of a double"},
		"-1e400":               {`{"event":{"data":{"n":[0,-1e400]}}}`, "event.data.n[1]: the number is beyond the range of a double"},
		"400 digits":           {`{"n":` + strings.Repeat("9", 400) + `}`, "n: the number is beyond the range of a double"},
		"deep arrays":          {`{"payload":{"x":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + `}}`, "objects and arrays inside one another"},
		"deep objects":         {`{"arguments":` + strings.Repeat(`{"a":`, deep) + "1" + strings.Repeat("}", deep) + `}`, "objects and arrays inside one another"},
		"deep in a call":       {`{"call":{"meta":{"x":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + `}}}`, "objects and arrays inside one another"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, call := range calls {
				if call.good == "" || call.path == "/events/emit" && c.body == "[]" {
					continue
				}
				code, message := l.app.send(t, call.method, call.path, c.body).refused(t)
				if code != refusal.BadRequest || !strings.HasSuffix(message, c.says) || strings.HasPrefix(name, "deep") == (message == c.says) {
					t.Errorf("%s %s: %s: %s", call.method, call.path, code, message)
				}
			}
		})
	}
}

func TestBodiesThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	l := setup(t)
	broken := func() io.Reader {
		return io.MultiReader(strings.NewReader(`{"name":`), iotest.ErrReader(errors.New("reset")))
	}
	large := `{"x":"` + long(16<<20) + `"}`
	for _, call := range calls {
		if call.good == "" {
			continue
		}
		limit := "2097152"
		if call.path == "/manifest" {
			limit = "4194304"
		}
		got := l.app.send(t, call.method, call.path, large)
		if says := got.says(t); says != "too_large: the body: at most "+limit+" bytes" || got.status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s with 16 MiB: %d %s", call.path, got.status, says)
		}
		got = answered(l.api, l.app.request(t, t.Context(), call.method, call.path, broken()))
		if says := got.says(t); says != "bad_request: the body ended early" {
			t.Errorf("%s cut off: %s", call.path, says)
		}
	}
	l.app.send(t, "GET", "/app", "").good(t)
}
