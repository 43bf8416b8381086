package events

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func readAllEvents(r io.Reader, most int) (list []string, err error) {
	events := newSSEReader(r, most)
	for {
		data, err := events.next()
		if err != nil {
			return list, err
		}
		list = append(list, string(data))
	}
}

func TestServerSentEvents(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"plain":            {"data: a\n\ndata:b\n\n", []string{"a", "b"}},
		"CR and CRLF":      {"data: a\r\n\r\ndata: b\r\rdata: c\n\n", []string{"a", "b", "c"}},
		"lines":            {"data: a\ndata: b\n\n", []string{"a\nb"}},
		"comments, fields": {": hi\nevent: x\nid: 7\ndata: a\n: ho\n\n", []string{"a"}},
		"empty data":       {"data\n\n\n\n", []string{""}},
		"byte order mark":  {"\xef\xbb\xbfdata: a\n\n", []string{"a"}},
		"unfinished":       {"data: a\n\ndata: b", []string{"a", "b"}},
	} {
		got, err := readAllEvents(strings.NewReader(c.in), 100)
		if diff := cmp.Diff(c.want, got); diff != "" || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v, -want +got:\n%s", name, err, diff)
		}
	}
	if _, err := readAllEvents(strings.NewReader("data: "+strings.Repeat("a", 100)), 100); !errors.Is(err, errTooLong) {
		t.Errorf("a long event: %v", err)
	}
	if _, err := readAllEvents(strings.NewReader(strings.Repeat(": a comment\n", 100)+"data: a\n\n"), 100); !errors.Is(err, io.EOF) {
		t.Errorf("many comments: %v", err)
	}
}

// How the bytes arrive makes no difference, and no event is longer than allowed.
func FuzzServerSentEvents(f *testing.F) {
	f.Add([]byte("\xef\xbb\xbf: c\r\ndata: a\r\rdata\n\nevent: x\ndata: b"))
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, wholeErr := readAllEvents(bytes.NewReader(in), 64)
		pieces, piecesErr := readAllEvents(iotest.OneByteReader(bytes.NewReader(in)), 64)
		if diff := cmp.Diff(whole, pieces); diff != "" || !errors.Is(piecesErr, wholeErr) {
			t.Errorf("%v, %v: %s", wholeErr, piecesErr, diff)
		}
		for _, data := range whole {
			if len(data) > 64 {
				t.Errorf("an event has %d bytes", len(data))
			}
		}
	})
}

// What is read is an event with its id and name, or a control envelope.
func FuzzDelivery(f *testing.F) {
	f.Add([]byte(`{"eventId":"e1","name":"tick","timestamp":"2026-02-19T15:30:00Z","data":{},"cursor":null}`))
	f.Add([]byte(`{"type":"verification","challenge":"x"}`))
	f.Add([]byte(`{"type":"terminated"}`))
	f.Add([]byte(`{"type":"gap","cursor":"c1"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := readDelivery(body)
		if err != nil {
			return
		}
		switch d.kind {
		case "":
			if d.occurrence.EventID == "" || d.occurrence.Name == "" {
				t.Error("an event without an id or a name")
			}
		case kindVerification:
			if d.challenge == "" || len(d.challenge) > mostChallenge {
				t.Error("a challenge that cannot be echoed")
			}
		case kindTerminated:
			if d.ended == nil {
				t.Error("an end without a reason")
			}
		}
	})
}

const vectorSecret, vectorSignature = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

// Only the right signature is taken, at whatever place it has.
func FuzzSignature(f *testing.F) {
	f.Add(vectorSecret, vectorSignature)
	f.Add(vectorSecret, "v1,AAAA v1a,x "+vectorSignature)
	f.Add("whsec_", "v1,")
	f.Add("whsec_!", "")
	f.Fuzz(func(t *testing.T, text, header string) {
		got := isSigned(keys([]secret{{Text: text}}), "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`), header)
		if got && strings.TrimPrefix(text, secretPrefix) == "" {
			t.Error("an empty secret signs")
		}
		if text != vectorSecret {
			return
		}
		want := false
		for i, field := range strings.Fields(header) {
			want = want || field == vectorSignature && i < mostSignatures
		}
		if want && !got || got && !want && !strings.Contains(header, "g0hM9SsE") {
			t.Errorf("%q: got %v, want %v", header, got, want)
		}
	})
}

// A name travels in a header and comes back as it was.
func FuzzHeaderValue(f *testing.F) {
	for _, text := range []string{"crawl.finished", "naïve", " a", "", "=?base64?YQ==?=", "a\r\nb"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value := headerValue(text)
		for i := range len(value) {
			if value[i] < ' ' || value[i] > '~' {
				t.Fatalf("%q is no header", value)
			}
		}
		if strings.TrimSpace(value) != value {
			t.Fatalf("%q would be trimmed", value)
		}
		back := value
		if inner, ok := strings.CutPrefix(value, "=?base64?"); ok {
			raw, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?="))
			if err != nil {
				t.Fatal(err)
			}
			back = string(raw)
		}
		if back != text {
			t.Errorf("%q came back as %q", text, back)
		}
	})
}
