//go:build !windows

package demo

import (
	"os/exec"
	"syscall"
)

// ownGroup gives a command a process group of its own, so that its curl can be ended with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it fails when all have ended
}
