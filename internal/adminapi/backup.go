package adminapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/refusal"
)

// A Problem is something wrong with the database.
type Problem = core.Problem

// scratchPattern are the names of copies on their way to a client.
const scratchPattern = "backup-*.tmp"

// RemoveScratch removes copies from a directory that a core which was killed has left there.
func RemoveScratch(directory string) error {
	left, err := filepath.Glob(filepath.Join(directory, scratchPattern))
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing what a backup left: %w", err)
		}
	}
	return nil
}

// backup answers with a copy of the database, which is made on the core's own disk first: so the copy is of one moment, however
// slowly it is read, and its length is known.
func (h *handler) backup(w http.ResponseWriter, r *http.Request) {
	if h.o.Scratch == "" {
		h.refuse(w, r, refusal.New(refusal.Unsupported, "this core has no directory for copies"))
		return
	}
	if !h.copying.TryLock() {
		h.refuse(w, r, refusal.New(refusal.Unavailable, "another backup is being made: wait until it is done"))
		return
	}
	defer h.copying.Unlock()
	path := filepath.Join(h.o.Scratch, "backup-"+credential.NewID()+".tmp")
	defer os.Remove(path) // gone already where an open file can be removed
	if err := h.core.Backup(r.Context(), path); err != nil {
		h.refuse(w, r, err)
		return
	}
	file, err := os.Open(path)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	defer file.Close()
	_ = os.Remove(path)
	info, err := file.Stat()
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.sqlite3")
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	if _, err := io.Copy(w, file); err != nil {
		panic(http.ErrAbortHandler) // so that the client does not take it for whole
	}
}

func (h *handler) check(ctx context.Context, _ *http.Request) (any, error) {
	problems, err := h.core.Check(ctx)
	if problems == nil {
		problems = []Problem{}
	}
	return object{"problems": problems}, err
}

// Backup writes a copy of the core's database to w. progress, if not nil, is called as it comes, with how many bytes of how many
// were written.
func (c *Client) Backup(ctx context.Context, w io.Writer, progress func(done, all int64)) error {
	response, err := c.send(ctx, http.MethodPost, "/v1/backup", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	out := &counted{w: w, all: response.ContentLength, progress: progress}
	if _, err := io.Copy(out, response.Body); err != nil {
		return fmt.Errorf("the copy did not come whole: %w", err)
	}
	return nil
}

// A counted writer tells how much was written.
type counted struct {
	w         io.Writer
	done, all int64
	progress  func(done, all int64)
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.done += int64(n)
	if c.progress != nil {
		c.progress(c.done, c.all)
	}
	return n, err
}

// Check has the core look through its whole database for damage. That may take minutes; without problems all is well.
func (c *Client) Check(ctx context.Context) ([]Problem, error) {
	response, err := c.send(ctx, http.MethodGet, "/v1/check", nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct{ Problems []Problem }
	return answer.Problems, decodeAnswer(response.Body, &answer)
}
