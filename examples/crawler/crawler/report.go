package crawler

import (
	"encoding/json"
	"errors"
	"net/http"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// maxReportBytes and maxSiteBytes bound reports; a site's may have a summary as
// long as a payload may be.
const (
	maxReportBytes = 4 << 10
	maxSiteBytes   = 512 << 10
)

// crawlFinished takes the report of a crawl: it is announced as crawl.finished,
// and found by the watches of crawl.polled.
func (c *Crawler) crawlFinished(w http.ResponseWriter, r *http.Request) {
	report, ok := readReport(w, r, maxReportBytes)
	if !ok {
		return
	}
	crawl := Crawl{Pages: report.Pages}
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
	update, ok := readReport(w, r, maxSiteBytes)
	if !ok {
		return
	}
	emitted, err := c.updated.Emit(r.Context(), Site{Site: r.PathValue("site")}, update)
	answer(w, emitted, err)
}

func readReport(w http.ResponseWriter, r *http.Request, limit int64) (Update, bool) {
	var body struct {
		Pages   *int   `json:"pages"`
		Summary string `json:"summary"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit)).Decode(&body); err != nil || body.Pages == nil {
		http.Error(w, `the body must be {"pages": number}`, http.StatusBadRequest)
		return Update{}, false
	}
	return Update{Pages: *body.Pages, Summary: body.Summary}, true
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
