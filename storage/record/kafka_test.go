package record

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// These tests take franz-go, a client that shares no code with this package, as
// the other end: it reads what the Builder writes and writes what we read.

type entry struct {
	key, value []byte
	ts         int64
	headers    []RecordHeader
}

func randomBytes(rng *rand.Rand) []byte {
	switch rng.IntN(6) {
	case 0:
		return nil
	case 1:
		return []byte{}
	}
	return bytes.Repeat([]byte{byte('a' + rng.IntN(26))}, 1+rng.IntN(300))
}

func randomEntries(rng *rand.Rand) []entry {
	out := make([]entry, 1+rng.IntN(200))
	for i := range out {
		out[i] = entry{key: randomBytes(rng), value: randomBytes(rng), ts: 1700000000000 + rng.Int64N(100000)}
		for range rng.IntN(4) {
			out[i].headers = append(out[i].headers, RecordHeader{Key: fmt.Appendf(nil, "h%d", rng.IntN(9)), Value: randomBytes(rng)})
		}
	}
	return out
}

func TestFranzReadsWhatWeWrite(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		want := randomEntries(rng)
		b := Builder{Codec: codecs[seed%5]}
		for _, e := range want {
			if err := b.Append(e.ts, e.key, e.value, e.headers); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		Assign(raw, 5000, 3)
		rp := kmsg.NewFetchResponseTopicPartition()
		rp.RecordBatches, rp.HighWatermark = raw, 5000+int64(len(want))
		fp, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Offset: 5000, Topic: "t"}, &rp, kgo.DefaultDecompressor(), nil)
		if fp.Err != nil || next != 5000+int64(len(want)) || len(fp.Records) != len(want) {
			t.Fatalf("seed %d: %d records of %d, next %d, %v", seed, len(fp.Records), len(want), next, fp.Err)
		}
		for i, r := range fp.Records {
			w := want[i]
			if !same(r.Key, w.key) || !same(r.Value, w.value) || r.Timestamp.UnixMilli() != w.ts ||
				r.Offset != 5000+int64(i) || r.LeaderEpoch != 3 || len(r.Headers) != len(w.headers) {
				t.Fatalf("seed %d record %d: %+v, want %+v", seed, i, r, w)
			}
			for j, h := range r.Headers {
				if h.Key != string(w.headers[j].Key) || !same(h.Value, w.headers[j].Value) {
					t.Fatalf("seed %d record %d header %d: %+v", seed, i, j, h)
				}
			}
		}
	}
}

// same is equality that tells nil from empty.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func TestWeReadWhatFranzWrites(t *testing.T) {
	compressors := map[Codec]kgo.CompressionCodec{Gzip: kgo.GzipCompression(), Snappy: kgo.SnappyCompression(),
		LZ4: kgo.Lz4Compression(), Zstd: kgo.ZstdCompression()}
	var d Decoder
	defer d.Close()
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 2))
		want := randomEntries(rng)
		codec := codecs[seed%5]
		b, _, err := Split(franzBatch(t, want, codec, compressors))
		if err != nil {
			t.Fatal(seed, err)
		}
		if err := b.CheckProduced(); err != nil {
			t.Fatal(seed, err)
		}
		if err := CheckRecords(b, &d); err != nil {
			t.Fatal(seed, codec, err)
		}
		it, err := d.Records(b)
		if err != nil {
			t.Fatal(seed, err)
		}
		var r Record
		for i := 0; it.Next(&r); i++ {
			w := want[i]
			if !same(r.Key, w.key) || !same(r.Value, w.value) || r.Timestamp != w.ts || r.HeaderCount != len(w.headers) {
				t.Fatalf("seed %d record %d: %+v, want %+v", seed, i, r, w)
			}
			hs := r.Headers()
			var h RecordHeader
			for j := 0; hs.Next(&h); j++ {
				if !bytes.Equal(h.Key, w.headers[j].Key) || !same(h.Value, w.headers[j].Value) {
					t.Fatalf("seed %d record %d header %d", seed, i, j)
				}
			}
		}
		if it.Err() != nil {
			t.Fatal(seed, it.Err())
		}
	}
}

// franzBatch encodes a batch with franz-go's own types and compressors.
func franzBatch(t *testing.T, entries []entry, codec Codec, compressors map[Codec]kgo.CompressionCodec) []byte {
	t.Helper()
	rb := kmsg.RecordBatch{Magic: 2, PartitionLeaderEpoch: -1, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1,
		FirstTimestamp: entries[0].ts, LastOffsetDelta: int32(len(entries) - 1), NumRecords: int32(len(entries))}
	for i, e := range entries {
		rec := kmsg.Record{TimestampDelta64: e.ts - rb.FirstTimestamp, OffsetDelta: int32(i), Key: e.key, Value: e.value}
		for _, h := range e.headers {
			rec.Headers = append(rec.Headers, kmsg.Header{Key: string(h.Key), Value: h.Value})
		}
		rec.Length = int32(len(rec.AppendTo(nil)) - 1) // the length 0 takes one byte
		rb.Records = rec.AppendTo(rb.Records)
		rb.MaxTimestamp = max(rb.MaxTimestamp, e.ts)
	}
	if codec != None {
		c, err := kgo.DefaultCompressor(compressors[codec])
		if err != nil {
			t.Fatal(err)
		}
		out, typ := c.Compress(new(bytes.Buffer), rb.Records)
		rb.Records, rb.Attributes = bytes.Clone(out), int16(typ)
	}
	rb.Length = int32(len(rb.AppendTo(nil)) - lengthEnd)
	rb.CRC = int32(Checksum(rb.AppendTo(nil)[posAttributes:]))
	return rb.AppendTo(nil)
}

// TestPartitionerOfFranz compares PartitionOf with franz-go's Kafka partitioner.
func TestPartitionerOfFranz(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	p := kgo.StickyKeyPartitioner(nil).ForTopic("t")
	for range 500 {
		key := make([]byte, 1+rng.IntN(20))
		for i := range key {
			key[i] = byte(rng.Uint32())
		}
		n := 1 + rng.IntN(50)
		if got, want := PartitionOf(key, n), p.Partition(&kgo.Record{Key: key, Context: context.Background()}, n); got != want {
			t.Fatalf("key %x of %d partitions: %d, want %d", key, n, got, want)
		}
	}
}
