package strictjson

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// A Problem is a way in which JSON can be unacceptable.
type Problem string

// The problems.
const (
	TooLong       Problem = "too long"
	TooDeep       Problem = "too deep"
	TooMany       Problem = "too many"
	NotObject     Problem = "not an object"
	NotArray      Problem = "not an array"
	Malformed     Problem = "malformed"
	Incomplete    Problem = "incomplete"
	Trailing      Problem = "trailing data"
	Duplicate     Problem = "duplicate key"
	InvalidUTF8   Problem = "invalid UTF-8"
	LoneSurrogate Problem = "lone surrogate"
	NumberTooBig  Problem = "number too big"
	WrongType     Problem = "wrong type"
)

// An Error says why JSON was refused. Its text names the place and the limit; of the content it holds at most the names of
// the members that lead to the place, shortened.
type Error struct {
	Problem Problem
	Field   string // path to the place, such as "call.tags[2]"; empty for the whole
	Offset  int64  // byte at or after which the problem is; 0 for TooLong, TooMany, NotObject, NotArray and WrongType
	Limit   int    // the limit passed, for TooLong (bytes), TooDeep (levels) and TooMany (elements)
	Want    string // what was expected, for WrongType: "a string"; for Trailing "array" after one, empty after an object
}

// Error describes the problem in words fit for who sent the JSON.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.explain()
	}
	return e.Field + ": " + e.explain()
}

func (e *Error) explain() string {
	switch e.Problem {
	case TooLong:
		return fmt.Sprintf("the JSON is longer than %d bytes", e.Limit)
	case TooDeep:
		return fmt.Sprintf("more than %d objects and arrays inside one another", e.Limit)
	case TooMany:
		return fmt.Sprintf("more than %d elements in the array", e.Limit)
	case NotObject:
		return "must be a JSON object"
	case NotArray:
		return "must be a JSON array"
	case Incomplete:
		return fmt.Sprintf("the JSON ends too early, at byte %d", e.Offset)
	case Trailing:
		return fmt.Sprintf("there is more after the JSON %s, at byte %d", cmp.Or(e.Want, "object"), e.Offset)
	case Duplicate:
		return "the key is there twice"
	case InvalidUTF8:
		return fmt.Sprintf("not valid UTF-8 at byte %d", e.Offset)
	case LoneSurrogate:
		return fmt.Sprintf("a lone surrogate at byte %d", e.Offset)
	case NumberTooBig:
		return "the number is beyond the range of a double"
	case WrongType:
		return "must be " + e.Want
	default:
		return fmt.Sprintf("not valid JSON at byte %d", e.Offset)
	}
}

// Mismatch is the error for an UnmarshalJSON method to return when the value is of no form it takes. want completes "must
// be", as in "a number of seconds". [Decode] adds which field it was.
func Mismatch(want string) error { return &Error{Problem: WrongType, Want: want} }

// syntaxError turns an error of jsontext about data into ours.
func syntaxError(err error, data []byte) error {
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) {
		return &Error{Problem: Incomplete, Offset: int64(len(data))}
	}
	e := &Error{Problem: Malformed, Field: fieldOf(syntactic.JSONPointer), Offset: syntactic.ByteOffset}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		e.Problem = Duplicate
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Problem = Incomplete
	case isSurrogate(data, syntactic.ByteOffset):
		e.Problem = LoneSurrogate
	case isInvalidUTF8(syntactic):
		e.Problem = InvalidUTF8
	}
	return e
}

// isSurrogate reports whether a surrogate is written as an escape at offset.
func isSurrogate(data []byte, offset int64) bool {
	if offset < 0 || offset+4 > int64(len(data)) {
		return false
	}
	escape := strings.ToLower(string(data[offset : offset+4]))
	return strings.HasPrefix(escape, `\ud`) && escape[3] >= '8' && escape[3] <= 'f'
}

// isInvalidUTF8 goes by the wording, since jsontext exports no value for it.
func isInvalidUTF8(err *jsontext.SyntacticError) bool {
	return err.Err != nil && err.Err.Error() == "invalid UTF-8"
}

// Bounds of a path in an error, so that what was sent cannot make it long.
const (
	maxNameRunes = 40
	maxNames     = 8
)

// fieldOf writes a JSON pointer the way programmers speak of fields: "call.tags[2]".
func fieldOf(pointer jsontext.Pointer) string {
	var path strings.Builder
	names := 0
	for name := range pointer.Tokens() {
		if names++; names > maxNames {
			path.WriteString("…")
			break
		}
		if isIndex(name) {
			path.WriteString("[" + name + "]")
			continue
		}
		if path.Len() > 0 {
			path.WriteByte('.')
		}
		path.WriteString(shortName(name))
	}
	return path.String()
}

func isIndex(name string) bool {
	return name != "" && len(name) < 10 && strings.Trim(name, "0123456789") == ""
}

// shortName makes a member's name fit for one line of text.
func shortName(name string) string {
	if name == "" {
		return `""`
	}
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, name))
	if len(runes) > maxNameRunes {
		return string(runes[:maxNameRunes]) + "…"
	}
	return string(runes)
}
