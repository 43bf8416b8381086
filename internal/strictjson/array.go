package strictjson

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// IsArray reports whether data begins like a JSON array.
func IsArray(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && data[0] == '['
}

// Array splits data, exactly one JSON array of at most maxItems elements, into its elements, as they were written. It checks the
// grammar alone: each element is then for [Object] or [Decode] to check, so that what is wrong with one spoils none of the
// others. Of limits only the length counts here. The result shares data's memory. The error is always an *[Error]. Safe for
// concurrent use.
func Array(data []byte, limits Limits, maxItems int) ([]jsontext.Value, error) {
	if len(data) > limits.maxBytes() {
		return nil, &Error{Problem: TooLong, Limit: limits.maxBytes()}
	}
	if !IsArray(data) {
		return nil, &Error{Problem: NotArray}
	}
	decoder := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := decoder.ReadToken(); err != nil {
		return nil, syntaxError(err, data)
	}
	var items []jsontext.Value
	for decoder.PeekKind() != jsontext.KindEndArray {
		if len(items) == maxItems {
			return nil, &Error{Problem: TooMany, Limit: maxItems}
		}
		item, err := decoder.ReadValue()
		if err != nil {
			return nil, syntaxError(err, data)
		}
		end := decoder.InputOffset()
		items = append(items, jsontext.Value(data[end-int64(len(item)):end:end]))
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, syntaxError(err, data)
	}
	end := decoder.InputOffset()
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, &Error{Problem: Trailing, Offset: end, Want: "array"}
	}
	return items, nil
}
