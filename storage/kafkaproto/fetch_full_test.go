package kafkaproto_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// TestFullAnswerReadsNoMore: when a Fetch answer is full, the partitions that have no
// place in it are not read from the disk for nothing; their bounds are in it all the
// same, and it does not wait.
func TestFullAnswerReadsNoMore(t *testing.T) {
	const partitions = 20
	var log strings.Builder
	fsys := vfs.NewTrace(vfs.NewMem(), &log, vfs.OpRead)
	store, err := topiclog.Open(topiclog.Options{FS: fsys, Dir: "data", Shards: 1, ReserveBytes: -1, RetentionInterval: -1, ReadAheadBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	r := serveStore(t, store, kafkaproto.Options{})
	topic := r.topic(t, "a", partitions, nil)
	c := r.dial(t)
	one := batch(t, record.None, bytes.Repeat([]byte("k"), 1000), 1)
	produce := produceRequest(topic, -1, one)
	for i := 1; i < partitions; i++ {
		part := produce.Topics[0].Partitions[0]
		part.Partition = int32(i)
		produce.Topics[0].Partitions = append(produce.Topics[0].Partitions, part)
	}
	ask[*kmsg.ProduceResponse](t, c, produce, 9)
	if err := store.Flush(ctxOf(t)); err != nil {
		t.Fatal(err)
	}
	fetch := func(maxBytes int32, minBytes int32) (got *kmsg.FetchResponse, reads int) {
		before := len(log.String())
		req := fetchRequest(topic, 0, time.Hour, maxBytes)
		req.MinBytes = minBytes
		for i := range req.Topics[0].Partitions {
			req.Topics[0].Partitions[i].PartitionMaxBytes = 1 << 20
		}
		got = ask[*kmsg.FetchResponse](t, c, req, 11)
		for _, line := range strings.Split(log.String()[before:], "\n") {
			if strings.HasPrefix(line, "read-at data/segments/") {
				reads++
			}
		}
		return got, reads
	}
	filled := func(got *kmsg.FetchResponse) (n int) {
		for i := range got.Topics[0].Partitions {
			p := &got.Topics[0].Partitions[i]
			if p.ErrorCode != 0 || p.HighWatermark != 1 || p.LogStartOffset != 0 {
				t.Errorf("partition %d: code %d, from %d to %d", p.Partition, p.ErrorCode, p.LogStartOffset, p.HighWatermark)
			}
			if len(p.RecordBatches) > 0 {
				n++
			}
		}
		return n
	}
	all, reads := fetch(1<<20, 1) // also brings the index into memory
	if n := filled(all); n != partitions || reads < partitions {
		t.Fatalf("%d partitions with records in %d reads", n, reads)
	}
	if got, _ := fetch(0, 1); filled(got) != 1 {
		t.Errorf("no room at all: %d partitions with records, want the first", filled(got))
	}
	size := int32(len(one))
	for _, x := range []struct {
		what     string
		maxBytes int32
		reads    int
	}{
		{"two fit and there is no room", 2 * size, 2},
		{"two fit and some room is left", 2*size + 10, 3}, // the third is seen not to fit
	} {
		got, reads := fetch(x.maxBytes, 1<<20)
		if n := filled(got); n != 2 || reads != x.reads {
			t.Errorf("%s: %d partitions with records, %d reads, want %d", x.what, n, reads, x.reads)
		}
	}
}
