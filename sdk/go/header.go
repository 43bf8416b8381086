package wakeshift

import (
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// nameHeader is the HTTP header that repeats params.name. Older clients of MCP
// Events do not send it.
const nameHeader = "Mcp-Name"

// checkNameHeader compares the name in the header, if there is one, with the one
// in params.
func checkNameHeader(header http.Header, name string) error {
	values := header.Values(nameHeader)
	if len(values) == 0 {
		return nil
	}
	if decoded, ok := decodeHeader(values[0]); len(values) > 1 || !ok || decoded != name {
		return &jsonrpc.Error{Code: mcp.CodeHeaderMismatch, Message: "Header mismatch: Mcp-Name is not params.name"}
	}
	return nil
}

// decodeHeader reads a header value in either of its forms: as it is, or as
// =?base64?…?= of its UTF-8. False means that the latter cannot be decoded.
func decodeHeader(value string) (string, bool) {
	value = strings.Trim(value, " \t")
	encoded, ok := strings.CutPrefix(value, "=?base64?")
	if !ok {
		return value, true
	}
	if encoded, ok = strings.CutSuffix(encoded, "?="); !ok {
		return value, true
	}
	data, err := base64.RawStdEncoding.Strict().DecodeString(strings.TrimRight(encoded, "="))
	return string(data), err == nil && utf8.Valid(data)
}
