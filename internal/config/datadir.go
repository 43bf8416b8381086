package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// dataCustom says in words where [DefaultData] is.
const dataCustom = "rouse in the user's data directory"

// DefaultData is the data directory by the customs of the operating system: %LocalAppData%\rouse on Windows,
// ~/Library/Application Support/rouse on macOS, else $XDG_DATA_HOME/rouse or ~/.local/share/rouse. The error says that the
// environment names no such place.
func DefaultData(env Environment) (string, error) {
	get := func(name string) string { value, _ := env(name); return value }
	base, home := "", get("HOME")
	switch {
	case runtime.GOOS == "windows":
		base = get("LocalAppData")
	case runtime.GOOS == "darwin" && home != "":
		base = filepath.Join(home, "Library", "Application Support")
	case filepath.IsAbs(get("XDG_DATA_HOME")):
		base = get("XDG_DATA_HOME")
	case home != "":
		base = filepath.Join(home, ".local", "share")
	}
	if base == "" {
		return "", errors.New("the environment does not say where this user's data belongs: name a data directory with --data or ROUSE_DATA")
	}
	return filepath.Join(base, "rouse"), nil
}

// PrepareData makes the data directory, for its owner alone. One that is there is used as it is; one that others may read is
// made private while it is empty, and refused otherwise, since what is in it may have been read. It returns the absolute
// path.
func PrepareData(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("the data directory: %w", err)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return "", fmt.Errorf("making the data directory: %w", err)
		}
		return path, makePrivate(path)
	}
	if err != nil {
		return "", fmt.Errorf("the data directory: %w", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("the data directory %s is not a directory", path)
	}
	if isPrivate(info) {
		return path, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", fmt.Errorf("the data directory: %w", err)
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("the data directory %s is open to others (mode %04o): run chmod 700 on it, or name another with --data", path, info.Mode().Perm())
	}
	return path, makePrivate(path)
}
