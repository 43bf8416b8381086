package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// recheck is how often a certificate's files are looked at.
const recheck = time.Minute

// A certificate is read from files, and again when they were renewed.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	changed time.Time // of the newer file, as of current
	looked  time.Time
}

func loadCertificate(cert, key string, log *slog.Logger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, log: log}
	changed, err := c.lastChange()
	if err == nil {
		err = c.load(changed, time.Now())
	}
	if err != nil {
		return nil, fmt.Errorf("the TLS certificate: %w", err)
	}
	return c, nil
}

// get gives the current certificate. Files that cannot be read leave the one that was read last.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.looked) < recheck {
		return c.current, nil
	}
	c.looked = now
	changed, err := c.lastChange()
	if err == nil && changed.After(c.changed) {
		err = c.load(changed, now)
	}
	if err != nil {
		c.log.Error("the renewed TLS certificate cannot be used; the former one still is", "error", err)
	}
	return c.current, nil
}

func (c *certificate) load(changed, now time.Time) error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.current, c.changed, c.looked = &pair, changed, now
	return nil
}

func (c *certificate) lastChange() (time.Time, error) {
	var newest time.Time
	for _, path := range []string{c.cert, c.key} {
		info, err := os.Stat(path)
		if err != nil {
			return newest, err
		}
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return newest, nil
}
