package server

import (
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestARenewedCertificateIsUsed(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cert, key, _ := WriteCertificate(t, directory, 1, time.Now())
		c, err := loadCertificate(cert, key, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		serial := func() int64 {
			got, err := c.get(nil)
			if err != nil {
				t.Fatal(err)
			}
			return got.Leaf.SerialNumber.Int64()
		}
		WriteCertificate(t, directory, 2, time.Now().Add(time.Second))
		if got := serial(); got != 1 {
			t.Errorf("certificate %d within a minute; want the one that was read", got)
		}
		<-time.After(recheck)
		if got := serial(); got != 2 {
			t.Errorf("certificate %d after a minute; want the renewed one", got)
		}
		if err := os.WriteFile(cert, []byte("half a file"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(cert, time.Now(), time.Now()); err != nil {
			t.Fatal(err)
		}
		<-time.After(recheck)
		if got := serial(); got != 2 {
			t.Errorf("certificate %d while the files are broken; want the last good one", got)
		}
	})
}
