package sysmon

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestRelax: the slack of the second thread is set, that of the first stays, and a
// process without the right to set it is told so.
func TestRelax(t *testing.T) {
	slack := func(name string) int64 {
		t.Helper()
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	err := Relax()
	if errors.Is(err, os.ErrPermission) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	name, err := slackFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := slack(name); got != int64(Slack) {
		t.Errorf("slack of the monitor: %d ns, want %d", got, int64(Slack))
	}
	if got := slack("/proc/" + strconv.Itoa(os.Getpid()) + "/timerslack_ns"); got >= int64(Slack) {
		t.Errorf("slack of the main thread: %d ns", got)
	}
	if err := Relax(); err != nil {
		t.Errorf("once more: %v", err)
	}
}
