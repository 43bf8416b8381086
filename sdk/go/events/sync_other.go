//go:build !unix

package events

// syncDirectory does nothing where directories cannot be synced.
func syncDirectory(string) error { return nil }
