//go:build unix

package bench

import (
	"syscall"
	"time"
)

// cpu is the processor time this process has used, in its own code and in the system's.
func cpu() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // it fails for bad arguments only
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
