package bench

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkEmit is how many emits a second are acknowledged over HTTP, each verified and on disk: 64 connections of an app, each
// of which waits for its answer. The machine's cores carry the app as well as the core, but for the signatures, which are made
// before: making one costs half of what checking it does, and is another machine's work.
func BenchmarkEmit(b *testing.B) {
	eachServer(b, func(b *testing.B, t *target) {
		emitFrom(b, t, func(i int) string { return fmt.Sprintf("j%d", i%connections) })
	})
}

// emitFrom emits b.N times from all connections, each the next emit when it has its answer, for the job that jobOf gives.
func emitFrom(b *testing.B, t *target, jobOf func(i int) string) {
	took, note := make([]time.Duration, b.N), bytes.Repeat([]byte("x"), padding)
	var next atomic.Int64
	var all sync.WaitGroup
	assertions := make([]string, b.N)
	for i := range assertions {
		assertions[i] = t.app.assertion()
	}
	b.ResetTimer()
	before := cpu()
	for range connections {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
				begun := time.Now()
				if err := t.emitWith(assertions[i], jobOf(int(i)), int(i), note); err != nil {
					b.Error(err)
					return
				}
				took[i] = time.Since(begun)
			}
		})
	}
	all.Wait()
	reportRate(b, b.N, before)
	report(b, took)
}

// BenchmarkEmitAtRate is how long an emit takes at 100 a second, from when it was due.
func BenchmarkEmitAtRate(b *testing.B) {
	eachServer(b, func(b *testing.B, t *target) {
		took, note := make([]time.Duration, b.N), bytes.Repeat([]byte("x"), padding)
		b.ResetTimer()
		atRate(b.N, 100, func(i int, due time.Time) {
			if err := t.emit(fmt.Sprintf("j%d", i%connections), i, note); err != nil {
				b.Error(err)
			}
			took[i] = time.Since(due)
		})
		report(b, took)
	})
}

// servers are the core and what it is compared with: a bare server that waits for the disk with each emit, and one that checks
// each signature and waits for nothing.
var servers = []struct {
	name  string
	start func(*testing.B) *target
}{{"core", newCore}, {"bare", newBare}, {"signed", newSigned}}

func eachServer(b *testing.B, run func(b *testing.B, t *target)) {
	for _, server := range servers {
		b.Run(server.name, func(b *testing.B) {
			t := server.start(b)
			if err := t.emit("first", 0, nil); err != nil { // what is done once
				b.Fatal(err)
			}
			run(b, t)
		})
	}
}

// BenchmarkVerify is the part of an emit that no core can do without: checking its signature.
func BenchmarkVerify(b *testing.B) {
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		b.Fatal(err)
	}
	message := []byte(app{key, "0123456789012345678901", "http://127.0.0.1:7777/api/apps"}.assertion())
	signature := ed25519.Sign(key, message)
	for b.Loop() {
		if !ed25519.Verify(public, message, signature) {
			b.Fatal("the signature does not hold")
		}
	}
}
