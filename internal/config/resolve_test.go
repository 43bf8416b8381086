package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
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
	want := Settings{Listen: "0.0.0.0:80", Data: "/d", PublicURL: "https://w.example.com", TLSCert: "c", TLSKey: "k",
		TrustedProxies: []string{"10.0.0.0/8", "192.0.2.1"}, StreamsPerAddress: 5, Retention: 48 * time.Hour, PrivateWebhooks: true,
		LogLevel: "debug", LogFormat: "json"}
	fromFile, err := resolve(t, nil, nil, `
listen = "0.0.0.0:80"
data = "/d"
public-url = "https://w.example.com"
tls-cert = "c"
tls-key = "k"
trusted-proxies = ["10.0.0.0/8", "192.0.2.1"]
streams-per-address = 5
retention = "48h"
private-webhooks = true
log-level = "debug"
log-format = "json"
`)
	if diff := cmp.Diff(want, fromFile); err != nil || diff != "" {
		t.Errorf("from the file: %v %s", err, diff)
	}
	fromEnvironment, err := resolve(t, nil, map[string]string{"ROUSE_LISTEN": "0.0.0.0:80", "ROUSE_DATA": "/d",
		"ROUSE_PUBLIC_URL": "https://w.example.com", "ROUSE_TLS_CERT": "c", "ROUSE_TLS_KEY": "k",
		"ROUSE_TRUSTED_PROXIES": "10.0.0.0/8,192.0.2.1", "ROUSE_STREAMS_PER_ADDRESS": "5", "ROUSE_RETENTION": "48h",
		"ROUSE_PRIVATE_WEBHOOKS": "true", "ROUSE_LOG_LEVEL": "debug", "ROUSE_LOG_FORMAT": "json"}, "")
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
		"half of TLS":          {args: []string{"--tls-cert", "c"}, want: "tls-key"},
		"public URL":           {args: []string{"--public-url", "wake.example.com"}, want: "public-url"},
		"public URL and query": {args: []string{"--public-url", "https://wake.example.com/?a=b"}, want: "public-url"},
		"proxies":              {args: []string{"--trusted-proxies", "ten"}, want: "trusted-proxies"},
		"streams":              {args: []string{"--streams-per-address", "-1"}, want: "streams-per-address"},
		"retention":            {args: []string{"--retention", "1s"}, want: "retention"},
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
