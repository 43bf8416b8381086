package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/rouse-dev/rouse/internal/store"
)

// wipeAtOnce is how many pages are wiped in one transaction, which keeps others waiting for a few milliseconds.
const wipeAtOnce = 256

// wipe clears what page splits and merges have left in the unused part of pages. A row that is moved to another page stays
// there as well, and if it is removed later, only its new place is overwritten.
func (s *Store) wipe(ctx context.Context) error {
	pages, err := s.unclean(ctx)
	if err != nil {
		return fmt.Errorf("look for what pages still hold: %w", fault(err))
	}
	for some := range slices.Chunk(pages, wipeAtOnce) {
		err := s.Update(ctx, func(t store.Tx) error { return t.(*tx).wipe(some) })
		if err != nil {
			return fmt.Errorf("wipe pages: %w", err)
		}
	}
	return nil
}

// Raw pages are read and written as rows of the virtual table that SQLite has for it, and so within transactions.
const (
	readPages = "SELECT pgno, data FROM sqlite_dbpage"
	readPage  = "SELECT data FROM sqlite_dbpage WHERE pgno = ?"
	writePage = "UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?"
)

// unclean lists the pages in whose unused part something is left.
func (s *Store) unclean(ctx context.Context) (pages []uint32, err error) {
	rows, err := s.reads.QueryContext(ctx, readPages)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var number uint32
	var page sql.RawBytes
	for rows.Next() {
		if err := s.ready(ctx); err != nil {
			return nil, err
		}
		if err := rows.Scan(&number, &page); err != nil {
			return nil, err
		}
		if number > mostPages {
			return nil, fmt.Errorf("the database has more than %d pages", mostPages)
		}
		if !isClear(unused(number, page)) {
			pages = append(pages, number)
		}
	}
	return pages, rows.Err()
}

// wipe clears the unused part of pages.
func (t *tx) wipe(pages []uint32) error {
	t.wrote = true
	if err := t.w.flush(); err != nil {
		return err
	}
	for _, number := range pages {
		var page []byte
		if err := t.w.session.QueryRowContext(background, readPage, number).Scan(&page); err != nil {
			return t.fault(err)
		}
		gap := unused(number, page)
		if isClear(gap) {
			continue
		}
		clear(gap)
		if _, err := t.w.session.ExecContext(background, writePage, page, number); err != nil {
			return t.fault(err)
		}
	}
	return nil
}

// mostPages is up to how many pages a page of a table or an index is known by its first byte. In all others that byte is the
// highest one of a page's number, or the page is not in use.
const mostPages = 1<<25 - 1

// unused gives the part of a table's or an index's page between what points to its rows and the rows; nothing of any other
// page. Rows grow towards the pointers, so what was there before stays until they do. Of the format see "B-tree Pages" in
// SQLite's description of its file.
func unused(number uint32, page []byte) []byte {
	header := page
	if number == 1 {
		header = page[100:] // after the file's own
	}
	var pointers int // where they begin in the header
	switch header[0] {
	case 2, 5: // with pages below it
		pointers = 12
	case 10, 13:
		pointers = 8
	default:
		return nil
	}
	from := len(page) - len(header) + pointers + 2*int(binary.BigEndian.Uint16(header[3:]))
	to := int(binary.BigEndian.Uint16(header[5:]))
	if from > to || to > len(page) {
		return nil
	}
	return page[from:to]
}

// isClear reports whether there are only zeros.
func isClear(b []byte) bool {
	for len(b) >= 8 {
		if binary.NativeEndian.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 })
}
