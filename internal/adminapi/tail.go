package adminapi

import (
	"encoding/json"
	"net/http"
	"time"
)

// tailPulse is how often a tail writes a blank line, so that a client that is gone is noticed.
const tailPulse = 15 * time.Second

// tail streams trace entries until the client goes or the core stops. The first line is blank: from then on nothing is missed.
func (h *handler) tail(w http.ResponseWriter, r *http.Request) {
	follower := h.core.Feed().Follow()
	defer follower.Close()
	pulse := time.NewTicker(tailPulse)
	defer pulse.Stop()
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := http.NewResponseController(w)
	line := []byte("\n")
	for {
		if _, err := w.Write(line); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-h.o.Stopping:
			return
		case <-pulse.C:
			line = []byte("\n")
		case entry := <-follower.C():
			encoded, err := json.Marshal(entry)
			if err != nil {
				h.o.Logger.ErrorContext(r.Context(), "a trace entry could not be written", "error", err)
				continue
			}
			line = append(encoded, '\n')
		}
	}
}
