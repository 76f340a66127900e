package topiclog_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// manyChild is set in the process that runs TestManyTopics under a limit.
const manyChild = "MILLRACE_MANY_TOPICS_CHILD"

// TestManyTopics creates, writes and reopens many topics of 3 partitions, with a
// cursor each, in a process that may open few files. The full size, 10,000
// topics under a limit of 20,000, runs with MILLRACE_MANY_TOPICS=10000.
func TestManyTopics(t *testing.T) {
	n, limit := 500, uint64(128)
	if v := os.Getenv("MILLRACE_MANY_TOPICS"); v != "" {
		var err error
		n, err = strconv.Atoi(v)
		check(t, err)
		limit = 20_000
	}
	if os.Getenv(manyChild) != "" {
		check(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: limit, Max: limit}))
		manyTopics(t, n)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestManyTopics$", "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), manyChild+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("limit of %d open files:\n%s", limit, out)
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestManyTopics")) {
		t.Errorf("the child: %v", err)
	}
}

func manyTopics(t *testing.T, n int) {
	ctx := context.Background()
	o := topiclog.Options{FS: vfs.NewOS(), Dir: t.TempDir(), ReserveBytes: -1, RetentionInterval: -1, MaxOpenFiles: 64}
	s := open(t, o)
	start, user, system := time.Now(), 0.0, 0.0
	step := func(what string) {
		u, k := cpuSeconds()
		t.Logf("%-34s %6.2f s, %6.2f CPU s, resident %4d MB, open files %d", what, time.Since(start).Seconds(), u+k-user-system, residentMB(t, "VmRSS"), openFiles())
		start, user, system = time.Now(), u, k
	}
	const creators = 64
	var wg sync.WaitGroup
	for c := range creators {
		wg.Go(func() {
			for i := c; i < n; i += creators {
				if _, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: fmt.Sprintf("topic-%05d", i), Partitions: 3}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	step(fmt.Sprintf("created %d topics x 3", n))
	topics := s.Topics()
	if len(topics) != n {
		t.Fatalf("%d topics, want %d", len(topics), n)
	}
	raw := kilobyteBatch(t, 1)
	writeAll(t, s, topics, raw)
	step(fmt.Sprintf("wrote %d records of 1 kB", 3*n))
	check(t, s.Flush(ctx))
	step("flushed to segments")
	var cursors []topiclog.Cursor
	for _, tp := range topics {
		for _, p := range tp.Partitions {
			cursors = append(cursors, topiclog.Cursor{Partition: p.ID, Offset: 1})
		}
	}
	check(t, s.CommitCursors(ctx, "group", cursors))
	step(fmt.Sprintf("committed %d cursors", len(cursors)))
	// Segments of many rounds, read back by all.
	for range 12 {
		writeAll(t, s, topics, raw)
		check(t, s.Flush(ctx))
	}
	step("12 rounds more, each flushed")
	rep, err := s.RunRetention(ctx)
	check(t, err)
	step(fmt.Sprintf("retention, merged %d segments", rep.Merged))
	check(t, s.Close())
	step("closed")
	topics, cursors, s = nil, nil, nil
	before := heapBytes()
	start = time.Now()
	s = open(t, o)
	step("opened again")
	per := (heapBytes() - before) / float64(3*n)
	t.Logf("%.0f bytes of heap per idle partition, peak resident %d MB", per, residentMB(t, "VmHWM"))
	if per > 3<<10 {
		t.Errorf("%.0f bytes per idle partition, want at most 3 KiB", per)
	}
	if got := len(s.Topics()); got != n {
		t.Errorf("%d topics after reopening, want %d", got, n)
	}
	if got := len(s.Cursors("group")); got != 3*n {
		t.Errorf("%d cursors after reopening, want %d", got, 3*n)
	}
	start = time.Now()
	for _, tp := range s.Topics() {
		for _, p := range tp.Partitions {
			l, err := s.Fetch(ctx, topiclog.FetchRequest{Partition: p.ID})
			check(t, err)
			if l.NextOffset < 1 || l.HighWatermark != 13 {
				t.Fatalf("topic %s partition %d: read %d bytes up to %d of %d", tp.Name, p.Index, l.Bytes, l.NextOffset, l.HighWatermark)
			}
			l.Release()
		}
	}
	step("read from every partition")
	check(t, s.Close())
}

// writeAll appends one batch to every partition and waits for all.
func writeAll(t *testing.T, s *topiclog.Store, topics []topiclog.Topic, raw []byte) {
	t.Helper()
	errs := make(chan error, 3*len(topics))
	for _, tp := range topics {
		for _, p := range tp.Partitions {
			s.AppendAsync(topiclog.AppendRequest{Partition: p.ID, Batches: raw}, func(_ topiclog.AppendResult, err error) { errs <- err })
		}
	}
	for range 3 * len(topics) {
		check(t, <-errs)
	}
}

// residentMB is a value of /proc/self/status, -1 where there is none.
func residentMB(t *testing.T, key string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			check(t, err)
			return kb >> 10
		}
	}
	return -1
}

func openFiles() int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(names)
}
