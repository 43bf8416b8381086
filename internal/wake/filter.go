package wake

import (
	"bytes"
	"encoding/json"
	"math/big"
)

// A Filter names payload fields and the scalar each must equal. The nil filter lets everything pass.
type Filter map[string]json.RawMessage

// Passes reports whether the payload has every named field with an equal value. Numbers are equal by value, however
// they are written.
func (f Filter) Passes(data json.RawMessage) bool {
	if len(f) == 0 {
		return true
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return false
	}
	for name, want := range f {
		got, ok := fields[name]
		if !ok || !equalScalar(want, got) {
			return false
		}
	}
	return true
}

func equalScalar(a, b json.RawMessage) bool {
	a, b = bytes.TrimSpace(a), bytes.TrimSpace(b)
	if bytes.Equal(a, b) {
		return true
	}
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	if a[0] == '"' && b[0] == '"' {
		var x, y string
		return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x == y
	}
	x, okX := number(a)
	y, okY := number(b)
	return okX && okY && x.Cmp(y) == 0
}

// number reads a JSON number, with precision enough for any of sensible length; one out of all range is no number.
func number(raw []byte) (*big.Float, bool) {
	if len(raw) > 400 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return nil, false
	}
	f, _, err := big.ParseFloat(string(raw), 10, 1500, big.ToNearestEven)
	return f, err == nil && !f.IsInf()
}
