package filesystem

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
)

// TestCommandThatACrashLeftBehind: while a run of the command whose Millrace is gone
// still has a process, the command is not run; then it is.
func TestCommandThatACrashLeftBehind(t *testing.T) {
	s, log := commandTable(t, `echo second >>"$1"`, map[string]string{keyCommandTimeout: "300 ms"})
	f := s.(*Sink)
	f.locks = filepath.Join(t.TempDir(), "locks")
	// What a process that was killed has done: the lock is with the command alone, here
	// with one that its own program has started.
	lock, _, err := takeLock(t.Context(), f.commandLock())
	if err != nil {
		t.Fatal(err)
	}
	left := exec.Command("sh", "-c", `sh -c 'read x; echo first >>"$0"' "$0"; true`, log)
	left.ExtraFiles = []*os.File{lock}
	end, err := left.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	nameHolder(lock, left.Process.Pid)
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	commit := func() error { return s.(connector.PartitionCommitter).CommitPartition(t.Context(), nullHour) }
	err = commit()
	var r connector.Retryable
	if !errors.As(err, &r) || !r.Retryable() || !strings.Contains(err.Error(), "process group "+strconv.Itoa(left.Process.Pid)+", has not ended") {
		t.Errorf("beside the run that was left: %v", err)
	}
	if _, err := os.Stat(log); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command ran beside the run that was left: %v", err)
	}
	if _, err := io.WriteString(end, "go\n"); err != nil {
		t.Fatal(err)
	}
	if err := left.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(log); err != nil || string(b) != "first\nsecond\n" {
		t.Errorf("the runs left %q, %v", b, err)
	}
}

// TestCommandLeavesSomethingRunning: what a command that ended well has left running
// keeps no other run waiting.
func TestCommandLeavesSomethingRunning(t *testing.T) {
	s, log := commandTable(t, `sleep 60 >/dev/null 2>&1 & echo "$!" >>"$1"`, nil)
	s.(*Sink).locks = t.TempDir()
	for range 2 {
		if err := s.(connector.PartitionCommitter).CommitPartition(t.Context(), nullHour); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	pids := strings.Fields(string(b))
	if len(pids) != 2 {
		t.Errorf("the command ran %d times, want 2", len(pids))
	}
	for _, p := range pids {
		if n, err := strconv.Atoi(p); err == nil {
			if left, err := os.FindProcess(n); err == nil {
				_ = left.Kill()
			}
		}
	}
}

// TestLockIsNoLink: what a link at a lock's name leads to is left alone.
func TestLockIsNoLink(t *testing.T) {
	dir := t.TempDir()
	target, path := filepath.Join(dir, "target"), filepath.Join(dir, "a.lock")
	if err := os.WriteFile(target, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	if lock, _, err := takeLock(t.Context(), path); err == nil {
		nameHolder(lock, 1)
		giveBack(lock)
		t.Error("a link was taken for a lock")
	}
	if b, err := os.ReadFile(target); err != nil || string(b) != "precious" {
		t.Errorf("the file behind the link has %q, %v", b, err)
	}
}
