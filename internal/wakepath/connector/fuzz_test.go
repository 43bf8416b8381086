package connector_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/wakepath/connector"
)

// FuzzRedeem redeems with whatever body: nobody guesses a ticket, and nothing is ever the core's fault.
func FuzzRedeem(f *testing.F) {
	for _, seed := range []string{``, `{}`, `null`, ask("wtk_", "t1"), `{"ticket":"\ud800"}`, `{"ticket":1e400}`, `{"ticket":"a","ticket":"b"}`} {
		f.Add([]byte(seed))
	}
	h := connector.New(coretest.New(f).Core, connector.Options{})
	f.Fuzz(func(t *testing.T, body []byte) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, connector.RedeemPath, bytes.NewReader(body)))
		switch got := (reply{w.Code, w.Header(), w.Body.String()}); got.status {
		case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge:
			got.says(t)
		default:
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}
