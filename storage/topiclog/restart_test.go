package topiclog_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// restartCase is a store whose process is killed: its topics have three
// partitions each, of which every one has rounds batches of so many records of
// 1 kB that no segment has yet.
type restartCase struct {
	name            string
	topics, rounds  int
	records         int // of 1 kB in a batch
	own             bool
	within          time.Duration // of opening it again, when the machine is idle
	cacheBytes      int64
	journalFraction float64 // of the cache that must be in the journal, or in own segments
}

// restartChild names the case and the directory in the process that is killed.
const restartChild = "MILLRACE_RESTART_CHILD"

// TestRestartAfterKill kills a process that has appended and opens its store
// again. The full sizes run, and are timed, with MILLRACE_RESTART=1.
func TestRestartAfterKill(t *testing.T) {
	cases := []restartCase{
		{name: "few", topics: 30, rounds: 4, records: 1, cacheBytes: 8 << 20},
		{name: "own segments", topics: 2, rounds: 12, records: 200, own: true, cacheBytes: 32 << 20, journalFraction: 0.2},
	}
	if os.Getenv("MILLRACE_RESTART") != "" {
		cases = []restartCase{
			{name: "1,000 topics", topics: 1000, rounds: 3, records: 1, within: 2 * time.Second, cacheBytes: 64 << 20, journalFraction: 0.1},
			// As much as the default cache holds, when no flush has come that far.
			{name: "30,000 partitions, full journal", topics: 10_000, rounds: 4, records: 1, within: 10 * time.Second, cacheBytes: 2 * 144 << 20, journalFraction: 0.45},
			{name: "own segments, as much as there may be", topics: 2, rounds: 48, records: 200, own: true, within: 2 * time.Second, cacheBytes: 128 << 20, journalFraction: 0.4},
		}
	}
	if child := os.Getenv(restartChild); child != "" {
		name, dir, _ := strings.Cut(child, "|")
		for _, c := range cases {
			if c.name == name {
				c.fill(t, dir)
			}
		}
		return
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
}

func (c *restartCase) options(dir string) topiclog.Options {
	return topiclog.Options{FS: vfs.NewOS(), Dir: dir, ReserveBytes: -1, RetentionInterval: -1, CacheBytes: c.cacheBytes}
}

// fill appends, says that it is done, and waits to be killed.
func (c *restartCase) fill(t *testing.T, dir string) {
	ctx := context.Background()
	o := c.options(dir)
	s := open(t, o)
	var specs []topiclog.TopicSpec
	for i := range c.topics {
		specs = append(specs, topiclog.TopicSpec{Name: fmt.Sprintf("topic-%05d", i), Partitions: 3})
	}
	topics, err := s.CreateTopics(ctx, specs)
	check(t, err)
	raw := kilobyteBatch(t, c.records)
	if c.own { // what one flush takes promotes all
		c.appendRounds(t, s, topics, raw, 24)
		check(t, s.Flush(ctx))
		if n := s.Status().Shards[0].Promoted + s.Status().Shards[1].Promoted; n != 3*c.topics {
			t.Fatalf("%d partitions promoted, want all", n)
		}
	}
	c.appendRounds(t, s, topics, raw, c.rounds)
	var unflushed int64
	for _, sh := range s.Status().Shards {
		unflushed += sh.CacheBytes
	}
	if want := int64(c.journalFraction * float64(c.cacheBytes)); unflushed < want {
		t.Fatalf("%d bytes are in no segment, want %d at least", unflushed, want)
	}
	fmt.Printf("ready %d\n", unflushed)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func (c *restartCase) appendRounds(t *testing.T, s *topiclog.Store, topics []topiclog.Topic, raw []byte, rounds int) {
	window := make(chan struct{}, 512)
	if c.own {
		window = make(chan struct{}, 24)
	}
	var failed atomic.Pointer[error]
	for range rounds {
		for _, tp := range topics {
			for _, p := range tp.Partitions {
				window <- struct{}{}
				s.AppendAsync(topiclog.AppendRequest{Partition: p.ID, Batches: raw, Trusted: true}, func(_ topiclog.AppendResult, err error) {
					if err != nil {
						failed.Store(&err)
					}
					<-window
				})
			}
		}
	}
	for range cap(window) {
		window <- struct{}{}
	}
	if err := failed.Load(); err != nil {
		t.Fatal(*err)
	}
}

func (c *restartCase) run(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestRestartAfterKill$", "-test.count=1")
	cmd.Env = append(os.Environ(), restartChild+"="+c.name+"|"+dir)
	stdin, err := cmd.StdinPipe()
	check(t, err)
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	unflushed := int64(-1)
	for unflushed < 0 && lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "ready %d", &unflushed); err != nil {
			t.Log(lines.Text())
		}
	}
	check(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	if unflushed < 0 {
		t.Fatal("the child did not get so far")
	}
	u, k := cpuSeconds()
	start := time.Now()
	s := open(t, c.options(dir))
	took := time.Since(start)
	u2, k2 := cpuSeconds()
	defer func() { check(t, s.Close()) }()
	rec := s.Status().Recovery
	t.Logf("%s: %d partitions, %d MB in no segment: open after %.2f s (%.2f CPU s), %d batches from the journal",
		c.name, 3*c.topics, unflushed>>20, took.Seconds(), u2+k2-u-k, rec.Batches)
	if c.within > 0 && took > 3*c.within {
		// Three times the aim: the machine may have other work.
		t.Errorf("it took %s, the aim is %s", took, c.within)
	}
	want := int64(c.rounds * c.records)
	if c.own {
		want += int64(24 * c.records)
	}
	for _, tp := range s.Topics() {
		for _, p := range tp.Partitions {
			st, err := s.State(p.ID)
			check(t, err)
			if st.HighWatermark != want {
				t.Fatalf("topic %s partition %d ends at %d, want %d", tp.Name, p.Index, st.HighWatermark, want)
			}
		}
	}
	if len(rec.Damage) > 0 {
		t.Errorf("a kill looks like damage: %v", rec.Damage)
	}
}
