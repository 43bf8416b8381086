package appapi_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

func (c caller) workspace(t testing.TB, user string) string {
	t.Helper()
	return c.post(t, "/workspaces", `{"external_id":"`+user+`","name":"Ada"}`)["workspace"].(string)
}

func TestWorkspaces(t *testing.T) {
	t.Parallel()
	l := setup(t)
	space := l.app.workspace(t, "ada")
	if again := l.app.workspace(t, "ada"); again != space {
		t.Errorf("another one the second time: %s, %s", space, again)
	}
	if l.app.workspace(t, "bob") == space || l.another().workspace(t, "ada") == space {
		t.Error("another user, or another app's user, has the same")
	}
	path := "/workspaces/" + space + "/agents"
	const agent = "Claude Code/2 ü"
	token := path + "/" + url.PathEscape(agent) + "/token"
	if code, _ := l.app.send(t, "POST", token, "").refused(t); code != refusal.NoGrant {
		t.Errorf("before it was added: %s", code)
	}
	body := `{"agent":"` + agent + `","display_name":"Claude"}`
	grant := l.app.post(t, path, body)["grant"].(string)
	if again := l.app.post(t, path, body)["grant"]; again != grant {
		t.Errorf("another grant the second time: %v", again)
	}
	got := l.app.send(t, "POST", token, "").good(t)
	if got["grant"] != grant || got["agent"] != agent || got["workspace"] != space || got["display_name"] != "Claude" {
		t.Errorf("the grant is %v", got)
	}
}

func TestWorkspacesThatAreNotThere(t *testing.T) {
	t.Parallel()
	l := setup(t)
	mine, foreign := l.app.workspace(t, "ada"), l.another().workspace(t, "ada")
	for _, id := range []string{foreign, "ws_none", "..%2Fx", "a%2Fb", "%00", "%ff", long(3000)} {
		for path, body := range map[string]string{"": `{"agent":"codex"}`, "/codex/token": ""} {
			if code, _ := l.app.send(t, "POST", "/workspaces/"+id+"/agents"+path, body).refused(t); code != refusal.UnknownWorkspace {
				t.Errorf("%.20s%s: %s", id, path, code)
			}
		}
	}
	for _, agent := range []string{"codex", "%00", "%ff", "a%0Ab", long(3000)} {
		if code, _ := l.app.send(t, "POST", "/workspaces/"+mine+"/agents/"+agent+"/token", "").refused(t); code != refusal.NoGrant {
			t.Errorf("agent %.20s: %s", agent, code)
		}
	}
}

func TestBadWorkspaces(t *testing.T) {
	t.Parallel()
	l := setup(t)
	refuses(t, l, "/workspaces", table{
		"nothing":               {`{}`, "bad_request: external_id: is missing"},
		"external_id a number":  {`{"external_id":7}`, "bad_request: external_id: must be a string"},
		"external_id empty":     {`{"external_id":""}`, "bad_request: external_id: must not be empty"},
		"external_id too long":  {`{"external_id":"` + long(257) + `"}`, "bad_request: external_id: at most 256 characters"},
		"external_id of two":    {`{"external_id":"a\nb"}`, "bad_request: external_id: must not contain control characters"},
		"name too long":         {`{"external_id":"ada","name":"` + long(201) + `"}`, "bad_request: name: at most 200 characters"},
		"name a list":           {`{"external_id":"ada","name":[]}`, "bad_request: name: must be a string"},
		"name with a separator": {`{"external_id":"ada","name":"\u2028"}`, "bad_request: name: must not contain control characters"},
	})
	path := "/workspaces/" + l.app.workspace(t, "ada") + "/agents"
	refuses(t, l, path, table{
		"nothing":               {`{}`, "bad_request: agent: is missing"},
		"agent true":            {`{"agent":true}`, "bad_request: agent: must be a string"},
		"agent empty":           {`{"agent":""}`, "bad_request: agent: must not be empty"},
		"agent too long":        {`{"agent":"` + long(101) + `"}`, "bad_request: agent: at most 100 characters"},
		"agent with NUL":        {`{"agent":"a\u0000"}`, "bad_request: agent: must not contain control characters"},
		"display_name too long": {`{"agent":"a","display_name":"` + long(201) + `"}`, "bad_request: display_name: at most 200 characters"},
	})
	for i := range wake.MaxGrants {
		l.app.post(t, path, fmt.Sprintf(`{"agent":"a%d"}`, i))
	}
	refuses(t, l, path, table{"one agent too many": {`{"agent":"more"}`, "workspace_limit: this workspace has 100 agents, the most allowed"}})
	l.app.post(t, path, `{"agent":"a7"}`) // one that is there is no further one
}
