package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB) *client.Client {
	t.Helper()
	s, err := topiclog.Open(topiclog.Options{FS: vfs.NewMem(), Dir: "data", CacheBytes: 1 << 20, JournalFileBytes: 256 << 10,
		ReserveBytes: -1, RetentionInterval: -1, PoisonReleased: true})
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	return client.New(s)
}

func create(t testing.TB, c *client.Client, name string, partitions int, config map[string]string) topiclog.Topic {
	t.Helper()
	tp, err := c.Store().CreateTopic(context.Background(), topiclog.TopicSpec{Name: name, Partitions: partitions, Config: config})
	check(t, err)
	return tp
}

// The hashes are the murmur2 vectors of Kafka's UtilsTest; its DefaultPartitioner
// takes the positive part modulo the number of partitions.
func TestProducerPartitionsLikeKafka(t *testing.T) {
	ctx := context.Background()
	c := open(t)
	create(t, c, "t", 10, nil)
	p, err := c.NewProducer(client.ProducerOptions{})
	check(t, err)
	for key, hash := range map[string]int32{"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536} {
		want := (hash & 0x7fffffff) % 10
		check(t, p.Produce(ctx, client.ProducerRecord{Topic: "t", Partition: client.AnyPartition, Key: []byte(key)}, func(r client.Result, err error) {
			if err != nil || r.Partition != want {
				t.Errorf("key %s went to partition %d (error %v), want %d", key, r.Partition, err, want)
			}
		}))
	}
	check(t, p.Close(ctx))
}

func TestProduceFetch(t *testing.T) {
	ctx := context.Background()
	for _, codec := range []record.Codec{record.None, record.Zstd} {
		t.Run(codec.String(), func(t *testing.T) {
			c := open(t)
			tp := create(t, c, "t", 4, nil)
			p, err := c.NewProducer(client.ProducerOptions{BatchBytes: 1000, Compression: codec})
			check(t, err)
			const n = 5000
			var mu sync.Mutex
			acked := map[string]bool{}
			for i := range n {
				v := fmt.Sprintf("value %d", i)
				check(t, p.Produce(ctx, client.ProducerRecord{Topic: "t", Partition: int32(i % 4), Value: []byte(v)}, func(r client.Result, err error) {
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Errorf("record %d: %v", i, err)
					}
					acked[fmt.Sprintf("%d/%d=%s", r.Partition, r.Offset, v)] = true
				}))
			}
			check(t, p.Close(ctx))

			f := c.NewFetcher(client.FetcherOptions{MaxBytes: 3000, CreditBytes: 6000})
			defer f.Close()
			index := map[topiclog.PartitionID]int32{}
			for _, part := range tp.Partitions {
				index[part.ID] = part.Index
				check(t, f.Add(part.ID, 0))
			}
			var d record.Decoder
			next := map[int32]int64{}
			for got := 0; got < n; {
				x, err := f.Next(ctx)
				check(t, err)
				part := index[x.Partition]
				check(t, client.EachRecord(x.Lease, &d, next[part], func(r *record.Record) error {
					if r.Offset != next[part] {
						t.Errorf("partition %d: offset %d, want %d", part, r.Offset, next[part])
					}
					next[part] = r.Offset + 1
					if !acked[fmt.Sprintf("%d/%d=%s", part, r.Offset, r.Value)] {
						t.Errorf("partition %d offset %d holds %q, which was not acknowledged there", part, r.Offset, r.Value)
					}
					got++
					return nil
				}))
				x.Release()
			}
			if x, err := f.Poll(); x != nil || err != nil {
				t.Errorf("at the end: %v, %v", x, err)
			}
		})
	}
}

// A burst larger than the largest batch is split, and order holds across the
// linger goroutine and the producing one.
func TestProducerKeepsOrder(t *testing.T) {
	ctx := context.Background()
	c := open(t)
	tp := create(t, c, "t", 1, nil)
	p, err := c.NewProducer(client.ProducerOptions{BatchBytes: 200, Linger: time.Microsecond, MaxBufferedBytes: 4000})
	check(t, err)
	const n = 3000
	last := int64(-1)
	for i := range n {
		check(t, p.Produce(ctx, client.ProducerRecord{Topic: "t", Value: fmt.Appendf(nil, "%d", i)}, func(r client.Result, err error) {
			if err != nil || r.Offset != last+1 || r.Offset != int64(i) {
				t.Errorf("record %d: offset %d after %d, error %v", i, r.Offset, last, err)
			}
			last = r.Offset
		}))
	}
	check(t, p.Close(ctx))
	if last != n-1 {
		t.Errorf("last acknowledged offset %d, want %d", last, n-1)
	}
	st, err := c.Store().State(tp.Partitions[0].ID)
	check(t, err)
	if st.HighWatermark != n {
		t.Errorf("high watermark %d, want %d", st.HighWatermark, n)
	}
}

