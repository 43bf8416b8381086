package bench

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// A bare server does the least there is to do: it writes each emit to a file, waits for the disk, passes it to the stream of
// its job, and answers.
type bare struct {
	log    *os.File
	public ed25519.PublicKey

	mu      sync.Mutex
	streams map[string]chan []byte // by the job
}

func newBare(b *testing.B) *target { return startBare(b, "/emit") }

// newSigned is a bare server of which only the signature's check is asked, and nothing of the disk.
func newSigned(b *testing.B) *target { return startBare(b, "/verify") }

func startBare(b *testing.B, path string) *target {
	b.Helper()
	log, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		b.Fatal(err)
	}
	s := &bare{log: log, public: public, streams: map[string]chan []byte{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /emit", s.emit)
	mux.HandleFunc("POST /verify", s.verify)
	mux.HandleFunc("GET /streams/{job}", s.stream)
	server := httptest.NewServer(mux)
	b.Cleanup(func() {
		server.Close()
		_ = log.Close()
	})
	t := newTarget(b, server.URL, path, app{key, "key", server.URL})
	t.stream = func(job string) (string, error) { return server.URL + "/streams/" + job, nil }
	return t
}

var jobOf = regexp.MustCompile(`"job":"([^"]*)"`)

func (s *bare) emit(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		_, err = s.log.Write(body)
	}
	if err == nil {
		err = s.log.Sync()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	stream := s.streams[string(jobOf.FindSubmatch(body)[1])]
	s.mu.Unlock()
	if stream != nil {
		stream <- append(body, '\n')
	}
	fmt.Fprint(w, `{"matched":0}`)
}

func (s *bare) verify(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	dot := strings.LastIndexByte(token, '.')
	signature, err := base64.RawURLEncoding.DecodeString(token[dot+1:])
	if _, unread := io.Copy(io.Discard, r.Body); err != nil || unread != nil || !ed25519.Verify(s.public, []byte(token[:max(dot, 0)]), signature) {
		http.Error(w, "refused", http.StatusUnauthorized)
		return
	}
	fmt.Fprint(w, `{"matched":0}`)
}

func (s *bare) stream(w http.ResponseWriter, r *http.Request) {
	lines := make(chan []byte, 64)
	s.mu.Lock()
	s.streams[r.PathValue("job")] = lines
	s.mu.Unlock()
	out := http.NewResponseController(w)
	for {
		if out.Flush() != nil {
			return
		}
		select {
		case line := <-lines:
			if _, err := w.Write(line); err != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}
