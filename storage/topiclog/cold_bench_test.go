package topiclog_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// BenchmarkAppendBesideColdScanners appends 16 KiB durably, one after the other,
// alone and, in turns, beside four readers that read old segments from the disk as
// fast as they can. Latencies are those of all turns together.
func BenchmarkAppendBesideColdScanners(b *testing.B) {
	const cold, scanners, turn = 256 << 20, 4, 300
	ctx := context.Background()
	s := open(b, topiclog.Options{FS: vfs.NewOS(), Dir: b.TempDir(), ReserveBytes: -1, RetentionInterval: -1})
	old, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "old", Partitions: scanners})
	check(b, err)
	appendRound(b, s, old, kilobyteBatch(b, 64), cold)
	hot, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "hot", Partitions: 1})
	check(b, err)
	raw := kilobyteBatch(b, 16)
	measure := func(into []time.Duration) []time.Duration {
		for range turn {
			start := time.Now()
			_, err := s.Append(ctx, topiclog.AppendRequest{Partition: hot.Partitions[0].ID, Batches: raw, Trusted: true})
			check(b, err)
			into = append(into, time.Since(start))
		}
		return into
	}
	var alone, beside []time.Duration
	var read atomic.Int64
	var scanning time.Duration
	b.ResetTimer()
	for range b.N {
		alone = measure(alone)
		ctx, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		for _, p := range old.Partitions {
			wg.Go(func() {
				for at := int64(0); ctx.Err() == nil; {
					l, err := s.Fetch(ctx, topiclog.FetchRequest{Partition: p.ID, Offset: at, MaxBytes: 1 << 20})
					if err != nil {
						return
					}
					read.Add(int64(l.Bytes))
					if at = l.NextOffset; at >= l.HighWatermark {
						at = 0
					}
					l.Release()
				}
			})
		}
		start := time.Now()
		beside = measure(beside)
		scanning += time.Since(start)
		stop()
		wg.Wait()
	}
	b.StopTimer()
	report := func(name string, d []time.Duration) float64 {
		slices.Sort(d)
		at := d[len(d)*99/100].Seconds() * 1e3
		b.ReportMetric(d[len(d)/2].Seconds()*1e3, name+"-p50-ms")
		b.ReportMetric(at, name+"-p99-ms")
		return at
	}
	a, c := report("alone", alone), report("beside", beside)
	b.ReportMetric(c/a, "p99-ratio")
	b.ReportMetric(float64(read.Load())/1e6/scanning.Seconds(), "scan-MB/s")
	check(b, s.Close())
}
