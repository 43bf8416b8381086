package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/postgres"
	"github.com/rouse-dev/rouse/internal/wakepath/webhook"
)

// Settings are what `rouse serve` can be told. Make them with [Settings.Bind], which sets the defaults.
type Settings struct {
	Listen             string        // host:port of the one listener
	Data               string        // the data directory
	Database           string        // address of a PostgreSQL database, which may hold a password; empty: a file in Data
	MasterKeyFile      string        // file with the core's secret; empty: master.key in Data
	PublicURL          string        // begins every URL that is handed out; empty: derived from Listen
	TLSCert, TLSKey    string        // PEM files; both or neither
	TrustedProxies     []string      // addresses or CIDR prefixes
	StreamsPerAddress  int           // open streams of one client address; 0 is no limit
	FailuresPerAddress int           // failed authentications a second of one client address; 0 is no limit
	Retention          time.Duration // how long occurrences are kept
	RetentionSize      Bytes         // of the database, beyond which the oldest occurrences go; 0 is no limit
	Limits             core.Limits   // of one app and one user
	Drain              time.Duration // how long a server that is to stop says so before it does
	PrivateWebhooks    bool          // webhooks may be on private and loopback addresses
	WebhookTrusted     []string      // prefixes of URLs whose endpoints are not asked whether they want deliveries
	GCPercent          int           // how much garbage may gather, in percent of what is in use, as GOGC says; which counts before it
	LogLevel           string        // debug, info, warn or error
	LogFormat          string        // text or json
}

// Defaults of the settings that have the same one on every machine.
const (
	DefaultListen             = "127.0.0.1:8787"
	DefaultStreamsPerAddress  = 1000
	DefaultFailuresPerAddress = 10
	DefaultRetention          = 7 * 24 * time.Hour
	DefaultGCPercent          = 200
)

// The least that makes sense: a database with nothing in it takes some room, and an emit may be hundreds of kilobytes.
var (
	minRetentionSize Bytes = 10e6
	minAppBytes      Bytes = 1e6
)

// Bind adds the settings to flags as flags and gives each its default.
func (s *Settings) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&s.Listen, "listen", DefaultListen, "`address` to listen on, host:port")
	BindData(flags, &s.Data)
	BindDatabase(flags, &s.Database)
	flags.StringVar(&s.MasterKeyFile, "master-key-file", "", "`file` with the core's secret, the same for all cores of one database (default: master.key in the data directory)")
	flags.StringVar(&s.PublicURL, "public-url", "", "`URL` under which apps and agents reach this core; begins every URL it hands out (default: the listener's)")
	flags.StringVar(&s.TLSCert, "tls-cert", "", "PEM `file` with the certificate and its chain; read again when it changes")
	flags.StringVar(&s.TLSKey, "tls-key", "", "PEM `file` with the certificate's private key")
	flags.StringSliceVar(&s.TrustedProxies, "trusted-proxies", []string{"127.0.0.0/8", "::1/128"},
		"`prefixes` of proxies whose X-Forwarded-For is believed")
	flags.IntVar(&s.StreamsPerAddress, "streams-per-address", DefaultStreamsPerAddress, "open streams of one client address at most; 0 is no `limit`")
	flags.IntVar(&s.FailuresPerAddress, "failures-per-address", DefaultFailuresPerAddress,
		"failed authentications a second of one client address, 20 times as many at once; 0 is no `limit`")
	flags.DurationVar(&s.Retention, "retention", DefaultRetention, "how `long` occurrences are kept, such as 168h")
	flags.Var(&s.RetentionSize, "retention-size", "`size` of the database beyond which the oldest occurrences go, such as 20GB; 0 is no limit")
	s.bindLimits(flags)
	flags.DurationVar(&s.Drain, "drain", 0, "how `long` /readyz says no before the core stops, so that a balancer sends nobody new, such as 5s")
	flags.BoolVar(&s.PrivateWebhooks, "private-webhooks", false, "deliver webhooks to private and loopback addresses too; for networks where everybody is trusted")
	flags.StringSliceVar(&s.WebhookTrusted, "webhook-trusted", nil,
		"`prefixes` of webhook URLs whose endpoints are known to want deliveries and are not asked, such as https://hooks.example.com/events/")
	flags.IntVar(&s.GCPercent, "gc-percent", DefaultGCPercent,
		"garbage in memory, in `percent` of what is in use, before it is collected: more takes memory, less takes CPU; GOGC counts before it")
	flags.StringVar(&s.LogLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&s.LogFormat, "log-format", "text", "text or json")
}

// BindDatabase adds the flag for the database alone, for commands that open it themselves.
func BindDatabase(flags *pflag.FlagSet, database *string) {
	flags.StringVar(database, "database", "", "`address` of a PostgreSQL database, postgres://user@host/name, which other cores may share (default: a file in the data directory)")
}

