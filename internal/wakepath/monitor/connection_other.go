//go:build !linux

package monitor

import "net"

// unacknowledged is not known here.
func unacknowledged(*net.TCPConn) (n int, ok bool) { return 0, false }
