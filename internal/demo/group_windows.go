package demo

import (
	"os/exec"
	"strconv"
)

func ownGroup(*exec.Cmd) {}

// killGroup ends a command and what it started; Windows has a command for that.
func killGroup(cmd *exec.Cmd) {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run() // it fails when all have ended
}
