package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size as settings have it: a number, and optionally KB, MB, GB or TB, of 1000, or KiB, MiB, GiB or TiB, of 1024.
// It implements [pflag.Value].
type Bytes int64

// units of sizes, the longest names first.
var units = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"", 1},
}

// Set reads a size. The error says what one looks like.
func (b *Bytes) Set(text string) error {
	for _, unit := range units {
		number, ok := strings.CutSuffix(text, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/unit.bytes {
			break
		}
		*b = Bytes(n * unit.bytes)
		return nil
	}
	return fmt.Errorf("%q is no size, such as 500MB, 20GiB or 0", text)
}

// String writes the size in the largest unit that it is a whole number of.
func (b *Bytes) String() string {
	best := units[len(units)-1]
	for _, unit := range units {
		if *b != 0 && int64(*b)%unit.bytes == 0 && unit.bytes > best.bytes {
			best = unit
		}
	}
	return strconv.FormatInt(int64(*b)/best.bytes, 10) + best.name
}

// Type names the value in the help.
func (*Bytes) Type() string { return "size" }
