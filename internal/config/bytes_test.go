package config_test

import (
	"testing"

	"github.com/rouse-dev/rouse/internal/config"
)

func TestBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		bytes config.Bytes
		text  string
	}{
		"0": {0, "0"}, "1": {1, "1"}, "1500": {1500, "1500"}, "500MB": {500e6, "500MB"}, "20GiB": {20 << 30, "20GiB"}, "2 TB": {2e12, "2TB"},
		"1024": {1024, "1KiB"}, "9223372036854775807": {1<<63 - 1, "9223372036854775807"}, "3KB": {3000, "3KB"},
	} {
		var got config.Bytes
		if err := got.Set(text); err != nil || got != want.bytes || got.String() != want.text {
			t.Errorf("%q: %d, %s, %v; want %d, %s", text, got, got.String(), err, want.bytes, want.text)
		}
	}
	for _, text := range []string{"", "GB", "-1", "1.5GB", "1 GX", "9223372036854775808", "9000000000GiB", "1e3", "0x10"} {
		var got config.Bytes
		if err := got.Set(text); err == nil {
			t.Errorf("%q: taken for %d", text, got)
		}
	}
}
