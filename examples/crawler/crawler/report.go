package crawler

import (
	"encoding/json"
	"errors"
	"net/http"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

const maxReportBytes = 4 << 10

// crawlFinished takes the report of a crawl: it is announced as crawl.finished,
// and found by the watches of crawl.polled.
func (c *Crawler) crawlFinished(w http.ResponseWriter, r *http.Request) {
	crawl, ok := readCrawl(w, r)
	if !ok {
		return
	}
	job := Job{Job: r.PathValue("job")}
	emitted, err := c.finished.Emit(r.Context(), job, crawl)
	if err == nil && !c.keep(job.Job, crawl) {
		http.Error(w, "too many crawls have been reported", http.StatusInsufficientStorage)
		return
	}
	answer(w, emitted, err)
}

// siteUpdated takes the report of a site and announces it as site.updated.
func (c *Crawler) siteUpdated(w http.ResponseWriter, r *http.Request) {
	crawl, ok := readCrawl(w, r)
	if !ok {
		return
	}
	emitted, err := c.updated.Emit(r.Context(), Site{Site: r.PathValue("site")}, crawl)
	answer(w, emitted, err)
}

func readCrawl(w http.ResponseWriter, r *http.Request) (Crawl, bool) {
	var body struct {
		Pages *int `json:"pages"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReportBytes)).Decode(&body); err != nil || body.Pages == nil {
		http.Error(w, `the body must be {"pages": number}`, http.StatusBadRequest)
		return Crawl{}, false
	}
	return Crawl{Pages: *body.Pages}, true
}

// answer tells how many conversations a report is for, or what the core refused.
func answer(w http.ResponseWriter, emitted wakeshift.Emitted, err error) {
	if err != nil {
		status := http.StatusBadGateway
		var refusal *wakeshift.Error
		if errors.As(err, &refusal) && refusal.Status == http.StatusBadRequest {
			status = http.StatusBadRequest
		}
		http.Error(w, err.Error(), status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]int{"matched": emitted.Matched}) // the reporter is gone
}
