package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/adminapi"
	"github.com/rouse-dev/rouse/internal/cli"
	"github.com/rouse-dev/rouse/internal/credential"
)

func TestApps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if got := b.run("app", "list"); got.status != 0 || got.out != "" || !strings.Contains(got.errOut, "rouse app create") {
		t.Errorf("without apps: %+v", got)
	}
	got := b.run("app", "create", "crawler", "--name", "Site crawler")
	if got.status != 0 || got.out != "crawler\n" || !strings.Contains(got.errOut, "rouse key create --app crawler") {
		t.Errorf("create: %+v", got)
	}
	if got := b.run("app", "create", "crawler"); got.status != 1 || !strings.Contains(got.errOut, "there already") {
		t.Errorf("create again: %+v", got)
	}
	var list struct{ Apps []adminapi.App }
	b.json(&list, "app", "list")
	if len(list.Apps) != 1 || list.Apps[0].Name != "Site crawler" {
		t.Errorf("list: %+v", list)
	}
	if out := b.ok("app", "list"); !regexp.MustCompile(`^ID +NAME +CREATED *\ncrawler +Site crawler +\d{4}-\d\d-\d\d \d\d:\d\d\n$`).MatchString(out) {
		t.Errorf("list: %q", out)
	}
	b.ok("app", "delete", "crawler")
	if got := b.run("app", "delete", "crawler"); got.status != 1 || !strings.Contains(got.errOut, "rouse app list") {
		t.Errorf("delete again: %+v", got)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if got := b.run("key", "create"); got.status != 1 || !strings.Contains(got.errOut, "rouse app create") {
		t.Errorf("without an app: %+v", got)
	}
	b.ok("app", "create", "crawler")
	got := b.run("key", "create", "--name", "laptop")
	if got.status != 0 {
		t.Fatalf("create: %+v", got)
	}
	key, err := credential.ParseAppKey(got.out)
	if err != nil {
		t.Fatalf("standard output is not the key alone: %v", err)
	}
	id := credential.KeyID(key.PublicKey())
	if strings.Contains(got.errOut, key.Reveal()) || !strings.Contains(got.errOut, id) {
		t.Errorf("the remark: %q", got.errOut)
	}
	if out := b.ok("key", "list"); !strings.Contains(out, id) || !strings.Contains(out, "laptop") || strings.Contains(out, key.Reveal()) {
		t.Errorf("list: %q", out)
	}
	b.ok("key", "revoke", id)
	var list struct{ Keys []adminapi.Key }
	b.json(&list, "key", "list")
	if len(list.Keys) != 1 || list.Keys[0].RevokedAt.IsZero() {
		t.Errorf("list after revoking: %+v", list)
	}
	if got := b.run("key", "revoke", "nothing"); got.status != 1 || !strings.Contains(got.errOut, "rouse key list") {
		t.Errorf("revoking none: %+v", got)
	}
}

func TestWhichApp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.crawler()
	b.ok("app", "create", "other")
	got := b.run("emit", "crawl.finished", "--args", `{"job":"j1"}`)
	if got.status != 1 || !strings.Contains(got.errOut, "--app: crawler, other") {
		t.Errorf("two apps and none named: %+v", got)
	}
	b.ok("emit", "crawl.finished", "--args", `{"job":"j1"}`, "--app", "crawler")
}

func TestEmit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app := b.crawler()
	got := b.run("emit", "crawl.finished", "--args", `{"job":"j1"}`)
	if got.status != 0 || got.out != "matched 0\n" || !strings.Contains(got.errOut, "rouse subscriptions") {
		t.Errorf("for nobody: %+v", got)
	}
	b.subscribe(app)
	file := filepath.Join(t.TempDir(), "payload.json")
	if err := os.WriteFile(file, []byte(" {\"pages\": 12}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := b.ok("emit", "crawl.finished", "--args", `{"job":"j1"}`, "--payload", "@"+file, "--id", "one", "--text", "Done"); out != "matched 1\n" {
		t.Errorf("from a file: %q", out)
	}
	if out := b.ok("emit", "crawl.finished", "--args", `{"job":"j1"}`, "--id", "one"); !strings.Contains(out, "matched 1 (an earlier emit had this id") {
		t.Errorf("again: %q", out)
	}
	b.stdin = `{"pages":13}`
	var done adminapi.Emitted
	b.json(&done, "emit", "crawl.finished", "--args", `{"job":"j1"}`, "--payload", "-")
	if done.Matched != 1 || !strings.HasPrefix(done.ID, "evt_") {
		t.Errorf("from standard input: %+v", done)
	}
	b.ok("emit", "report.ready", "--to", "ada")
}

func TestEmitRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.crawler()
	tests := map[string]struct {
		args   []string
		status int
		want   string
	}{
		"no event":          {nil, 2, "EVENT is missing"},
		"two events":        {[]string{"a.b", "c.d"}, 2, `"c.d" is one argument too many`},
		"arguments":         {[]string{"crawl.finished", "--args", "{job:1}"}, 2, "--args: not valid JSON"},
		"payload":           {[]string{"crawl.finished", "--payload", "[]"}, 2, "--payload: must be a JSON object"},
		"no such file":      {[]string{"crawl.finished", "--payload", "@/no/such/file"}, 1, "/no/such/file"},
		"both from stdin":   {[]string{"crawl.finished", "--payload", "-", "--args", "-"}, 2, "cannot both"},
		"unknown flag":      {[]string{"crawl.finished", "--arg", "{}"}, 2, "rouse emit --help"},
		"unknown event":     {[]string{"crawl.begun"}, 1, `no event "crawl.begun"`},
		"missing argument":  {[]string{"crawl.finished"}, 1, "job"},
		"nobody to":         {[]string{"report.ready"}, 1, "to: report.ready is personal"},
		"unknown app":       {[]string{"crawl.finished", "--app", "nobody"}, 1, `no app "nobody"`},
		"another directory": {[]string{"crawl.finished", "--data", "/no/such/directory"}, 1, "WAKESHIFT_CORE and WAKESHIFT_KEY"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runIn(t.Context(), b.environ, "", append([]string{"emit"}, test.args...)...)
			if got.status != test.status || !strings.Contains(got.errOut, test.want) || got.out != "" {
				t.Errorf("%+v; want status %d and %q", got, test.status, test.want)
			}
		})
	}
}

func TestEmitFromElsewhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app := b.crawler()
	b.subscribe(app)
	key := strings.TrimSpace(b.ok("key", "create"))
	elsewhere := append(bare(t), "WAKESHIFT_CORE="+b.core.URL()+"/", "WAKESHIFT_KEY="+key)
	emit := func(environ []string, args ...string) result {
		return runIn(t.Context(), environ, "", append([]string{"emit", "crawl.finished", "--args", `{"job":"j1"}`}, args...)...)
	}
	if got := emit(elsewhere, "--id", "one"); got.status != 0 || got.out != "matched 1\n" {
		t.Errorf("emit: %+v", got)
	}
	if got := emit(elsewhere, "--id", "one", "--json"); got.status != 0 || got.out != `{"matched":1,"duplicate":true}`+"\n" {
		t.Errorf("again: %+v", got)
	}
	if got := runIn(t.Context(), elsewhere, "", "emit", "crawl.begun"); got.status != 1 || !strings.Contains(got.errOut, `no event "crawl.begun"`) {
		t.Errorf("an unknown event: %+v", got)
	}
	b.ok("app", "create", "other")
	other := strings.TrimSpace(b.ok("key", "create", "--app", "other"))
	wrong := map[string]struct{ core, key, want string }{
		"a key of another app": {b.core.URL(), other, "no event"},
		"no key":               {b.core.URL(), key[:20], "WAKESHIFT_KEY: not an app key"},
		"no address":           {"core.example.com", key, "WAKESHIFT_CORE: must be"},
		"nobody there":         {"http://127.0.0.1:1", key, "no answer from the core at http://127.0.0.1:1"},
		"not a core":           {b.core.URL() + "/elsewhere", key, "nothing at this path"},
	}
	for name, test := range wrong {
		got := emit(append(bare(t), "WAKESHIFT_CORE="+test.core, "WAKESHIFT_KEY="+test.key))
		if got.status != 1 || !strings.Contains(got.errOut, test.want) || strings.Contains(got.errOut, test.key) {
			t.Errorf("%s: %+v; want %q, and not the key", name, got, test.want)
		}
	}
	// Naming an app or a directory means the core on this machine.
	if got := emit(append(b.environ, "WAKESHIFT_KEY=rubbish"), "--app", "crawler"); got.status != 0 {
		t.Errorf("with --app: %+v", got)
	}
}

func TestSubscriptions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app := b.crawler()
	if got := b.run("subscriptions"); got.status != 0 || got.out != "" || !strings.Contains(got.errOut, "Nobody is subscribed") {
		t.Errorf("none: %+v", got)
	}
	b.subscribe(app)
	out := b.ok("subscriptions")
	line := regexp.MustCompile(`\ncrawler +crawl\.finished {"job":"j1"} +claude-code [a-z2-7]{8} +ada +- +\d{4}-\d\d-\d\d \d\d:\d\d +sub_[a-z2-7]{8}\n$`)
	if !line.MatchString(out) {
		t.Errorf("subscriptions:\n%s", out)
	}
	var list struct{ Subscriptions []adminapi.Subscription }
	b.json(&list, "subscriptions", "--app", "crawler")
	if len(list.Subscriptions) != 1 || list.Subscriptions[0].Client != "claude-code" {
		t.Errorf("in JSON: %+v", list)
	}
}

func TestTailShowsWhatHappens(t *testing.T) {
	t.Parallel()
	for flag, wanted := range map[string]string{"--json=false": "matched 1", "--json": `"kind":"emitted"`} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.subscribe(b.crawler())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out, done := newWatched(), make(chan int, 1)
			env := cli.Env{Args: []string{"tail", "--app", "crawler", flag}, Stdout: out, Stderr: newWatched(), Environ: b.environ}
			go func() { done <- cli.Run(ctx, env) }()
			// It may have missed the first ones: it follows from its own beginning on.
			for !strings.Contains(out.String(), wanted) {
				b.ok("emit", "crawl.finished", "--args", `{"job":"j1"}`)
			}
			cancel()
			if status := <-done; status != 0 {
				t.Errorf("status %d", status)
			}
		})
	}
}

func TestErrorsAreJSONForScripts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	got := b.run("app", "delete", "nobody", "--json")
	want := result{1, "", `{"error":{"code":"unknown_app","message":"there is no app \"nobody\""}}` + "\n"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Error(diff)
	}
}
