package topiclog_test

import (
	"context"
	"fmt"
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

// BenchmarkDurableAppend appends 1 kB records from several producers to an fsync
// topic, and writes as many bytes in sequence into a zero-filled file with an
// fdatasync for each group's worth: what the disk alone can do. Both take turns
// within one run. The log's time includes the flush into segments.
func BenchmarkDurableAppend(b *testing.B) {
	for _, batchBytes := range []int{16 << 10, 64 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("batch=%dKiB", batchBytes>>10), func(b *testing.B) {
			const round = 128 << 20
			ctx := context.Background()
			s := open(b, topiclog.Options{FS: vfs.NewOS(), Dir: b.TempDir(), ReserveBytes: -1, RetentionInterval: -1})
			tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 8})
			check(b, err)
			raw := kilobyteBatch(b, batchBytes/1010)
			disk := newDisk(b)
			// Once without counting: the journal takes its size.
			appendRound(b, s, tp, raw, round)
			var logTime, diskTime time.Duration
			var user, system float64
			b.SetBytes(round)
			b.ResetTimer()
			for range b.N {
				u, k := cpuSeconds()
				start := time.Now()
				appendRound(b, s, tp, raw, round)
				logTime += time.Since(start)
				u2, k2 := cpuSeconds()
				user, system = user+u2-u, system+k2-k
				b.StopTimer()
				diskTime += disk.write(b, round)
				// Old rounds go, so that disks of any size can run this.
				for _, p := range tp.Partitions {
					_, err := s.DeleteRecords(ctx, p.ID, -1)
					check(b, err)
				}
				b.StartTimer()
			}
			b.StopTimer()
			mb := float64(round) * float64(b.N) / 1e6
			b.ReportMetric(mb/logTime.Seconds(), "log-MB/s")
			b.ReportMetric(mb/diskTime.Seconds(), "disk-MB/s")
			b.ReportMetric(diskTime.Seconds()/logTime.Seconds(), "of-disk")
			b.ReportMetric(user/mb*1e3, "user-s/GB")
			b.ReportMetric(system/mb*1e3, "system-s/GB")
			check(b, s.Close())
		})
	}
}

// appendRound appends size bytes in all, four batches under way per partition,
// and flushes.
func appendRound(b *testing.B, s *topiclog.Store, tp topiclog.Topic, raw []byte, size int) {
	n := size / len(raw) / len(tp.Partitions)
	var wg sync.WaitGroup
	for _, p := range tp.Partitions {
		wg.Go(func() {
			window := make(chan struct{}, 4)
			for range n {
				window <- struct{}{}
				s.AppendAsync(topiclog.AppendRequest{Partition: p.ID, Batches: raw, Trusted: true}, func(_ topiclog.AppendResult, err error) {
					if err != nil {
						b.Error(err)
					}
					<-window
				})
			}
			for range cap(window) {
				window <- struct{}{}
			}
		})
	}
	wg.Wait()
	check(b, s.Flush(context.Background()))
}

// disk is a zero-filled file that is written over and over.
type disk struct {
	f   vfs.File
	buf []byte
}

const diskFileBytes = 64 << 20

func newDisk(b *testing.B) *disk {
	f, err := vfs.NewUncached(vfs.NewOS()).Create(b.TempDir() + "/f")
	check(b, err)
	b.Cleanup(func() { check(b, f.Close()) })
	check(b, f.Preallocate(0, diskFileBytes))
	check(b, f.Sync())
	d := &disk{f: f, buf: make([]byte, 512<<10)}
	for i := range d.buf {
		d.buf[i] = byte(i * 31)
	}
	return d
}

func (d *disk) write(b *testing.B, size int) time.Duration {
	start := time.Now()
	for at := 0; at < size; at += len(d.buf) {
		_, err := d.f.WriteAt(d.buf, int64(at%diskFileBytes))
		check(b, err)
		check(b, d.f.SyncData())
	}
	return time.Since(start)
}
