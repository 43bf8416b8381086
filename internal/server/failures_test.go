package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/quota"
)

func TestAnAddressThatFailsToAuthenticateWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScope(io.Discard)
		s.failures = quota.New[netip.Addr](2, time.Second, 3)
		asked := 0
		handler := s.authenticated(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			if r.Header.Get("Authorization") == "" {
				w.WriteHeader(http.StatusUnauthorized)
			}
		}))
		send := func(address, token string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = address
			if token != "" {
				r.Header.Set("Authorization", token)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w
		}
		var got []int
		for range 4 {
			got = append(got, send("192.0.2.1:1", "").Code)
		}
		if diff := cmp.Diff([]int{401, 401, 401, 429}, got); diff != "" || asked != 3 {
			t.Errorf("asked %d times: %s", asked, diff)
		}
		w := send("192.0.2.1:2", "good")
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"code":"rate_limited"`) {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
		if w := send("192.0.2.2:1", "good"); w.Code != http.StatusOK {
			t.Errorf("another address: %d", w.Code)
		}
		time.Sleep(500 * time.Millisecond)
		for range 10 {
			if w := send("192.0.2.1:1", "good"); w.Code != http.StatusOK {
				t.Errorf("after a while, with what is good: %d", w.Code)
			}
		}
		if w := send("192.0.2.1:1", ""); w.Code != http.StatusUnauthorized {
			t.Errorf("after a while: %d", w.Code)
		}
	})
}
