package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// answer writes a command's answer: as JSON, or in the words that text writes.
func (p *program) answer(value any, text func(w io.Writer)) error {
	if !p.json {
		text(p.env.Stdout)
		return nil
	}
	return p.writeJSON(value)
}

// writeJSON writes one value on a line.
func (p *program) writeJSON(value any) error {
	encoder := json.NewEncoder(p.env.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// remark says something beside the answer, to people only.
func (p *program) remark(format string, args ...any) {
	if !p.json {
		fmt.Fprintf(p.env.Stderr, format+"\n", args...)
	}
}

// table writes rows in columns.
func table(w io.Writer, header []string, rows [][]string) {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, strings.Join(header, "\t"))
	for _, row := range rows {
		fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	_ = columns.Flush() // the writer below it is checked where it is a file
}

// shortID is enough of an id to know it by in a list: its prefix and eight characters.
func shortID(id string) string {
	const most = 8
	prefix, rest := "", id
	if i := strings.IndexByte(id, '_'); i >= 0 {
		prefix, rest = id[:i+1], id[i+1:]
	}
	if len(rest) > most {
		rest = rest[:most]
	}
	return prefix + rest
}

// day is a time as lists show it; empty for the zero time.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04")
}

// A style colours text, on terminals that want it.
type style bool

// styleOf reports whether a writer is a terminal that wants colours: NO_COLOR and TERM=dumb say that it does not.
func (p *program) styleOf(w io.Writer) style {
	file, ok := w.(*os.File)
	if !ok || p.getenv("NO_COLOR") != "" || p.getenv("TERM") == "dumb" || runtime.GOOS == "windows" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// The colours there are.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	faint  = "2"
)

func (s style) paint(colour, text string) string {
	if !bool(s) || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
