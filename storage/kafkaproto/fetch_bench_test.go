package kafkaproto_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// BenchmarkFetchOldRecords reads a topic of twelve partitions from its start over a
// loopback connection, as a Java consumer does once it is under way: a megabyte of
// one partition, then of the next. The client only looks at the batches' headers; its
// processor time is in the figure. The records were written to segments before.
func BenchmarkFetchOldRecords(b *testing.B) {
	for _, batchBytes := range []int{16 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("batch=%dKiB", batchBytes>>10), func(b *testing.B) {
			const partitions, total = 12, 384 << 20
			ctx := context.Background()
			store, err := topiclog.Open(topiclog.Options{FS: vfs.NewOS(), Dir: b.TempDir(), ReserveBytes: -1, RetentionInterval: -1})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			r := serveStore(b, store, kafkaproto.Options{})
			topic := r.topic(b, "old", partitions, nil)
			size := fillTopic(b, store, topic, batchBytes, total)
			if err := store.Flush(ctx); err != nil {
				b.Fatal(err)
			}
			c := r.dial(b)
			c.SetDeadline(time.Time{})
			f := fetcher{c: c, topic: topic}
			cpu := cpuTime(b)
			b.SetBytes(size)
			b.ResetTimer()
			for range b.N {
				if got := f.readAll(b); got != size {
					b.Fatalf("%d bytes of %d", got, size)
				}
			}
			b.StopTimer()
			read := float64(size) * float64(b.N)
			b.ReportMetric((cpuTime(b)-cpu).Seconds()/read*1e9, "cpu-s/GB")
			b.ReportMetric(read/float64(f.answers)/1024, "KiB/answer")
		})
	}
}

// fillTopic appends batches of records of 1 kB, several at once, to all partitions in
// turn and returns their size.
func fillTopic(b *testing.B, store *topiclog.Store, topic topiclog.Topic, batchBytes, total int) int64 {
	var builder record.Builder
	for range batchBytes / 1010 {
		if err := builder.Append(1700000000000, nil, make([]byte, 1000), nil); err != nil {
			b.Fatal(err)
		}
	}
	raw, err := builder.Build()
	if err != nil {
		b.Fatal(err)
	}
	const underWay = 64
	places, failed := make(chan struct{}, underWay), make(chan error, 1)
	size := int64(0)
	for i := 0; size < int64(total); i++ {
		places <- struct{}{}
		store.AppendAsync(topiclog.AppendRequest{Partition: topic.Partitions[i%len(topic.Partitions)].ID, Batches: raw, Trusted: true},
			func(_ topiclog.AppendResult, err error) {
				if err != nil {
					select {
					case failed <- err:
					default:
					}
				}
				<-places
			})
		size += int64(len(raw))
	}
	for range underWay {
		places <- struct{}{}
	}
	select {
	case err := <-failed:
		b.Fatal(err)
	default:
	}
	return size
}

// fetcher reads a topic's partitions in turn.
type fetcher struct {
	c       net.Conn
	topic   topiclog.Topic
	buf     []byte
	answers int
}

// readAll reads every partition to its end and returns the bytes of batches.
func (f *fetcher) readAll(b *testing.B) int64 {
	left, size := len(f.topic.Partitions), int64(0)
	next := make([]int64, left)
	for i := 0; left > 0; i = (i + 1) % len(next) {
		if next[i] < 0 {
			continue
		}
		n, offset := f.read(b, int32(i), next[i])
		if size += int64(n); n == 0 {
			left--
			offset = -1
		}
		next[i] = offset
	}
	return size
}

// read fetches once and returns the bytes of batches and the offset behind them.
func (f *fetcher) read(b *testing.B, partition int32, offset int64) (int, int64) {
	req := fetchRequest(f.topic, offset, 0, 50<<20)
	p := &req.Topics[0].Partitions[0]
	p.Partition, p.PartitionMaxBytes = partition, 1<<20
	req.Topics[0].Partitions = req.Topics[0].Partitions[:1]
	if _, err := f.c.Write(frame(req, 11)); err != nil {
		b.Fatal(err)
	}
	var size [4]byte
	if _, err := io.ReadFull(f.c, size[:]); err != nil {
		b.Fatal(err)
	}
	n := int(binary.BigEndian.Uint32(size[:]))
	if n > len(f.buf) {
		f.buf = make([]byte, 2*n)
	}
	if _, err := io.ReadFull(f.c, f.buf[:n]); err != nil {
		b.Fatal(err)
	}
	f.answers++
	resp := kmsg.NewPtrFetchResponse()
	resp.SetVersion(11)
	if err := resp.ReadFrom(f.buf[4:n]); err != nil {
		b.Fatal(err)
	}
	got := resp.Topics[0].Partitions[0]
	if got.ErrorCode != 0 {
		b.Fatalf("partition %d at %d: code %d", partition, offset, got.ErrorCode)
	}
	for rest := got.RecordBatches; len(rest) > 0; {
		h, err := record.ParseHeader(rest)
		if err != nil {
			b.Fatal(err)
		}
		offset = h.LastOffset() + 1
		rest = rest[h.Size():]
	}
	return len(got.RecordBatches), offset
}

// cpuTime is the processor time of the process, the kernel's part in it.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
