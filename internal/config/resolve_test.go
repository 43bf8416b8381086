package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/rouse-dev/rouse/internal/core"
)

func environment(variables map[string]string) Environment {
	return func(name string) (string, bool) { value, ok := variables[name]; return value, ok }
}

// resolve reads settings from arguments, variables and the content of a file.
func resolve(t *testing.T, args []string, variables map[string]string, content string) (Settings, error) {
	t.Helper()
	var settings Settings
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	settings.Bind(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rouse.toml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Resolve(flags, environment(variables), path)
	return settings, err
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args      []string
		variables map[string]string
		file      string
		want      string
	}{
		"default":                           {want: DefaultListen},
		"file":                              {file: `listen = "file:1"`, want: "file:1"},
		"variable over file":                {variables: map[string]string{"ROUSE_LISTEN": "variable:1"}, file: `listen = "file:1"`, want: "variable:1"},
		"flag over both":                    {args: []string{"--listen", "flag:1"}, variables: map[string]string{"ROUSE_LISTEN": "variable:1"}, file: `listen = "file:1"`, want: "flag:1"},
		"flag over file":                    {args: []string{"--listen=flag:1"}, file: `listen = "file:1"`, want: "flag:1"},
		"flag set to the default":           {args: []string{"--listen", DefaultListen}, file: `listen = "file:1"`, want: DefaultListen},
		"an empty variable counts for none": {variables: map[string]string{"ROUSE_LISTEN": ""}, file: `listen = "file:1"`, want: "file:1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings, err := resolve(t, test.args, test.variables, test.file)
			if err != nil || settings.Listen != test.want {
				t.Errorf("listen = %q, %v; want %q", settings.Listen, err, test.want)
			}
		})
	}
}

func TestEveryKindOfValue(t *testing.T) {
	t.Parallel()
	want := Settings{Listen: "0.0.0.0:80", Data: "/d", Database: "postgres://rouse:p@db/rouse", MasterKeyFile: "/m", PublicURL: "https://w.example.com", TLSCert: "c", TLSKey: "k",
		TrustedProxies: []string{"10.0.0.0/8", "192.0.2.1"}, StreamsPerAddress: 5, FailuresPerAddress: 6, Retention: 48 * time.Hour,
		RetentionSize: 20 << 30, PrivateWebhooks: true, GCPercent: 150, LogLevel: "debug", LogFormat: "json",
		Limits: core.Limits{AppRequests: 1, AppBytes: 5e9, AppSubscriptions: 2, AppConversations: 3, AppStreams: 9, UserRequests: 4, UserSubscriptions: 0, UserWebhooks: 7, UserStreams: 8}}
	fromFile, err := resolve(t, nil, nil, `
listen = "0.0.0.0:80"
data = "/d"
database = "postgres://rouse:p@db/rouse"
master-key-file = "/m"
public-url = "https://w.example.com"
tls-cert = "c"
tls-key = "k"
trusted-proxies = ["10.0.0.0/8", "192.0.2.1"]
streams-per-address = 5
failures-per-address = 6
retention = "48h"
retention-size = "20GiB"
app-requests = 1
app-bytes = "5GB"
app-subscriptions = 2
app-conversations = 3
user-requests = 4
user-subscriptions = 0
user-webhooks = 7
user-streams = 8
app-streams = 9
private-webhooks = true
gc-percent = 150
log-level = "debug"
log-format = "json"
`)
	if diff := cmp.Diff(want, fromFile); err != nil || diff != "" {
		t.Errorf("from the file: %v %s", err, diff)
	}
	fromEnvironment, err := resolve(t, nil, map[string]string{"ROUSE_LISTEN": "0.0.0.0:80", "ROUSE_DATA": "/d",
		"ROUSE_DATABASE": "postgres://rouse:p@db/rouse", "ROUSE_MASTER_KEY_FILE": "/m",
		"ROUSE_PUBLIC_URL": "https://w.example.com", "ROUSE_TLS_CERT": "c", "ROUSE_TLS_KEY": "k",
		"ROUSE_TRUSTED_PROXIES": "10.0.0.0/8,192.0.2.1", "ROUSE_STREAMS_PER_ADDRESS": "5", "ROUSE_FAILURES_PER_ADDRESS": "6", "ROUSE_RETENTION": "48h",
		"ROUSE_RETENTION_SIZE": "20GiB", "ROUSE_APP_REQUESTS": "1", "ROUSE_APP_BYTES": "5GB", "ROUSE_APP_SUBSCRIPTIONS": "2",
		"ROUSE_APP_CONVERSATIONS": "3", "ROUSE_USER_REQUESTS": "4", "ROUSE_USER_SUBSCRIPTIONS": "0", "ROUSE_USER_WEBHOOKS": "7",
		"ROUSE_USER_STREAMS": "8", "ROUSE_APP_STREAMS": "9",
		"ROUSE_PRIVATE_WEBHOOKS": "true", "ROUSE_GC_PERCENT": "150", "ROUSE_LOG_LEVEL": "debug", "ROUSE_LOG_FORMAT": "json"}, "")
	if diff := cmp.Diff(want, fromEnvironment); err != nil || diff != "" {
		t.Errorf("from the environment: %v %s", err, diff)
	}
	if err := want.Check(); err != nil {
		t.Errorf("Check: %v", err)
	}
}

