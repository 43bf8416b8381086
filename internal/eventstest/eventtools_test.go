package eventstest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// A caller is an agent that calls tools.
type caller struct {
	t           *testing.T
	url, client string
	transcript  strings.Builder
}

// call calls a tool, writes down what was said, and gives its texts.
func (c *caller) call(tool, arguments string) string {
	c.t.Helper()
	answer := c.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
	var message struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	if err := json.Unmarshal([]byte(answer), &message); err != nil || len(message.Result.Content) == 0 {
		c.t.Fatalf("%s %s: %s", tool, arguments, answer)
	}
	var texts []string
	for _, content := range message.Result.Content {
		texts = append(texts, content.Text)
	}
	said := strings.Join(texts, "\n\n")
	if message.Result.IsError {
		said = "(error) " + said
	}
	fmt.Fprintf(&c.transcript, "## %s %s\n%s\n\n", tool, arguments, said)
	return said
}

func (c *caller) request(method, params string) string {
	c.t.Helper()
	_, answer, _ := strings.Cut(ask{"", method, params, ""}.send(c.t, c.url, c.client), " ")
	return answer
}

var (
	secrets   = regexp.MustCompile(`wsk_[a-z2-7]{42}|wss_[a-z2-7]{42}|wsv_[a-z2-7]{32}`)
	addresses = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	pauses    = regexp.MustCompile(`sleep \d`)
)

func (c *caller) golden(name string) {
	c.t.Helper()
	text := secrets.ReplaceAllString(c.transcript.String(), "‹secret›")
	text = pauses.ReplaceAllString(addresses.ReplaceAllString(text, "‹address›"), "sleep ‹n›")
	golden(c.t, name, placeholders(text))
}

// What agents read that subscribe themselves, by how they are woken.
func TestEventTools(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]string{"tools-monitor": "claude-code", "tools-held": "some-client"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &caller{t: t, url: newApp(t).serve(t, transports["JSON"]), client: client}
			var listed struct {
				Result struct {
					Tools []struct{ Name, Description string }
				}
			}
			if err := json.Unmarshal([]byte(c.request("tools/list", `{}`)), &listed); err != nil {
				t.Fatal(err)
			}
			for _, tool := range listed.Result.Tools {
				fmt.Fprintf(&c.transcript, "# %s\n%s\n\n", tool.Name, tool.Description)
			}
			const site = `"event":"site.updated","arguments":{"site":"a"}`
			said := c.call("subscribe_events", `{`+site+`}`)
			found := regexp.MustCompile(`session_key="([^"]+)"`).FindStringSubmatch(said)
			if found == nil {
				t.Fatalf("no session key: %s", said)
			}
			key := fmt.Sprintf(`"session_key":%q`, found[1])
			c.call("subscribe_events", `{`+site+`,`+key+`}`)
			c.call("list_subscriptions", `{`+key+`}`)
			c.call("unsubscribe_events", `{`+site+`,`+key+`}`)
			c.call("unsubscribe_events", `{`+site+`,`+key+`}`)
			for _, refused := range []string{
				`{"event":"site.updated","arguments":{"site":"secret"}}`, `{"event":"site.updated","arguments":{"page":1}}`,
				`{"event":"site.updated","arguments":{"site":"A B"}}`, `{"event":"site.updated","arguments":7}`,
				`{"event":"crawl.finished","arguments":{"job":"j"}}`, `{"event":"no.such"}`, `{"name":"site.updated"}`, `{}`,
				`{` + site + `,"session_key":"wsk_nonsense"}`,
			} {
				c.call("subscribe_events", refused)
			}
			c.call("unsubscribe_events", `{}`)
			c.call("unsubscribe_events", `{"id":"sub_nonsense"}`)
			c.call("list_subscriptions", `{"session_key":"wsk_nonsense"}`)
			c.golden(name)
		})
	}
}

// ChatGPT subscribes natively, and without sign-in too: with the voucher that the tool gives it.
func TestEventToolsGiveVouchers(t *testing.T) {
	t.Parallel()
	c := &caller{t: t, url: newApp(t).serve(t, transports["JSON"]), client: "openai-mcp"}
	said := c.call("subscribe_events", `{"event":"site.updated","arguments":{"site":"a"}}`)
	voucher := regexp.MustCompile(`wsv_[a-z2-7]{32}`).FindString(said)
	hook := to(receiver(t, echo))
	answer := c.request("events/subscribe", `{"name":"site.updated","arguments":{"site":"a","wakeshift_voucher":"`+voucher+`"}`+hook+`}`)
	if !strings.Contains(answer, `"refreshBefore"`) {
		t.Errorf("with the voucher %q: %s", voucher, answer)
	}
	answer = c.request("events/subscribe", `{"name":"site.updated","arguments":{"site":"b","wakeshift_voucher":"`+voucher+`"}`+hook+`}`)
	if !strings.Contains(answer, "-32012") {
		t.Errorf("with the voucher of another site: %s", answer)
	}
	c.golden("tools-voucher")
}
