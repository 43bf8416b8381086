package appapi_test

import (
	"encoding/json"
	"testing"
)

// A request's dialect decides, whoever the client is; without one its name does.
func TestTheDialectThatAnAppAsksFor(t *testing.T) {
	t.Parallel()
	l := setup(t)
	const gone = `"params":{"name":"site.updated","arguments":{"site":"s"},"delivery":{"url":"https://hook.example/"}}`
	for name, c := range map[string]struct {
		about       string
		code        float64 // of an unknown event
		unsubscribe float64 // of what is not there; 0: no error
	}{
		"nobody in particular": {`"call":{"user":"ada"}`, -32023, -32023},
		"ChatGPT":              {`"call":{"user":"ada","client":"openai-mcp"}`, -32011, 0},
		"draft for ChatGPT":    {`"call":{"user":"ada","client":"openai-mcp"},"dialect":"draft"`, -32023, -32023},
		"final":                {`"call":{"user":"ada"},"dialect":"final"`, -32023, -32023},
		"chatgpt for another":  {`"call":{"user":"ada"},"dialect":"chatgpt"`, -32011, 0},
	} {
		code := func(path, params string) float64 {
			t.Helper()
			var answer struct{ Error struct{ Code float64 } }
			got := l.app.send(t, "POST", path, `{`+c.about+`,`+params+`}`)
			if err := json.Unmarshal(got.body, &answer); err != nil || got.status != 200 {
				t.Fatalf("%s: %d %s", name, got.status, got.body)
			}
			return answer.Error.Code
		}
		if got := code("/events/poll", `"params":{"name":"no.such"}`); got != c.code {
			t.Errorf("%s: an unknown event is %v, want %v", name, got, c.code)
		}
		if got := code("/events/unsubscribe", gone); got != c.unsubscribe {
			t.Errorf("%s: unsubscribing what is not there is %v, want %v", name, got, c.unsubscribe)
		}
	}
	if got := l.app.send(t, "POST", "/events/poll", `{"call":{},"dialect":"klingon","params":{}}`).says(t); got != "bad_request: dialect: draft, chatgpt or final" {
		t.Error(got)
	}
}
