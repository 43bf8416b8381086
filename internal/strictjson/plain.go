package strictjson

import "bytes"

// plain reports whether data begins like an object and, if it is JSON at all, is within the limits that the decoder does not
// know: levels, and numbers that a double can hold. It errs on the side of false.
func plain(data []byte, maxDepth int) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	if len(data) == 0 || data[0] != '{' {
		return false
	}
	depth := 0
	for i := 0; i < len(data); {
		switch c := data[i]; {
		case c == '"':
			i += stringLength(data[i:])
			continue
		case c == '-' || c >= '0' && c <= '9':
			n := numberLength(data[i:])
			if overflows(data[i : i+n]) {
				return false
			}
			i += n
			continue
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
		i++
	}
	return true
}

// stringLength is the length of the JSON string that data begins with; all of data if it does not end.
func stringLength(data []byte) int {
	for end := 1; ; end++ {
		next := bytes.IndexByte(data[end:], '"')
		if next < 0 {
			return len(data)
		}
		escapes := 0
		for escapes < next && data[end+next-1-escapes] == '\\' {
			escapes++
		}
		if end += next; escapes%2 == 0 {
			return end + 1
		}
	}
}

// numberLength is the length of what data begins with, as far as it could be a number.
func numberLength(data []byte) int {
	end := bytes.IndexFunc(data, func(r rune) bool {
		return (r < '0' || r > '9') && r != '-' && r != '+' && r != '.' && r != 'e' && r != 'E'
	})
	if end < 0 {
		return len(data)
	}
	return end
}
