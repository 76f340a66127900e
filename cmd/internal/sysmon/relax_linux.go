package sysmon

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Slack is by how much the monitor's sleeps may be longer. A goroutine that is ready
// while all processors are in system calls waits that long for one at most.
const Slack = 250 * time.Microsecond

var errNoMonitor = errors.New("the process has one thread")

// Relax sets the slack, unless it is larger already. os.ErrPermission says that the
// process may not.
func Relax() error {
	name, err := slackFile()
	if err != nil {
		return fmt.Errorf("finding the monitor thread: %w", err)
	}
	have, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("reading the monitor's timer slack: %w", err)
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(string(have)), 10, 64); err != nil || n >= int64(Slack) {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("setting the monitor's timer slack: %w", err)
	}
	defer f.Close()
	if _, err := f.WriteString(strconv.FormatInt(int64(Slack), 10)); err != nil {
		return fmt.Errorf("setting the monitor's timer slack: %w", err)
	}
	return nil
}

// slackFile has the timer slack of the monitor thread, which is the first that the
// runtime starts and never ends; threads are listed in the order of their starts. Of
// another thread the slack would do no harm.
func slackFile() (string, error) {
	d, err := os.Open("/proc/self/task")
	if err != nil {
		return "", err
	}
	defer d.Close()
	threads, err := d.Readdirnames(-1)
	if err != nil {
		return "", err
	}
	if len(threads) < 2 {
		return "", errNoMonitor
	}
	return "/proc/" + threads[1] + "/timerslack_ns", nil
}
