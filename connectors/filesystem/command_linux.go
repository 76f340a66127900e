package filesystem

import (
	"runtime"
	"syscall"
)

// childAttributes put a command into a process group of its own, so that what it has
// started ends with it, and end the command itself when this process dies. done is to
// be called when the command has ended.
func childAttributes() (a *syscall.SysProcAttr, done func()) {
	// The death signal follows the thread that starts the command.
	runtime.LockOSThread()
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}, runtime.UnlockOSThread
}
