package services

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// UsageOf returns the processor time that a process and all its threads have taken,
// in ticks of 10 ms, and its resident bytes, from /proc.
func UsageOf(pid int) (cpu time.Duration, rssBytes int64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("measuring process %d: %w", pid, err)
	}
	// The name, in parentheses, may hold spaces; what follows it may not. See proc(5):
	// fields 14, 15 are clock ticks of 10 ms, 24 is pages.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const utime, stime, rss = 14 - 3, 15 - 3, 24 - 3
	if len(fields) <= rss {
		return 0, 0, fmt.Errorf("measuring process %d: /proc has %d fields", pid, len(fields))
	}
	var n [3]int64
	for i, f := range []int{utime, stime, rss} {
		if n[i], err = strconv.ParseInt(fields[f], 10, 64); err != nil {
			return 0, 0, fmt.Errorf("measuring process %d: %w", pid, err)
		}
	}
	return time.Duration(n[0]+n[1]) * 10 * time.Millisecond, n[2] * int64(os.Getpagesize()), nil
}

// LoadAverage is the machine's load of the last minute, from /proc; "" where it is not
// told.
func LoadAverage() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(load), " ")
	return first
}

// PeakOf returns the most memory that a process has had, in bytes, from /proc.
func PeakOf(pid int) (rssBytes int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("measuring process %d: %w", pid, err)
	}
	_, rest, ok := strings.Cut(string(b), "VmHWM:")
	if !ok {
		return 0, fmt.Errorf("measuring process %d: no VmHWM in its status", pid)
	}
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("measuring process %d: %w", pid, err)
	}
	return kb << 10, nil
}
