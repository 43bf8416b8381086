package appapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
)

// results are those of a batch, each as JSON.
func (r reply) results(t *testing.T) []string {
	t.Helper()
	r.good(t)
	var answer struct {
		Results []json.RawMessage `json:"results"`
	}
	if err := json.Unmarshal(r.body, &answer); err != nil || answer.Results == nil {
		t.Fatalf("%s has no results: %v", r.body, err)
	}
	list := []string{}
	for _, one := range answer.Results {
		list = append(list, string(one))
	}
	return list
}

func batchOf(emits ...string) string { return "[" + strings.Join(emits, ",") + "]" }

func TestBatch(t *testing.T) {
	t.Parallel()
	l := setup(t)
	session := l.app.post(t, "/event-subscriptions", subscribeJob(`"client":"anything"`, "j"))["session"].(string)
	got := l.app.send(t, "POST", "/events/emit", " "+batchOf(
		emitJob("j", "first"),
		emitOf(`NAME,ARGUMENTS,PAYLOAD,"text":"second","id":"once"`),
		emitJob("elsewhere", "nobody hears it"),
		emitOf(`NAME,ARGUMENTS,PAYLOAD,"text":"again","id":"once"`),
		emitJob("J", "refused"),
		`7`,
		emitJob("j", "third"),
	)).results(t)
	want := []string{
		`{"matched":1}`, `{"matched":1}`, `{"matched":0}`, `{"duplicate":true,"matched":1}`,
		`{"error":{"code":"bad_arguments","message":"[4].arguments for crawl.finished: job: a value that routes is made of a-z 0-9 . _ -"}}`,
		`{"error":{"code":"bad_request","message":"[5]: must be a JSON object"}}`,
		`{"matched":1}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	next := l.app.post(t, "/event-subscriptions", subscribeJob(`"client":"anything","session":"`+session+`"`, "other"))
	text, _ := next.at("addition", "text").(string)
	first, second, third := strings.Index(text, "first"), strings.Index(text, "second"), strings.Index(text, "third")
	if first < 0 || first > second || second > third || strings.Contains(text, "again") || strings.Contains(text, "refused") {
		t.Errorf("the conversation received %q", text)
	}
}

// Each emit of the table for one alone is refused in a batch too, for the same reason, after its place.
func TestBatchOfBadEmits(t *testing.T) {
	t.Parallel()
	l := setup(t)
	table := badEmits
	for name, c := range table {
		got := l.app.send(t, "POST", "/events/emit", batchOf(emitJob("j", "good"), c.body)).results(t)
		var refused struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal([]byte(got[1]), &refused); err != nil || got[0] != `{"matched":0}` {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		_, message, _ := strings.Cut(refused.Error.Message, "[1].")
		if refused.Error.Code == "unknown_event" {
			message = strings.TrimPrefix(message, "name: ")
		}
		if says := refused.Error.Code + ": " + message; !strings.HasPrefix(says, c.says) {
			t.Errorf("%s: %s, want %s", name, refused.Error.Message, c.says)
		}
	}
}

// What makes one element bad JSON, though not the array, is that element's own affair.
func TestBatchOfAmbiguousElements(t *testing.T) {
	t.Parallel()
	l := setup(t)
	for element, want := range map[string]string{
		`{"name":"a","name":"b"}`:                          "bad_request [1].name: the key is there twice",
		emitOf(`NAME,ARGUMENTS,"payload":{"pages":1e400}`): "bad_request [1].payload.pages: the number is beyond the range of a double",
		`{"text":"\ud800"}`:                                "bad_request [1].text: a lone surrogate at byte 9",
		"{\"text\":\"\xff\"}":                              "bad_request [1].text: not valid UTF-8 at byte 9",
		"{\"\xff\":1}":                                     "bad_request [1]: not valid UTF-8 at byte 2",
		`[]`:                                               "bad_request [1]: must be a JSON object",
		`null`:                                             "bad_request [1]: must be a JSON object",
		`{"to":1}`:                                         "bad_request [1].to: must be a string",
		`{}`:                                               "bad_request [1].name: is missing",
		emitOf(`NAME,ARGUMENTS,"payload":{"pages":1,"x":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`): "bad_request [1].payload.x[0][0][0][0][0][0]…: more than 65 objects and arrays inside one another",
		emitOf(`NAME,ARGUMENTS,PAYLOAD,"more":"` + long(2<<20) + `"`):                                                "too_large [1]: at most 2097152 bytes",
	} {
		got := l.app.send(t, "POST", "/events/emit", batchOf(emitJob("j", "good"), element)).results(t)
		var refused struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal([]byte(got[1]), &refused); err != nil || got[0] != `{"matched":0}` {
			t.Errorf("%.80s: %v, %v", element, got, err)
		}
		if diff := cmp.Diff(want, refused.Error.Code+" "+refused.Error.Message); diff != "" {
			t.Errorf("%.80s: %s", element, diff)
		}
	}
}

func TestBatchesThatAreRefusedWhole(t *testing.T) {
	t.Parallel()
	l := setup(t)
	most := strings.Repeat(emitJob("j", "t")+",", core.MaxBatch)
	for name, c := range map[string]struct{ body, says string }{
		"one too many":      {"[" + most + emitJob("j", "t") + "]", "bad_request: more than 1000 elements in the array"},
		"a trailing comma":  {"[" + emitJob("j", "t") + ",]", "bad_request: not valid JSON at byte"},
		"cut off":           {"[" + emitJob("j", "t"), "bad_request: the JSON ends too early, at byte"},
		"an element broken": {"[" + emitJob("j", "t") + `,{"name":}]`, "bad_request: [1]: not valid JSON at byte"},
		"two arrays":        {"[][]", "bad_request: there is more after the JSON array, at byte 2"},
		"no emits":          {" [ ] ", "bad_request: a batch: between 1 and 1000 emits"},
		"over 8 MiB":        {`[{"more":"` + long(8<<20) + `"}]`, "too_large: the body: at most 8388608 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if says := l.app.send(t, "POST", "/events/emit", c.body).says(t); !strings.HasPrefix(says, c.says) {
				t.Errorf("got %s", says)
			}
		})
	}
	if got := l.app.send(t, "POST", "/events/emit", "["+strings.TrimSuffix(most, ",")+"]").results(t); len(got) != core.MaxBatch {
		t.Errorf("%d results for the largest batch", len(got))
	}
	// A call that takes no array does not take a longer one either.
	reply := l.app.send(t, "POST", "/topics/publish", `[{"more":"`+long(3<<20)+`"}]`)
	if says := reply.says(t); says != "too_large: the body: at most 2097152 bytes" || reply.status != http.StatusRequestEntityTooLarge {
		t.Errorf("an array of 3 MiB elsewhere: %s", says)
	}
}
