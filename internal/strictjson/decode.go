package strictjson

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode checks data as [Object] does and decodes it into the struct that into points to. Names match case by case, members
// the struct does not have are ignored, null is as good as absent. A value of another type than its field is an *[Error]
// that names the field. Any other error means that the struct cannot be decoded into, which is a mistake in the program.
//
// A field of type jsontext.Value keeps its part of the JSON as it was written. Safe for concurrent use.
func Decode(data []byte, limits Limits, into any) error {
	if target := reflect.ValueOf(into); target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("strictjson: cannot decode into %T: it must be a pointer and not nil", into)
	}
	if len(data) <= limits.maxBytes() && plain(data, limits.maxDepth()) && json.Unmarshal(data, into) == nil {
		return nil
	}
	return decodeSlowly(data, limits, into)
}

// decodeSlowly decodes what is not plain, and finds out what is wrong with what cannot be decoded.
func decodeSlowly(data []byte, limits Limits, into any) error {
	object, err := Object(data, limits)
	if err != nil {
		return err
	}
	// Object has checked both of these already; checking keys a second time costs as much as the decoding itself.
	err = json.Unmarshal(object, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err == nil {
		return nil
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) || semantic.GoType == nil {
		return fmt.Errorf("strictjson: cannot decode into %T: %w", into, err)
	}
	mismatch := &Error{Problem: WrongType, Field: fieldOf(semantic.JSONPointer), Want: expected(semantic.GoType)}
	var own *Error
	if errors.As(semantic.Err, &own) {
		mismatch.Want = own.Want
	}
	return mismatch
}

// expected names the JSON that a Go type takes.
func expected(t reflect.Type) string {
	if t == reflect.TypeFor[time.Time]() {
		return "a time such as 2026-11-30T12:00:00Z"
	}
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return "a string in the right form"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer that is not negative"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a string of base64"
		}
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "of another type"
	}
}
