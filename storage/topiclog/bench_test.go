package topiclog_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// kilobyteBatch is a batch of n records of 1 kB.
func kilobyteBatch(t testing.TB, n int) []byte {
	t.Helper()
	var b record.Builder
	value := make([]byte, 1000)
	for i := range value {
		value[i] = byte('a' + i*7%26)
	}
	for range n {
		check(t, b.Append(1700000000000, nil, value, nil))
	}
	raw, err := b.Build()
	check(t, err)
	return append([]byte(nil), raw...)
}

// cpuSeconds is what the process has used in itself and in the kernel.
func cpuSeconds() (user, system float64) {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return 0, 0
	}
	return float64(ru.Utime.Sec) + float64(ru.Utime.Usec)/1e6, float64(ru.Stime.Sec) + float64(ru.Stime.Usec)/1e6
}

// BenchmarkAppend appends batches of 64 records of 1 kB to several partitions of
// an fsync topic, and reports MB/s and CPU seconds per GB.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			ctx := context.Background()
			s := open(b, topiclog.Options{FS: vfs.NewOS(), Dir: b.TempDir(), ReserveBytes: -1, RetentionInterval: -1})
			tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: writers})
			check(b, err)
			raw := kilobyteBatch(b, 64)
			b.SetBytes(int64(len(raw)))
			b.ResetTimer()
			user, system := cpuSeconds()
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					for i := w; i < b.N; i += writers {
						if _, err := s.Append(ctx, topiclog.AppendRequest{Partition: tp.Partitions[w].ID, Batches: raw, Trusted: true}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			u, k := cpuSeconds()
			gb := float64(len(raw)) * float64(b.N) / 1e9
			b.ReportMetric((u-user)/gb, "user-s/GB")
			b.ReportMetric((k-system)/gb, "system-s/GB")
			b.StopTimer()
			check(b, s.Close())
		})
	}
}

// BenchmarkDisk is the bound: sequential writes of one group's size into a
// zero-filled file that is written over and over, each with an fdatasync.
func BenchmarkDisk(b *testing.B) {
	for _, size := range []int{64 << 10, 512 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			f, err := vfs.NewOS().Create(b.TempDir() + "/f")
			check(b, err)
			const file = 64 << 20
			check(b, f.Preallocate(0, file))
			check(b, f.Sync())
			buf := make([]byte, size)
			for i := range buf {
				buf[i] = byte(i * 31)
			}
			b.SetBytes(int64(size))
			b.ResetTimer()
			for i := range b.N {
				_, err := f.WriteAt(buf, int64(i*size%file))
				check(b, err)
				check(b, f.SyncData())
			}
			b.StopTimer()
			check(b, f.Close())
		})
	}
}

// TestManyTopics creates, writes and reopens many topics. The full size, 10,000
// topics of 3 partitions, runs with MILLRACE_MANY_TOPICS=10000.
func TestManyTopics(t *testing.T) {
	n := 500
	if v := os.Getenv("MILLRACE_MANY_TOPICS"); v != "" {
		_, err := fmt.Sscan(v, &n)
		check(t, err)
	}
	ctx := context.Background()
	o := topiclog.Options{FS: vfs.NewOS(), Dir: t.TempDir(), ReserveBytes: -1, RetentionInterval: -1}
	s := open(t, o)
	start := time.Now()
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
	created := time.Since(start)
	topics := s.Topics()
	if len(topics) != n {
		t.Fatalf("%d topics, want %d", len(topics), n)
	}
	idle := heapBytes()
	start = time.Now()
	raw := kilobyteBatch(t, 1)
	errs := make(chan error, 3*n)
	for _, tp := range topics {
		for _, p := range tp.Partitions {
			s.AppendAsync(topiclog.AppendRequest{Partition: p.ID, Batches: raw}, func(_ topiclog.AppendResult, err error) { errs <- err })
		}
	}
	for range 3 * n {
		check(t, <-errs)
	}
	written := time.Since(start)
	start = time.Now()
	check(t, s.Flush(ctx))
	flushed := time.Since(start)
	start = time.Now()
	check(t, s.Close())
	closed := time.Since(start)
	topics, s = nil, nil
	before := heapBytes()
	start = time.Now()
	s = open(t, o)
	reopened := time.Since(start)
	per := (heapBytes() - before) / float64(3*n)
	t.Logf("%d topics x 3: created %v, written %v, flushed %v, closed %v, reopened %v, %.0f bytes per partition, heap with idle topics %.1f MB, open files %d",
		n, created, written, flushed, closed, reopened, per, idle/1e6, openFiles())
	if got := len(s.Topics()); got != n {
		t.Errorf("%d topics after reopening, want %d", got, n)
	}
	for _, tp := range []int{0, n / 2, n - 1} {
		d, err := s.Topic(fmt.Sprintf("topic-%05d", tp))
		check(t, err)
		for _, p := range d.Partitions {
			l, err := s.Fetch(ctx, topiclog.FetchRequest{Partition: p.ID})
			check(t, err)
			if l.NextOffset != 1 || l.Bytes != len(raw) {
				t.Errorf("topic %s partition %d: read %d bytes up to %d", d.Name, p.Index, l.Bytes, l.NextOffset)
			}
			l.Release()
		}
	}
	if per > 3<<10 {
		t.Errorf("%.0f bytes per idle partition, want at most 3 KiB", per)
	}
	check(t, s.Close())
}

func openFiles() int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(names)
}
