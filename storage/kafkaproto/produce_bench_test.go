package kafkaproto_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// BenchmarkProduceManyPartitions sends what a client that goes round its partitions
// with records of 1 kB sends: requests of an idempotent producer with one batch for
// each of up to 3,000 partitions, two under way. The time includes the flush.
// "one" has one record in each batch; "packed" has a hundred, which is what a client
// makes of the same records when it has 30 partitions.
func BenchmarkProduceManyPartitions(b *testing.B) {
	for _, x := range []struct {
		name                string
		partitions, records int
	}{
		{"packed/30", 30, 100},
		{"one/30", 30, 1},
		{"one/3000", 3000, 1},
		{"one/30000", 30_000, 1},
	} {
		b.Run(x.name, func(b *testing.B) { benchProduce(b, x.partitions, x.records) })
	}
}

func benchProduce(b *testing.B, partitions, records int) {
	const each, atOnce, round = 3, 3000, 30_000
	store, err := topiclog.Open(topiclog.Options{FS: vfs.NewOS(), Dir: b.TempDir(), ReserveBytes: -1, RetentionInterval: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	r := serveStore(b, store, kafkaproto.Options{})
	specs := make([]topiclog.TopicSpec, partitions/each)
	for i := range specs {
		specs[i] = topiclog.TopicSpec{Name: fmt.Sprintf("many-%05d", i), Partitions: each}
	}
	topics, err := store.CreateTopics(context.Background(), specs)
	if err != nil {
		b.Fatal(err)
	}
	c := r.dial(b)
	c.SetDeadline(time.Time{})
	id := initProducer(b, c, 4)
	var reqs []*rawProduce
	for n := min(len(topics), atOnce/each); len(topics) > 0; topics = topics[n:] {
		n = min(n, len(topics))
		reqs = append(reqs, newRawProduce(b, topics[:n], each, id, records))
	}
	seq := int32(0)
	sendAll := func() { // one batch into every partition
		pending := 0
		for _, q := range reqs {
			q.send(b, c, seq)
			if pending++; pending == 2 {
				q.check(b, c)
				pending--
			}
		}
		for ; pending > 0; pending-- {
			reqs[0].check(b, c)
		}
		seq += int32(records)
	}
	// As many records in each iteration, whatever the number of partitions.
	rounds := max(round/(partitions*records), 1)
	sendAll()
	runtime.GC()
	before := cpuTime(b)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		for range rounds {
			sendAll()
		}
	}
	if err := store.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	batches := float64(b.N) * float64(rounds) * float64(partitions)
	took := float64(b.Elapsed().Nanoseconds())
	b.ReportMetric(batches*float64(records)*1000/took*1000, "MB/s")
	b.ReportMetric(took/batches, "ns/batch")
	b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/batches, "cpu-ns/batch")
	b.ReportMetric(float64(reqs[0].batchBytes), "B/batch")
	b.ReportMetric(0, "ns/op")
}

// rawProduce is an encoded request whose sequences are changed in place.
type rawProduce struct {
	frame      []byte
	at         []int // where the batches begin
	batchBytes int
	partitions int
}

func newRawProduce(t testing.TB, topics []topiclog.Topic, each int, producer int64, records int) *rawProduce {
	value := bytes.Repeat([]byte("v"), 1000)
	var bld record.Builder
	bld.SetProducer(producer, 0, 0, false)
	for range records {
		if err := bld.Append(time.Now().UnixMilli(), nil, value, nil); err != nil {
			t.Fatal(err)
		}
	}
	built, err := bld.Build()
	if err != nil {
		t.Fatal(err)
	}
	one := append([]byte(nil), built...)
	req := kmsg.NewPtrProduceRequest()
	req.Acks = -1
	for _, topic := range topics {
		rt := kmsg.NewProduceRequestTopic()
		rt.Topic, rt.TopicID = topic.Name, topic.ID
		for i := range each {
			rp := kmsg.NewProduceRequestTopicPartition()
			rp.Partition, rp.Records = int32(i), one
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
	}
	q := &rawProduce{frame: frame(req, 11), batchBytes: len(one), partitions: len(topics) * each}
	for from := 0; ; from += len(one) {
		i := bytes.Index(q.frame[from:], one[:60])
		if i < 0 {
			break
		}
		from += i
		q.at = append(q.at, from)
	}
	if len(q.at) != q.partitions {
		t.Fatalf("%d batches found in the request, want %d", len(q.at), q.partitions)
	}
	return q
}

// send writes the request with a base sequence.
func (q *rawProduce) send(t testing.TB, c net.Conn, seq int32) {
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	first := q.frame[q.at[0] : q.at[0]+q.batchBytes]
	binary.BigEndian.PutUint32(first[53:], uint32(seq))
	binary.BigEndian.PutUint32(first[17:], crc32.Checksum(first[21:], castagnoli))
	for _, at := range q.at[1:] {
		copy(q.frame[at:], first[:61])
	}
	if _, err := c.Write(q.frame); err != nil {
		t.Fatal(err)
	}
}

// check reads an answer and looks for errors.
func (q *rawProduce) check(t testing.TB, c net.Conn) {
	body := receive(t, c)
	resp := kmsg.NewPtrProduceResponse()
	resp.SetVersion(11)
	if err := resp.ReadFrom(body[5:]); err != nil {
		t.Fatal(err)
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			if p := &resp.Topics[i].Partitions[j]; p.ErrorCode != 0 {
				t.Fatalf("topic %s partition %d: code %d", resp.Topics[i].Topic, p.Partition, p.ErrorCode)
			}
		}
	}
}
