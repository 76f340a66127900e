package kafkaproto_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// initProducer asks for a producer id without a transactional id.
func initProducer(t testing.TB, c net.Conn, version int16) int64 {
	t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = 60_000, -1, -1
	resp := ask[*kmsg.InitProducerIDResponse](t, c, req, version)
	if resp.ErrorCode != 0 || resp.ProducerEpoch != 0 || resp.ProducerID < 0 {
		t.Fatalf("version %d: %+v", version, resp)
	}
	return resp.ProducerID
}

// sequenced is a batch of a producer with some records.
func sequenced(t testing.TB, id int64, epoch int16, seq int32, transactional bool, records int) []byte {
	t.Helper()
	var b record.Builder
	b.SetProducer(id, epoch, seq, transactional)
	for i := range records {
		if err := b.Append(int64(1000+i), []byte("k"), []byte{byte(seq + int32(i))}, nil); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(nil), raw...)
}

func TestInitProducerIDVersions(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	c := r.dial(t)
	seen := map[int64]bool{}
	for version := int16(0); version <= 5; version++ {
		id := initProducer(t, c, version)
		if seen[id] {
			t.Errorf("version %d: id %d was given before", version, id)
		}
		seen[id] = true
	}
}

// What each sequence is answered with, in the oldest and the newest version.
func TestIdempotentProduceCodes(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	c := r.dial(t)
	for _, version := range []int16{3, 8, 13} {
		topic := r.topic(t, "t"+string(rune('a'+version)), 1, nil)
		id := initProducer(t, c, 4)
		for i, x := range []struct {
			epoch   int16
			seq     int32
			records int
			code    int16
			base    int64
		}{
			{0, 0, 2, 0, 0},
			{0, 2, 1, 0, 2},
			{0, 0, 2, 0, 0},   // a duplicate: its first offset and no error
			{0, 4, 1, 45, -1}, // out of order sequence number
			{1, 1, 1, 45, -1},
			{1, 0, 1, 0, 3},
			{0, 3, 1, 47, -1}, // invalid producer epoch
			{1, 1, 1, 0, 4},
		} {
			p := ask[*kmsg.ProduceResponse](t, c, produceRequest(topic, -1, sequenced(t, id, x.epoch, x.seq, false, x.records)), version).Topics[0].Partitions[0]
			if p.ErrorCode != x.code || p.BaseOffset != x.base {
				t.Errorf("version %d, step %d: code %d, offset %d, want %d, %d", version, i, p.ErrorCode, p.BaseOffset, x.code, x.base)
			}
			if version >= 8 && x.code != 0 && p.ErrorMessage == nil {
				t.Errorf("version %d, step %d: no message", version, i)
			}
		}
	}
}

// flaky is a listener whose connections cut off after some writes: the request was
// taken, its answer is lost.
type flaky struct {
	net.Listener
	writes atomic.Int64
	every  int64
}

type flakyConn struct {
	net.Conn
	l *flaky
}

func (l *flaky) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &flakyConn{c, l}, nil
}

func (c *flakyConn) Write(b []byte) (int, error) {
	if n := c.l.writes.Add(1); n%c.l.every == 0 {
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// A client with its default of idempotence loses and repeats nothing although
// answers are lost, and neither when the broker crashes and starts again.
func TestIdempotentClientOverLostAnswers(t *testing.T) {
	mem := vfs.NewMem()
	o := topiclog.Options{FS: mem, Dir: "data", ReserveBytes: -1, RetentionInterval: -1}
	store, err := topiclog.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx := ctxOf(t)
	tp, err := store.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	addr := ""
	serve := func() func() {
		s, err := kafkaproto.New(kafkaproto.Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		at := addr
		if at == "" {
			at = "127.0.0.1:0"
		}
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		addr = l.Addr().String()
		done := make(chan error, 1)
		go func() { done <- s.Serve(&flaky{Listener: l, every: 7}) }()
		return func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := s.Shutdown(ctx); err != nil {
				t.Error(err)
			}
			<-done
		}
	}
	stop := serve()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("t"), kgo.ProducerBatchMaxBytes(2000), kgo.ProducerLinger(0),
		kgo.RetryBackoffFn(func(int) time.Duration { return time.Millisecond }), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	const total = 600
	acked := make(chan error, total)
	for i := range total {
		if i == total/2 {
			// A crash: what is not synced is gone, and so are the answers under way.
			stop()
			clone := mem.CrashClone(vfs.CrashOptions{})
			store.Close()
			mem, o.FS = clone, clone
			if store, err = topiclog.Open(o); err != nil {
				t.Fatal(err)
			}
			stop = serve()
		}
		value := make([]byte, 600)
		binary.BigEndian.PutUint32(value, uint32(i))
		cl.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) { acked <- err })
	}
	for range total {
		if err := <-acked; err != nil {
			t.Fatalf("producing: %v", err)
		}
	}
	stop()
	seen := map[uint32]int{}
	var d record.Decoder
	for _, part := range tp.Partitions {
		last := int64(-1)
		for from := int64(0); ; {
			l, err := store.Fetch(ctx, topiclog.FetchRequest{Partition: part.ID, Offset: from})
			if err != nil {
				t.Fatal(err)
			}
			if len(l.Chunks) == 0 {
				break
			}
			for _, chunk := range l.Chunks {
				for len(chunk) > 0 {
					var b record.Batch
					if b, chunk, err = record.Split(chunk); err != nil {
						t.Fatal(err)
					}
					if b.ProducerID < 0 {
						t.Fatal("the client was not idempotent")
					}
					it, err := d.Records(b)
					if err != nil {
						t.Fatal(err)
					}
					for r := (record.Record{}); it.Next(&r); {
						v := binary.BigEndian.Uint32(r.Value)
						seen[v]++
						if int64(v) <= last {
							t.Errorf("partition %d: value %d after %d", part.Index, v, last)
						}
						last = int64(v)
					}
				}
			}
			from = l.NextOffset
			l.Release()
		}
	}
	for i := range uint32(total) {
		if seen[i] != 1 {
			t.Errorf("value %d is there %d times", i, seen[i])
		}
	}
	store.Close()
}
