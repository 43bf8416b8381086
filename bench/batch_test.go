package bench

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// batchConnections is how many an app that emits in batches uses at a time: enough that one is read while another is written.
const batchConnections = 4

// BenchmarkEmitBatch is how many emits a second are acknowledged in batches, each with an id and on disk. An operation is one
// emit.
func BenchmarkEmitBatch(b *testing.B) {
	for _, size := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			t, note := newCore(b), bytes.Repeat([]byte("x"), padding)
			run := rand.Text()
			var next atomic.Int64
			var all sync.WaitGroup
			b.ResetTimer()
			before := cpu()
			for range batchConnections {
				all.Go(func() {
					for begin := next.Add(int64(size)) - int64(size); begin < int64(b.N); begin = next.Add(int64(size)) - int64(size) {
						if err := t.emitBatch(run, int(begin), min(int(begin)+size, b.N), note); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			reportRate(b, b.N, before)
		})
	}
}

// emitBatch makes one request of the emits from begin up to end.
func (t *target) emitBatch(run string, begin, end int, note []byte) error {
	body := []byte("[")
	for i := begin; i < end; i++ {
		if i > begin {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"name":"job.done","arguments":{"job":"j%[1]d"},"payload":{"n":%[2]d,"note":"%[3]s"},"text":"Job j%[1]d is done","id":"%[4]s-%[2]d"}`,
			i%connections, i, note, run)
	}
	answer, err := t.call(http.MethodPost, t.path, append(body, ']'))
	if err != nil {
		return err
	}
	var done struct{ Results []struct{ Matched *int } }
	if err := json.Unmarshal(answer, &done); err != nil {
		return err
	}
	for i, one := range done.Results {
		if one.Matched == nil {
			return fmt.Errorf("emit %d of a batch was refused", i)
		}
	}
	if len(done.Results) != end-begin {
		return fmt.Errorf("%d results for %d emits", len(done.Results), end-begin)
	}
	return nil
}
