package postgres

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// giveUp has the system end a TCP connection on which something sent has not been acknowledged for a while: what waits for an
// answer is not waiting for keep-alive, which is silent then.
func giveUp(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var err error
	if controlled := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unansweredTimeout.Milliseconds()))
	}); controlled != nil {
		return controlled
	}
	return err
}
