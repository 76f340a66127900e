package kafkaproto_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// The memory of requests, answers and the write cache is overwritten when it is given
// back, while large batches come in past the journal and in it, flushes go on all the
// time, and clients go away in the middle of an answer and of a request. Readers at the
// end of the log and behind get what was sent.
func TestMemoryUsedAgain(t *testing.T) {
	const partitions, records = 8, 20
	store, err := topiclog.Open(topiclog.Options{FS: vfs.NewMem(), Dir: "data", Shards: 1, CacheBytes: 4 << 20, DirectBytes: 1, ReserveBytes: -1, RetentionInterval: -1, PoisonReleased: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	r := serveStore(t, store, kafkaproto.Options{})
	topic := r.topic(t, "t", partitions, nil)
	value := func(p, n int) string {
		return fmt.Sprintf("%d.%d.%s", p, n, strings.Repeat(string(rune('a'+n%26)), 20_000+n*7919%900_000))
	}
	stop := make(chan struct{})
	var producing, others sync.WaitGroup
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := store.Flush(context.Background()); err != nil {
					t.Errorf("flushing: %v", err)
					return
				}
			}
		}
	})
	// One goes away in the middle of answers, one in the middle of requests.
	goAway := func(b []byte, read int64) {
		for {
			select {
			case <-stop:
				return
			default:
			}
			c, err := net.Dial("tcp", r.addr)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err = c.Write(b); err == nil {
				_, err = io.CopyN(io.Discard, c, read)
			}
			c.Close()
			if err != nil {
				t.Errorf("a client that goes away: %v", err)
				return
			}
		}
	}
	others.Go(func() { goAway(frame(fetchRequest(topic, 0, 0, 50<<20), 11), 30) })
	half := frame(produceRequest(topic, -1, make([]byte, 500_000)), 7)
	others.Go(func() { goAway(half[:len(half)/2], 0) })
	for p := range partitions {
		producing.Go(func() {
			// Several requests under way, each in memory of its own.
			c := r.client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxProduceRequestsInflightPerBroker(5))
			for n := range records {
				c.Produce(ctxOf(t), &kgo.Record{Topic: "t", Partition: int32(p), Value: []byte(value(p, n))}, func(_ *kgo.Record, err error) {
					if err != nil {
						t.Errorf("producing: %v", err)
					}
				})
			}
			if err := c.Flush(ctxOf(t)); err != nil {
				t.Errorf("producing: %v", err)
			}
		})
	}
	read := func(from string) {
		c := r.client(t, kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		defer c.Close()
		var next [partitions]int
		for left := partitions * records; left > 0; {
			f := c.PollFetches(ctxOf(t))
			if err := f.Err(); err != nil {
				t.Errorf("%s: reading: %v", from, err) // of a batch that is none, too
				return
			}
			f.EachRecord(func(rec *kgo.Record) {
				p := int(rec.Partition)
				if want := value(p, next[p]); string(rec.Value) != want {
					t.Errorf("%s: partition %d has at %d %.20q with %d bytes, want %.20q with %d", from, p, rec.Offset, rec.Value, len(rec.Value), want, len(want))
				}
				next[p]++
				left--
			})
		}
	}
	var reading sync.WaitGroup
	for range 2 {
		reading.Go(func() { read("beside the producers") })
	}
	producing.Wait()
	reading.Wait()
	close(stop)
	others.Wait()
	read("at the end")
	if n := store.Status().Shards[0].Promoted; n == 0 {
		t.Error("nothing went past the journal")
	}
}
