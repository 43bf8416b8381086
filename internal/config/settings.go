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
)

// Settings are what `rouse serve` can be told. Make them with [Settings.Bind], which sets the defaults.
type Settings struct {
	Listen            string        // host:port of the one listener
	Data              string        // the data directory
	PublicURL         string        // begins every URL that is handed out; empty: derived from Listen
	TLSCert, TLSKey   string        // PEM files; both or neither
	TrustedProxies    []string      // addresses or CIDR prefixes
	StreamsPerAddress int           // open streams of one client address; 0 is no limit
	Retention         time.Duration // how long occurrences are kept
	PrivateWebhooks   bool          // webhooks may be on private and loopback addresses
	LogLevel          string        // debug, info, warn or error
	LogFormat         string        // text or json
}

// Defaults of the settings that have the same one on every machine.
const (
	DefaultListen            = "127.0.0.1:8787"
	DefaultStreamsPerAddress = 1000
	DefaultRetention         = 7 * 24 * time.Hour
)

// Bind adds the settings to flags as flags and gives each its default.
func (s *Settings) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&s.Listen, "listen", DefaultListen, "`address` to listen on, host:port")
	BindData(flags, &s.Data)
	flags.StringVar(&s.PublicURL, "public-url", "", "`URL` under which apps and agents reach this core; begins every URL it hands out (default: the listener's)")
	flags.StringVar(&s.TLSCert, "tls-cert", "", "PEM `file` with the certificate and its chain; read again when it changes")
	flags.StringVar(&s.TLSKey, "tls-key", "", "PEM `file` with the certificate's private key")
	flags.StringSliceVar(&s.TrustedProxies, "trusted-proxies", []string{"127.0.0.0/8", "::1/128"},
		"`prefixes` of proxies whose X-Forwarded-For is believed")
	flags.IntVar(&s.StreamsPerAddress, "streams-per-address", DefaultStreamsPerAddress, "open streams of one client address at most; 0 is no `limit`")
	flags.DurationVar(&s.Retention, "retention", DefaultRetention, "how `long` occurrences are kept, such as 168h")
	flags.BoolVar(&s.PrivateWebhooks, "private-webhooks", false, "deliver webhooks to private and loopback addresses too; for networks where everybody is trusted")
	flags.StringVar(&s.LogLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&s.LogFormat, "log-format", "text", "text or json")
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
	case s.Retention < time.Minute:
		return errors.New("retention: at least 1m")
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
	_, err := s.Proxies()
	return err
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
