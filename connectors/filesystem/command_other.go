//go:build !linux

package filesystem

import "syscall"

// childAttributes put a command into a process group of its own, so that what it has
// started ends with it. Here the command goes on when this process dies, and the next
// one waits for its end (commandlock.go).
func childAttributes() (a *syscall.SysProcAttr, done func()) {
	return &syscall.SysProcAttr{Setpgid: true}, func() {}
}
