package monitor

import (
	"net"

	"golang.org/x/sys/unix"
)

// unacknowledged is how many bytes were sent and not acknowledged by the peer's system.
func unacknowledged(c *net.TCPConn) (n int, ok bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	var failed error
	err = raw.Control(func(fd uintptr) { n, failed = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	return n, err == nil && failed == nil
}
