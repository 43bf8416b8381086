//go:build unix

package pgtest

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// unprivileged gives a user to run as where this process is root's, which PostgreSQL refuses to be: its own one if the
// machine has that, else nobody.
func unprivileged() (uid, gid int, demoted bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	if u, err := user.Lookup("postgres"); err == nil {
		uid, _ = strconv.Atoi(u.Uid)
		gid, _ = strconv.Atoi(u.Gid)
	}
	if uid == 0 {
		uid, gid = 65534, 65534
	}
	return uid, gid, true
}

func demote(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if uid, gid, demoted := unprivileged(); demoted {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
}

// giveAway makes a directory that user's.
func giveAway(directory string) error {
	if uid, gid, demoted := unprivileged(); demoted {
		return os.Chown(directory, uid, gid)
	}
	return nil
}
