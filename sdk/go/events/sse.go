package events

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

var errTooLong = errors.New("events: the server sent a message that is too long")

// A sseReader reads the data of server-sent events. Comments and other fields
// are passed over.
type sseReader struct {
	r      *bufio.Reader
	most   int  // bytes of an event, with everything
	begun  bool // the first line was read
	wasCR  bool // the last line ended with CR, so that an LF belongs to it
	line   []byte
	unread int // bytes that may still come in this event
}

func newSSEReader(r io.Reader, most int) *sseReader {
	return &sseReader{r: bufio.NewReader(r), most: most}
}

// next is the data of the next event that has any. At the end of the input it is
// what came of an unfinished event, if anything did, and then io.EOF.
func (s *sseReader) next() ([]byte, error) {
	var data []byte
	has := false
	s.unread = s.most
	for {
		line, err := s.readLine()
		if err != nil && !(errors.Is(err, io.EOF) && len(line) > 0) {
			if errors.Is(err, io.EOF) && has {
				return data, nil
			}
			return nil, err
		}
		if len(line) == 0 {
			if has {
				return data, nil
			}
			s.unread = s.most
			continue
		}
		field, rest, _ := bytes.Cut(line, []byte(":"))
		if string(field) != "data" {
			if len(field) == 0 && !has {
				s.unread = s.most // a comment between events
			}
			continue
		}
		if has {
			data = append(data, '\n')
		}
		data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
		has = true
	}
}

// readLine reads a line that ends with LF, CR or both. It is good until the next
// call. Waiting for an LF after a CR would hold back what has arrived.
func (s *sseReader) readLine() ([]byte, error) {
	s.line = s.line[:0]
	for {
		b, err := s.r.ReadByte()
		if err != nil {
			return s.line, err
		}
		if b == '\n' && s.wasCR {
			s.wasCR = false
			continue
		}
		s.wasCR = b == '\r'
		if b == '\n' || b == '\r' {
			if !s.begun {
				s.begun = true
				return bytes.TrimPrefix(s.line, []byte("\xef\xbb\xbf")), nil
			}
			return s.line, nil
		}
		if s.unread--; s.unread < 0 {
			return nil, errTooLong
		}
		s.line = append(s.line, b)
	}
}
