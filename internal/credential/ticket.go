package credential

import (
	"encoding/binary"
	"strings"
	"time"
)

// A Ticket lets a connector ask once for the WebSocket of a conversation. That it is used once is the core's part: it
// remembers the nonce until the ticket has expired.
type Ticket struct {
	Conversation string    // id
	Nonce        string    // id
	Expires      time.Time // in whole seconds
}

const (
	ticketPrefix     = "wtk_"
	ticketTimeBytes  = 5 // seconds since 1970 until the year 36812
	ticketBodyLength = (2*idBytes + ticketTimeBytes) * 8 / 5
)

// MintTicket writes a ticket down, its expiry rounded down to the second. It panics if Conversation or Nonce is not an id
// made by [NewID] or if Expires is before 1970.
func (m *Master) MintTicket(ticket Ticket) string {
	mustBeID(ticket.Conversation)
	mustBeID(ticket.Nonce)
	seconds := ticket.Expires.Unix()
	if seconds < 0 || seconds >= 1<<(8*ticketTimeBytes) {
		panic("credential: a ticket's expiry is out of range")
	}
	clock := binary.BigEndian.AppendUint64(nil, uint64(seconds))[8-ticketTimeBytes:]
	body := ticket.Conversation + ticket.Nonce + idEncoding.EncodeToString(clock)
	return ticketPrefix + body + macText(m.ticket, body, fullMAC)
}

// OpenTicket reads a ticket back. ok is false for one that has expired by now, and for any other text.
func (m *Master) OpenTicket(token string, now time.Time) (ticket Ticket, ok bool) {
	text, found := strings.CutPrefix(token, ticketPrefix)
	if !found || len(text) != ticketBodyLength+fullMAC {
		return Ticket{}, false
	}
	body, ok := openMAC(m.ticket, text, fullMAC)
	if !ok {
		return Ticket{}, false
	}
	clock, err := idEncoding.DecodeString(body[2*idLength:])
	if err != nil {
		return Ticket{}, false
	}
	seconds := binary.BigEndian.Uint64(append(make([]byte, 8-ticketTimeBytes), clock...))
	ticket = Ticket{Conversation: body[:idLength], Nonce: body[idLength : 2*idLength], Expires: time.Unix(int64(seconds), 0)}
	if !now.Before(ticket.Expires) {
		return Ticket{}, false
	}
	return ticket, true
}
