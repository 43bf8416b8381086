package server_test

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestWhatIsNoRequestIsRefusedInTheCataloguesForm(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for name, test := range map[string]struct {
		request string
		status  int
		code    string
	}{
		"no HTTP":              {"hello\r\n\r\n", 400, "bad_request"},
		"a bad header":         {"GET /api/apps/v1/app HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \x7f\r\n\r\n", 400, "bad_request"},
		"two hosts":            {"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400, "bad_request"},
		"headers of 200,000 B": {"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: " + strings.Repeat("x", 200_000) + "\r\n\r\n", 431, "too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", b.Address().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			// The server may hang up before it has read everything.
			_, _ = conn.Write([]byte(test.request))
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			var body struct{ Error struct{ Code string } }
			if err := json.NewDecoder(response.Body).Decode(&body); err != nil || response.StatusCode != test.status || body.Error.Code != test.code {
				t.Errorf("%d %+v, %v", response.StatusCode, body, err)
			}
		})
	}
}
