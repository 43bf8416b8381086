package postgres

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/rouse-dev/rouse/internal/bus"
)

const (
	// maxMessage is what PostgreSQL lets a NOTIFY carry, in bytes.
	maxMessage = 7999
	// maxMessages is how many are sent for what is hinted at together; more of it is one that means everything.
	maxMessages = 16
)

// A message is what one NOTIFY carries: who sent it, and at what it hints.
type message struct {
	From string      `json:"from"`
	Keys [][2]string `json:"keys,omitempty"` // app and topic
	All  bool        `json:"all,omitempty"`  // at everything
}

func (m message) encode() string {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(m) // strings and a bool always can be
	return string(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))
}

// encode gives the messages for what one node hints at.
func encode(from string, keys []bus.Key, all bool) []string {
	everything := []string{message{From: from, All: true}.encode()}
	if all {
		return everything
	}
	var out []string
	m, size := message{From: from}, 0
	frame := len(message{From: from, Keys: [][2]string{{}}}.encode()) - len(`["",""]`)
	for _, key := range keys {
		pair := [2]string{key.App, key.Topic}
		length := len(message{From: from, Keys: [][2]string{pair}}.encode()) - frame + len(",")
		if frame+length > maxMessage {
			return everything
		}
		if frame+size+length > maxMessage {
			if out = append(out, m.encode()); len(out) == maxMessages {
				return everything
			}
			m, size = message{From: from}, 0
		}
		m.Keys, size = append(m.Keys, pair), size+length
	}
	if len(m.Keys) > 0 {
		out = append(out, m.encode())
	}
	return out
}

// decode reads a message. Anybody who may connect to the database may have sent it; the most that it does is to have watchers
// look.
func decode(payload string) (from string, keys []bus.Key, all bool, err error) {
	if len(payload) > maxMessage {
		return "", nil, false, errors.New("a message too long to be one")
	}
	var m message
	if err := json.Unmarshal([]byte(payload), &m); err != nil {
		return "", nil, false, err
	}
	for _, pair := range m.Keys {
		keys = append(keys, bus.Key{App: pair[0], Topic: pair[1]})
	}
	return m.From, keys, m.All, nil
}
