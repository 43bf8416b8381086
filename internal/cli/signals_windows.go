package cli

import (
	"os"
	"os/exec"
	"syscall"
)

// interrupts end a command that goes on for long.
var interrupts = []os.Signal{os.Interrupt, syscall.SIGTERM}

// forwarded are caught so that they do not end `rouse dev` before its command; the console sends them to the command itself.
var forwarded = []os.Signal{os.Interrupt, syscall.SIGTERM}

// typed: nothing can be passed on, and nothing has to be.
func typed(os.Signal, any) bool { return true }

// statusOf is a command's exit status.
func statusOf(cmd *exec.Cmd) int { return cmd.ProcessState.ExitCode() }