func TestProducerErrors(t *testing.T) {
	ctx := context.Background()
	c := open(t)
	create(t, c, "t", 2, map[string]string{"max.message.bytes": "500"})
	p, err := c.NewProducer(client.ProducerOptions{})
	check(t, err)
	if err := p.Produce(ctx, client.ProducerRecord{Topic: "none"}, nil); !errors.Is(err, topiclog.ErrTopicNotFound) {
		t.Errorf("unknown topic: %v", err)
	}
	if err := p.Produce(ctx, client.ProducerRecord{Topic: "t", Partition: 2}, nil); !errors.Is(err, topiclog.ErrPartitionNotFound) {
		t.Errorf("unknown partition: %v", err)
	}
	var ackErr error
	check(t, p.Produce(ctx, client.ProducerRecord{Topic: "t", Value: make([]byte, 600)}, func(_ client.Result, err error) { ackErr = err }))
	if err := p.Flush(ctx); !errors.Is(err, topiclog.ErrTooLarge) || !errors.Is(ackErr, topiclog.ErrTooLarge) {
		t.Errorf("a record that is too large: flush says %v, its callback %v", err, ackErr)
	}
	// A failed batch does not fail the next flush, and new partitions are seen.
	_, err = c.Store().AddPartitions(ctx, "t", 3)
	check(t, err)
	check(t, p.Produce(ctx, client.ProducerRecord{Topic: "t", Partition: 2, Value: []byte("x")}, nil))
	check(t, p.Flush(ctx))
	check(t, p.Close(ctx))
	if err := p.Produce(ctx, client.ProducerRecord{Topic: "t"}, nil); !errors.Is(err, client.ErrClosed) {
		t.Errorf("producing after closing: %v", err)
	}
}

func TestFetcherOneLeaseAndCredit(t *testing.T) {
	ctx := context.Background()
	c := open(t)
	tp := create(t, c, "t", 2, nil)
	p, err := c.NewProducer(client.ProducerOptions{BatchBytes: 100})
	check(t, err)
	for i := range 40 {
		check(t, p.Produce(ctx, client.ProducerRecord{Topic: "t", Partition: int32(i % 2), Value: make([]byte, 100)}, nil))
	}
	check(t, p.Flush(ctx))
	defer func() { check(t, p.Close(ctx)) }()

	notified := make(chan struct{}, 100)
	f := c.NewFetcher(client.FetcherOptions{MaxBytes: 300, CreditBytes: 400, Notify: func() {
		select {
		case notified <- struct{}{}:
		default:
		}
	}})
	defer f.Close()
	a, b := tp.Partitions[0].ID, tp.Partitions[1].ID
	check(t, f.Add(a, 0))
	first, err := f.Poll()
	check(t, err)
	if first == nil {
		t.Fatal("no data")
	}
	if again, err := f.TryNext(a); again != nil || err != nil {
		t.Errorf("a second lease of one partition: %v, %v", again, err)
	}
	check(t, f.Add(b, 0))
	second, err := f.Poll()
	check(t, err)
	if second == nil || second.Partition != b {
		t.Fatalf("no lease of the other partition")
	}
	third, err := f.Poll()
	if third != nil || err != nil {
		t.Errorf("a lease without credit: %v, %v", third, err)
	}
	for len(notified) > 0 {
		<-notified
	}
	first.Release()
	second.Release()
	<-notified // there is credit again and there are records left
	total := 0
	for {
		x, err := f.Poll()
		check(t, err)
		if x == nil {
			break
		}
		total += len(x.Chunks)
		x.Release()
	}
	for _, id := range []topiclog.PartitionID{a, b} {
		if at, _ := f.Position(id); at != 20 {
			t.Errorf("partition %d ends at %d, want 20", id, at)
		}
	}
	// New records wake the session once more.
	for len(notified) > 0 {
		<-notified
	}
	check(t, p.Produce(ctx, client.ProducerRecord{Topic: "t", Partition: 1, Value: []byte("new")}, nil))
	<-notified
	x, err := f.Next(ctx)
	check(t, err)
	if x.Partition != b || x.NextOffset != 21 {
		t.Errorf("got partition %d up to %d", x.Partition, x.NextOffset)
	}
	x.Release()
}

