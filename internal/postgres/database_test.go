package postgres

import (
	"strings"
	"testing"
)

func TestHasPassword(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"postgres://host/db":                        false,
		"postgres://user@host/db":                   false,
		"postgres://user@host:5432/db":              false,
		"postgres://host:5432/db?sslmode=disable":   false,
		"postgres://user@/db?host=/run/a@b:c":       false,
		"postgres://user:secret@host/db":            true,
		"postgres://user:@host/db":                  true,
		"postgres://user:se@cret@host/db":           true,
		"postgres://user:se/cret@host/db":           true,
		"postgres://user:se?cret@host/db":           true,
		"postgresql://:secret@host":                 true,
		"postgres://host/db?password=secret":        true,
		"postgres://host/db?user=a&password=secret": true,
		"postgres://host/db?sslpassword=secret":     true,
		"postgres://host/db?pass%77ord=secret":      true,
	} {
		if got := HasPassword(address); got != want {
			t.Errorf("%s: %t, want %t", address, got, want)
		}
	}
}

// No error of an address that cannot be used repeats the password.
func TestErrorsHideThePassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://user:hunter2@127.0.0.1:1/db",
		"postgres://user:hunter2@127.0.0.1:port/db",
		"postgres://user:hunter2%zz@127.0.0.1/db",
		"postgres://user:hunter2@[::1/db",
		"postgres://user:hunter2 @127.0.0.1:1/db",
		"postgres://user@127.0.0.1:1/db?password=hunter2",
		"postgres://user@127.0.0.1:1/db?password=hunter2&sslmode=perhaps",
		"postgres://user:hunter2@127.0.0.1:1/db?pgbouncer=perhaps",
		"postgres://user:hunter2/db",
		"mysql://user:hunter2@127.0.0.1:1/db",
	} {
		_, err := Open(t.Context(), address)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", address, err)
		}
		if _, _, err := MakeTemporary(t.Context(), address); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", address, err)
		}
	}
}

func TestWithDatabase(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://host":                                 "postgres://host/new",
		"postgres://user:p@host:5432/old":                 "postgres://user:p@host:5432/new",
		"postgres://user@host/old?sslmode=require":        "postgres://user@host/new?sslmode=require",
		"postgres:///old?host=/run/postgresql&dbname=old": "postgres:///new?host=/run/postgresql",
		"postgres://user@?host=/run":                      "postgres://user@/new?host=/run",
	} {
		if got := withDatabase(address, "new"); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
