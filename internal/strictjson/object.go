package strictjson

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Defaults of [Limits].
const (
	DefaultMaxBytes = 1 << 20
	DefaultMaxDepth = 64
)

// Limits bound what is read. The zero value means the defaults.
type Limits struct {
	MaxBytes int // length of the text in bytes; DefaultMaxBytes when 0
	MaxDepth int // objects and arrays inside one another, the outermost counted; DefaultMaxDepth when 0
}

func (l Limits) maxBytes() int {
	if l.MaxBytes > 0 {
		return l.MaxBytes
	}
	return DefaultMaxBytes
}

func (l Limits) maxDepth() int {
	if l.MaxDepth > 0 {
		return l.MaxDepth
	}
	return DefaultMaxDepth
}

// Object checks that data is exactly one JSON object within the limits and returns it without the white space around it.
// The result shares data's memory. The error is always an *[Error]. Safe for concurrent use.
func Object(data []byte, limits Limits) (jsontext.Value, error) {
	if len(data) > limits.maxBytes() {
		return nil, &Error{Problem: TooLong, Limit: limits.maxBytes()}
	}
	decoder := jsontext.NewDecoder(bytes.NewBuffer(data))
	switch decoder.PeekKind() {
	case jsontext.KindBeginObject:
	case jsontext.KindInvalid:
		_, err := decoder.ReadToken()
		return nil, syntaxError(err, data)
	default:
		return nil, &Error{Problem: NotObject}
	}
	for first := true; first || decoder.StackDepth() > 0; first = false {
		if err := step(decoder, data, limits.maxDepth()); err != nil {
			return nil, err
		}
	}
	end := decoder.InputOffset()
	if _, err := decoder.ReadToken(); err != io.EOF {
		return nil, &Error{Problem: Trailing, Offset: end}
	}
	return jsontext.Value(bytes.TrimLeft(data[:end], " \t\r\n")), nil
}

// step reads the next token, or the next value if it is a number.
func step(decoder *jsontext.Decoder, data []byte, maxDepth int) error {
	if decoder.PeekKind() == jsontext.KindNumber {
		number, err := decoder.ReadValue()
		if err != nil {
			return syntaxError(err, data)
		}
		if overflows(number) {
			return &Error{Problem: NumberTooBig, Field: fieldOf(decoder.StackPointer()), Offset: decoder.InputOffset() - int64(len(number))}
		}
		return nil
	}
	if _, err := decoder.ReadToken(); err != nil {
		return syntaxError(err, data)
	}
	if decoder.StackDepth() > maxDepth {
		return &Error{Problem: TooDeep, Field: fieldOf(decoder.StackPointer()), Offset: decoder.InputOffset() - 1, Limit: maxDepth}
	}
	return nil
}

// overflows reports whether a JSON number lies beyond the range of a float64.
func overflows(number jsontext.Value) bool {
	const alwaysFits = 300 // digits without an exponent; the largest double has 309
	if len(number) < alwaysFits && !bytes.ContainsAny(number, "eE") {
		return false
	}
	_, err := strconv.ParseFloat(string(number), 64)
	return errors.Is(err, strconv.ErrRange)
}

// Compact returns v without white space and with each string in its shortest UTF-8 form. The order of members and the
// literals of numbers stay. v itself is not changed. The error is an *[Error]; there is none for what [Object] returned.
func Compact(v jsontext.Value) (jsontext.Value, error) {
	compact, err := jsontext.AppendFormat(nil, v)
	if err != nil {
		return nil, syntaxError(err, v)
	}
	return compact, nil
}