func TestErrorsNameTheSetting(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args      []string
		variables map[string]string
		file      string
		want      string
	}{
		"unknown key":          {file: `listne = "x"`, want: `there is no setting "listne"`},
		"table":                {file: "[serve]\nlisten = \"x\"", want: `there is no setting "serve"`},
		"value of wrong kind":  {file: `listen = 1.5`, want: "listen: must be a string"},
		"list of wrong kind":   {file: `trusted-proxies = [1]`, want: "trusted-proxies: must be"},
		"value in the file":    {file: `retention = "soon"`, want: "retention"},
		"not TOML":             {file: `listen`, want: "rouse.toml"},
		"value of a variable":  {variables: map[string]string{"ROUSE_RETENTION": "soon"}, want: "ROUSE_RETENTION"},
		"gc-percent":           {args: []string{"--gc-percent", "0"}, want: "gc-percent: between 10 and 1000"},
		"database":             {args: []string{"--database", "rouse.db"}, want: "database: must begin with postgres://"},
		"database's password":  {args: []string{"--database", "postgres://rouse:hunter2@db/rouse"}, want: "ROUSE_DATABASE"},
		"half of TLS":          {args: []string{"--tls-cert", "c"}, want: "tls-key"},
		"public URL":           {args: []string{"--public-url", "wake.example.com"}, want: "public-url"},
		"public URL and query": {args: []string{"--public-url", "https://wake.example.com/?a=b"}, want: "public-url"},
		"proxies":              {args: []string{"--trusted-proxies", "ten"}, want: "trusted-proxies"},
		"streams":              {args: []string{"--streams-per-address", "-1"}, want: "streams-per-address"},
		"retention":            {args: []string{"--retention", "1s"}, want: "retention"},
		"drain":                {args: []string{"--drain", "2m"}, want: "drain: between 0s and 1m"},
		"failures":             {args: []string{"--failures-per-address", "-1"}, want: "failures-per-address"},
		"no size":              {variables: map[string]string{"ROUSE_RETENTION_SIZE": "much"}, want: "ROUSE_RETENTION_SIZE"},
		"too small a size":     {args: []string{"--retention-size", "1MB"}, want: "retention-size: at least 10MB"},
		"too few bytes":        {args: []string{"--app-bytes", "1"}, want: "app-bytes: at least 1MB"},
		"a limit below none":   {args: []string{"--user-requests", "-1"}, want: "user-requests: must not be negative"},
		"level":                {args: []string{"--log-level", "loud"}, want: "log-level"},
		"format":               {args: []string{"--log-format", "xml"}, want: "log-format"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings, err := resolve(t, test.args, test.variables, test.file)
			if err == nil {
				err = settings.Check()
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v; want one that holds %q", err, test.want)
			}
		})
	}
}

func TestWhichFile(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	path := filepath.Join(directory, "other.toml")
	if err := os.WriteFile(path, []byte(`data = "/from/file"`), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		variables map[string]string
		path      string
		want      string
		fails     bool
	}{
		"by flag":             {path: path, want: "/from/file"},
		"by variable":         {variables: map[string]string{"ROUSE_CONFIG": path}, want: "/from/file"},
		"flag over variable":  {path: path, variables: map[string]string{"ROUSE_CONFIG": "/not/there"}, want: "/from/file"},
		"empty means none":    {variables: map[string]string{"ROUSE_CONFIG": ""}},
		"named but not there": {path: filepath.Join(directory, "none.toml"), fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var data string
			flags := pflag.NewFlagSet("tail", pflag.ContinueOnError)
			BindData(flags, &data)
			err := Resolve(flags, environment(test.variables), test.path)
			if data != test.want || (err != nil) != test.fails {
				t.Errorf("data = %q, %v; want %q", data, err, test.want)
			}
		})
	}
}

func TestProxies(t *testing.T) {
	t.Parallel()
	settings := Settings{TrustedProxies: []string{"10.1.2.3/8", " 192.0.2.1", "::1"}}
	prefixes, err := settings.Proxies()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range prefixes {
		got = append(got, p.String())
	}
	if diff := cmp.Diff([]string{"10.0.0.0/8", "192.0.2.1/32", "::1/128"}, got); diff != "" {
		t.Error(diff)
	}
}
