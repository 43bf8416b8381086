package appapi_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// BenchmarkEmit is an emit as a request: let in, checked, durable and answered, by so many apps' processes at once. One
// conversation is subscribed to it. The requests are made and signed before the clock starts.
func BenchmarkEmit(b *testing.B) {
	for _, each := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("publishers=%d", each*runtime.GOMAXPROCS(0)), func(b *testing.B) {
			l := setup(b)
			l.app.post(b, "/event-subscriptions", subscribeJob(`"client":"claude-code"`, "j"))
			body := emitJob("j", "Crawl j finished: "+strings.Repeat("x", 400))
			requests := make([]*http.Request, b.N)
			for i := range requests {
				requests[i] = l.app.request(b, b.Context(), http.MethodPost, "/events/emit", strings.NewReader(body))
			}
			var next, failed atomic.Int64
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			b.ResetTimer()
			b.SetParallelism(each)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if got := answered(l.api, requests[next.Add(1)-1]); got.status != http.StatusOK {
						failed.Add(1)
					}
				}
			})
			b.StopTimer()
			if failed.Load() > 0 {
				b.Errorf("%d emits were refused", failed.Load())
			}
		})
	}
}
