package credential

import (
	"strconv"
	"strings"
	"testing"
)

func TestHeaderCacheIsBounded(t *testing.T) {
	t.Parallel()
	var known headerCache
	for i := range 3 * maxHeaders {
		head := strconv.Itoa(i)
		known.put(head, "kid "+head)
		if kid, ok := known.get(head); !ok || kid != "kid "+head {
			t.Fatalf("%s is not known right after it was put: %q", head, kid)
		}
		if len(known.kids) > maxHeaders {
			t.Fatalf("%d headers", len(known.kids))
		}
	}
	long := strings.Repeat("x", maxHeaderBytes+1)
	known.put(long, "kid")
	if _, ok := known.get(long); ok {
		t.Errorf("it keeps a header of %d bytes", len(long))
	}
}

func TestNoHeaderCache(t *testing.T) {
	t.Parallel()
	var none *headerCache
	none.put("head", "kid")
	if _, ok := none.get("head"); ok {
		t.Error("nil remembers a header")
	}
}