func TestFetcherError(t *testing.T) {
	ctx := context.Background()
	c := open(t)
	tp := create(t, c, "t", 1, nil)
	f := c.NewFetcher(client.FetcherOptions{})
	defer f.Close()
	id := tp.Partitions[0].ID
	check(t, f.Add(id, 17))
	_, err := f.Poll()
	var pe *client.PartitionError
	if !errors.As(err, &pe) || pe.Partition != id || !errors.Is(err, topiclog.ErrOffsetOutOfRange) {
		t.Fatalf("reading behind the end: %v", err)
	}
	// It is left alone until Seek.
	if x, err := f.Poll(); x != nil || err != nil {
		t.Errorf("after the error: %v, %v", x, err)
	}
	check(t, f.Seek(id, 0))
	p, err := c.NewProducer(client.ProducerOptions{})
	check(t, err)
	check(t, p.Produce(ctx, client.ProducerRecord{Topic: "t", Value: []byte("x")}, nil))
	check(t, p.Close(ctx))
	x, err := f.Next(ctx)
	check(t, err)
	x.Release()
	// Deleting the topic ends a waiting reader.
	errs := make(chan error, 1)
	go func() {
		_, err := f.Next(ctx)
		errs <- err
	}()
	check(t, c.Store().DeleteTopic(ctx, "t", false))
	if err := <-errs; !errors.Is(err, topiclog.ErrPartitionNotFound) {
		t.Errorf("reading a deleted topic: %v", err)
	}
}

// A record that Produce refuses leaves nothing behind that Flush would report.
func TestRefusedRecordLeavesNothing(t *testing.T) {
	ctx := context.Background()
	s, err := topiclog.Open(topiclog.Options{FS: vfs.NewMem(), Dir: "data", ReserveBytes: -1, RetentionInterval: -1})
	check(t, err)
	c := client.New(s)
	create(t, c, "t", 1, nil)
	p, err := c.NewProducer(client.ProducerOptions{})
	check(t, err)
	bad := client.ProducerRecord{Topic: "t", Value: []byte("x"), Headers: []record.RecordHeader{{Value: []byte("no key")}}}
	for range 3 {
		if err := p.Produce(ctx, bad, nil); !errors.Is(err, record.ErrInvalid) {
			t.Errorf("a header without a key: %v", err)
		}
		check(t, p.Flush(ctx))
		check(t, p.Produce(ctx, client.ProducerRecord{Topic: "t", Value: []byte("x")}, nil))
		if err := p.Produce(ctx, bad, nil); !errors.Is(err, record.ErrInvalid) {
			t.Errorf("a header without a key: %v", err)
		}
		check(t, p.Flush(ctx))
	}
	check(t, p.Close(ctx))
	check(t, s.Close())
}

// slowDisk holds back every sync of the journal until it is opened.
type slowDisk struct{ opened chan struct{} }

// Inject implements vfs.Injector.
func (d *slowDisk) Inject(op vfs.Op) error {
	if op.Kind&vfs.OpSync != 0 && strings.Contains(op.Path, "journal") {
		<-d.opened
	}
	return nil
}

// A producer that is faster than the disk is held back at its bound, and nothing
// is lost or given up when the disk goes on.
func TestProducerWaitsForSlowDisk(t *testing.T) {
	ctx := context.Background()
	fsys := vfs.NewFault(vfs.NewMem(), nil)
	s, err := topiclog.Open(topiclog.Options{FS: fsys, Dir: "data", ReserveBytes: -1, RetentionInterval: -1})
	check(t, err)
	c := client.New(s)
	tp := create(t, c, "t", 3, nil)
	const bound = 256 << 10
	p, err := c.NewProducer(client.ProducerOptions{BatchBytes: 16 << 10, MaxBufferedBytes: bound})
	check(t, err)
	d := &slowDisk{opened: make(chan struct{})}
	fsys.SetInjector(d)
	value := bytes.Repeat([]byte("v"), 1000)
	var acked atomic.Int64
	sent := int64(0)
	for {
		// The bound is met long before the deadline; then only that ends it.
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		err := p.Produce(short, client.ProducerRecord{Topic: "t", Partition: int32(sent % 3), Value: value}, func(_ client.Result, err error) {
			if err == nil {
				acked.Add(1)
			}
		})
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		check(t, err)
		if sent++; sent*1000 > 2*bound {
			t.Fatalf("%d bytes were taken, the bound is %d", sent*1000, bound)
		}
	}
	if acked.Load() != 0 {
		t.Errorf("%d records acknowledged before a sync", acked.Load())
	}
	close(d.opened)
	check(t, p.Flush(ctx))
	if acked.Load() != sent {
		t.Errorf("%d records acknowledged of %d", acked.Load(), sent)
	}
	n := int64(0)
	for _, part := range tp.Partitions {
		st, err := s.State(part.ID)
		check(t, err)
		n += st.HighWatermark
	}
	if n != sent {
		t.Errorf("%d records in the log, %d were produced", n, sent)
	}
	check(t, p.Close(ctx))
	check(t, s.Close())
}
