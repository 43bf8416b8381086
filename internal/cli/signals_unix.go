//go:build !windows

package cli

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// interrupts end a command that goes on for long.
var interrupts = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

// forwarded are the signals that a command run by `rouse dev` is passed.
var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// typed reports whether a signal came from the terminal's keyboard, which sends it to the command too: then passing it on
// would make it two.
func typed(signal os.Signal, stdin any) bool {
	if signal != syscall.SIGINT && signal != syscall.SIGQUIT {
		return false
	}
	terminal, ok := stdin.(*os.File)
	if !ok {
		return false
	}
	foreground, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && foreground == unix.Getpgrp()
}

// statusOf is a command's exit status as a shell gives it: 128 and the signal's number for one that was killed.
func statusOf(cmd *exec.Cmd) int {
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}