// bindLimits adds what one app and one user may do and keep.
func (s *Settings) bindLimits(flags *pflag.FlagSet) {
	l, standard := &s.Limits, core.DefaultLimits
	flags.IntVar(&l.AppRequests, "app-requests", standard.AppRequests, "requests a second of one app, twice as many at once; 0 is no `limit`")
	flags.Var((*Bytes)(&l.AppBytes), "app-bytes", "`size` of what one app may emit in a day, such as 5GB; 0 is no limit")
	flags.IntVar(&l.AppSubscriptions, "app-subscriptions", standard.AppSubscriptions, "live subscriptions to one app at most; 0 is no `limit`")
	flags.IntVar(&l.AppConversations, "app-conversations", standard.AppConversations, "conversations with one app at most; 0 is no `limit`")
	flags.IntVar(&l.AppStreams, "app-streams", standard.AppStreams, "native streams of an app that are open at one node at most; 0 is no `limit`")
	flags.IntVar(&l.UserRequests, "user-requests", standard.UserRequests, "calls a second in the name of one user of an app, ten times as many at once; 0 is no `limit`")
	flags.IntVar(&l.UserSubscriptions, "user-subscriptions", standard.UserSubscriptions, "live subscriptions of one user of an app at most; 0 is no `limit`")
	flags.IntVar(&l.UserWebhooks, "user-webhooks", standard.UserWebhooks, "webhooks of one user of an app at most; 0 is no `limit`")
	flags.IntVar(&l.UserStreams, "user-streams", standard.UserStreams, "native streams of one user of an app that are open at one node at most; 0 is no `limit`")
}

// BindData adds the flag for the data directory alone, for commands that talk to a running core.
func BindData(flags *pflag.FlagSet, data *string) {
	flags.StringVar(data, "data", "", "data `directory` of the core (default: "+dataCustom+")")
}

// Check refuses settings that contradict each other or are out of range. Its error names the setting.
func (s *Settings) Check() error {
	switch {
	case (s.TLSCert == "") != (s.TLSKey == ""):
		return errors.New("tls-cert and tls-key belong together: give both or neither")
	case s.StreamsPerAddress < 0:
		return errors.New("streams-per-address: must not be negative")
	case s.Database != "" && !postgres.IsAddress(s.Database):
		return errors.New("database: must begin with postgres://, such as postgres://rouse@db.example.com/rouse")
	case s.FailuresPerAddress < 0:
		return errors.New("failures-per-address: must not be negative")
	case s.Drain < 0 || s.Drain > time.Minute:
		return errors.New("drain: between 0s and 1m")
	case s.GCPercent < 10 || s.GCPercent > 1000:
		return errors.New("gc-percent: between 10 and 1000")
	case s.Retention < time.Minute:
		return errors.New("retention: at least 1m")
	case s.RetentionSize != 0 && s.RetentionSize < minRetentionSize:
		return fmt.Errorf("retention-size: at least %s, or 0", minRetentionSize.String())
	}
	if err := s.checkLimits(); err != nil {
		return err
	}
	if err := checkPublicURL(s.PublicURL); err != nil {
		return err
	}
	if _, err := s.Level(); err != nil {
		return err
	}
	if s.LogFormat != "text" && s.LogFormat != "json" {
		return fmt.Errorf("log-format: %q is neither text nor json", s.LogFormat)
	}
	if _, err := s.TrustedWebhooks(); err != nil {
		return err
	}
	_, err := s.Proxies()
	return err
}

// checkLimits refuses limits that are none.
func (s *Settings) checkLimits() error {
	if s.Limits.AppBytes != 0 && s.Limits.AppBytes < int64(minAppBytes) {
		return fmt.Errorf("app-bytes: at least %s, or 0", minAppBytes.String())
	}
	for _, limit := range []struct {
		name  string
		value int
	}{
		{"app-requests", s.Limits.AppRequests}, {"app-subscriptions", s.Limits.AppSubscriptions},
		{"app-conversations", s.Limits.AppConversations}, {"app-streams", s.Limits.AppStreams}, {"user-requests", s.Limits.UserRequests},
		{"user-subscriptions", s.Limits.UserSubscriptions}, {"user-webhooks", s.Limits.UserWebhooks},
		{"user-streams", s.Limits.UserStreams},
	} {
		if limit.value < 0 {
			return fmt.Errorf("%s: must not be negative", limit.name)
		}
	}
	return nil
}

func checkPublicURL(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("public-url: must be an http or https URL without user, query and fragment, such as https://wake.example.com")
	}
	return nil
}

// Level is LogLevel as slog has it.
func (s *Settings) Level() (slog.Level, error) {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[strings.ToLower(s.LogLevel)]
	if !ok {
		return 0, fmt.Errorf("log-level: %q is none of debug, info, warn, error", s.LogLevel)
	}
	return level, nil
}

// TrustedWebhooks is WebhookTrusted as prefixes.
func (s *Settings) TrustedWebhooks() ([]webhook.Trusted, error) {
	var prefixes []webhook.Trusted
	for _, text := range s.WebhookTrusted {
		prefix, err := webhook.ParseTrusted(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("webhook-trusted: %q: %w", text, err)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

// Proxies is TrustedProxies as prefixes.
func (s *Settings) Proxies() ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, 0, len(s.TrustedProxies))
	for _, text := range s.TrustedProxies {
		text = strings.TrimSpace(text)
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			address, err := netip.ParseAddr(text)
			if err != nil {
				return nil, fmt.Errorf("trusted-proxies: %q is neither an address nor a prefix such as 10.0.0.0/8", text)
			}
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}
