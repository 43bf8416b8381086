package monitor

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/wake"
)

// maxLine is how many UTF-16 units of a line Claude Code keeps; what is over it is cut off.
const maxLine = 500

// A line is one message as the command prints it.
type line struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	Subject string          `json:"subject"`
	Data    json.RawMessage `json:"data,omitempty"`
	Whole   string          `json:"whole,omitempty"` // address of what did not fit
}

// lineOf writes a message as a line with its newline. whole is the address that gives it in full, put in where the line does
// not have room for everything.
func lineOf(m core.Message, whole string) []byte {
	l := line{Type: string(m.Kind), ID: m.ID, Subject: m.Text, Data: m.Data}
	if m.Kind == wake.KindEvent && l.Data == nil {
		l.Data = json.RawMessage("null")
	}
	full := encode(l)
	if units(full) <= maxLine {
		return append(full, '\n')
	}
	l.Whole = whole
	subject := m.Text
	if m.Data != nil {
		l.Data, subject = json.RawMessage("{}"), cut(m.Text, keptSubject)
	}
	fits := func() bool { return units(encode(l)) <= maxLine }
	l.Subject = fit(subject, func(s string) bool { l.Subject = s; return fits() })
	if m.Data != nil {
		l.Data = shorten(m.Data, func(data json.RawMessage) bool { l.Data = data; return fits() })
	}
	return append(encode(l), '\n')
}

// digestLine stands for messages that came faster than the harness takes lines. It has the id of the newest of them.
func digestLine(app string, folded []core.Message, whole string) []byte {
	last := folded[len(folded)-1]
	return append(encode(line{Type: "digest", ID: last.ID, Subject: harness.DigestText(len(folded), app), Whole: whole}), '\n')
}

// encode writes a line as JSON that no reader takes for two lines: some end a line at U+2028 too.
func encode(l line) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(l); err != nil {
		// The core checked the data when it was emitted.
		panic("monitor: a message is no JSON: " + err.Error())
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	out = bytes.ReplaceAll(out, []byte("\u2028"), []byte(`\u2028`))
	return bytes.ReplaceAll(out, []byte("\u2029"), []byte(`\u2029`))
}

// units counts as Claude Code does.
func units(b []byte) int {
	n := 0
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		n += max(1, utf16.RuneLen(r))
		b = b[size:]
	}
	return n
}

// cut shortens a text to limit characters, the last of which then says so.
func cut(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:limit-1])) + "…"
}

// fit is the longest beginning of a text that fits, found by halving.
func fit(s string, fits func(string) bool) string {
	low, high := 1, utf8.RuneCountInString(s)
	for low < high {
		if middle := (low + high + 1) / 2; fits(cut(s, middle)) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return cut(s, low)
}

// Shortened lines keep this many characters of the subject and of each string, so that several members find room.
const (
	keptSubject = 160
	keptString  = 60
)

// shorten keeps of an object the members that fit, in their order: short ones whole, long strings cut, long lists and objects
// left out. What is left is an object still.
func shorten(data json.RawMessage, fits func(json.RawMessage) bool) json.RawMessage {
	kept := []byte("{}")
	for _, member := range members(data) {
		next := bytes.TrimSuffix(bytes.Clone(kept), []byte("}"))
		if len(next) > 1 {
			next = append(next, ',')
		}
		next = append(append(next, member...), '}')
		if fits(next) {
			kept = next
		}
	}
	return kept
}

// members lists an object's members as "name":value, their values shortened or left out.
func members(data json.RawMessage) (list []json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return list
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return list
		}
		if value = shortValue(value); value == nil {
			continue
		}
		key, _ := json.Marshal(name)
		list = append(list, append(append(key, ':'), value...))
	}
	return list
}

func shortValue(value json.RawMessage) json.RawMessage {
	if units(value) <= keptString+2 {
		return value
	}
	var text string
	if value[0] != '"' || json.Unmarshal(value, &text) != nil {
		return nil
	}
	short, _ := json.Marshal(cut(text, keptString))
	return short
}
