package kafkaproto_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// TestProduceVersions compares the codec with kmsg's in every version.
func TestProduceVersions(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "a", 1, nil)
	c := r.dial(t)
	next := int64(0)
	for version := int16(0); version <= 13; version++ {
		got := ask[*kmsg.ProduceResponse](t, c, produceRequest(topic, -1, batch(t, record.None, nil, 1000)), version).Topics[0]
		p := got.Partitions[0]
		if version < 13 && got.Topic != "a" || version >= 13 && got.TopicID != [16]byte(topic.ID) {
			t.Errorf("version %d: topic %q %v", version, got.Topic, got.TopicID)
		}
		if version < 3 {
			if p.ErrorCode != 43 {
				t.Errorf("version %d: code %d, want 43", version, p.ErrorCode)
			}
			continue
		}
		if p.ErrorCode != 0 || p.BaseOffset != next {
			t.Errorf("version %d: code %d, offset %d, want 0, %d", version, p.ErrorCode, p.BaseOffset, next)
		}
		next++
	}
}

func TestProduceRefusals(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "a", 1, map[string]string{"max.message.bytes": "2000"})
	compact := r.topic(t, "compact", 1, map[string]string{"cleanup.policy": "compact"})
	own := r.topic(t, "__own", 1, nil)
	good := batch(t, record.None, nil, 1000)
	flipped := append([]byte(nil), good...)
	flipped[len(flipped)-2] ^= 1
	old := append([]byte(nil), good...)
	old[16] = 1
	control, err := record.EndTransaction(record.ControlCommit, 5, 0, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	large := batch(t, record.None, bytes.Repeat([]byte("k"), 3000), 1000)
	zstd := batch(t, record.Zstd, bytes.Repeat([]byte("k"), 900), 1000, 1000)
	txn := produceRequest(topic, -1, sequenced(t, 5, 0, 0, true, 1))
	name := "tx"
	txn.TransactionID = &name
	c := r.dial(t)
	for _, x := range []struct {
		what    string
		req     *kmsg.ProduceRequest
		version int16
		want    int16
	}{
		{"flipped bit", produceRequest(topic, -1, flipped), 9, 2},
		{"cut short", produceRequest(topic, -1, good[:len(good)-3]), 9, 2},
		{"no records", produceRequest(topic, -1, nil), 9, 2},
		{"format 1", produceRequest(topic, -1, old), 9, 87},
		{"two batches", produceRequest(topic, -1, append(append([]byte(nil), good...), good...)), 9, 87},
		{"too large", produceRequest(topic, -1, large), 9, 10},
		{"control batch", produceRequest(topic, -1, control), 9, 87},
		{"transactional id of nobody", txn, 9, 49},
		{"transactional id of nobody, joining", txn, 12, 49},
		{"transactional without an id", produceRequest(topic, -1, sequenced(t, 5, 0, 0, true, 1)), 9, 53},
		{"acks 2", produceRequest(topic, 2, good), 9, 21},
		{"zstd too early", produceRequest(topic, -1, zstd), 6, 76},
		{"no key in a compacted topic", produceRequest(compact, -1, good), 9, 87},
		{"the store's own topic", produceRequest(own, -1, good), 9, 17},
		{"unknown topic", produceRequest(topiclog.Topic{Name: "none"}, -1, good), 9, 3},
		{"unknown id", produceRequest(topiclog.Topic{ID: topiclog.UUID{1}}, -1, good), 13, 100},
		{"good", produceRequest(topic, 1, good), 9, 0},
		{"zstd", produceRequest(topic, 1, zstd), 7, 0},
		{"key in a compacted topic", produceRequest(compact, 1, batch(t, record.None, []byte("k"), 1)), 9, 0},
	} {
		p := ask[*kmsg.ProduceResponse](t, c, x.req, x.version).Topics[0].Partitions[0]
		if p.ErrorCode != x.want {
			t.Errorf("%s: code %d, want %d", x.what, p.ErrorCode, x.want)
		}
		if x.want != 0 && x.version >= 8 && x.want != 3 && x.want != 100 && p.ErrorMessage == nil {
			t.Errorf("%s: no message", x.what)
		}
	}
	bad := produceRequest(topic, 0, flipped)
	if _, err := c.Write(frame(bad, 9)); err != nil {
		t.Fatal(err)
	}
	closedByServer(t, c)
}

// TestProduceNamesBadRecords: of a batch that is refused, the answer names the records
// that it was refused for, counted from the first (KIP-467).
func TestProduceNamesBadRecords(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	compact := r.topic(t, "compact", 1, map[string]string{"cleanup.policy": "compact"})
	timed := r.topic(t, "timed", 1, map[string]string{"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "60000"})
	b := record.Builder{Codec: record.LZ4}
	for _, key := range [][]byte{[]byte("k"), nil, {}, nil, []byte("k")} {
		if err := b.Append(1, key, []byte("v"), nil); err != nil {
			t.Fatal(err)
		}
	}
	keyless, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UnixMilli()
	times := batch(t, record.LZ4, nil, now, now+120_000, now-120_000, now+1, now+2)
	c := r.dial(t)
	for version := int16(3); version <= 13; version++ {
		for _, x := range []struct {
			topic topiclog.Topic
			raw   []byte
			code  int16
			want  []int32
		}{{compact, keyless, 87, []int32{1, 3}}, {timed, times, 32, []int32{1, 2}}} {
			p := ask[*kmsg.ProduceResponse](t, c, produceRequest(x.topic, -1, x.raw), version).Topics[0].Partitions[0]
			var got []int32
			for _, e := range p.ErrorRecords {
				got = append(got, e.RelativeOffset)
			}
			if version < 8 {
				x.want = nil
			}
			if p.ErrorCode != x.code || !slices.Equal(got, x.want) {
				t.Errorf("version %d: code %d of records %d, want %d of %d", version, p.ErrorCode, got, x.code, x.want)
			}
		}
	}
}

// TestProduceWithoutTimes: librdkafka's batches of records without times say that the
// largest time is 0. They are taken, with what is right in its place, and are within
// bounds for timestamps, as Kafka has it.
func TestProduceWithoutTimes(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	c := r.dial(t)
	for name, config := range map[string]map[string]string{"unbounded": nil, "bounded": {"message.timestamp.before.max.ms": "60000"}} {
		for _, codec := range []record.Codec{record.None, record.LZ4} {
			topic := r.topic(t, fmt.Sprintf("%s-%d", name, codec), 1, config)
			raw := batch(t, codec, nil, record.NoTimestamp, record.NoTimestamp)
			binary.BigEndian.PutUint64(raw[35:], 0) // the largest time, and the checksum
			binary.BigEndian.PutUint32(raw[17:], record.Checksum(raw[21:]))
			if p := ask[*kmsg.ProduceResponse](t, c, produceRequest(topic, -1, raw), 9).Topics[0].Partitions[0]; p.ErrorCode != 0 {
				t.Errorf("%s, %v: code %d", name, codec, p.ErrorCode)
				continue
			}
			got := ask[*kmsg.FetchResponse](t, c, fetchRequest(topic, 0, 0, 1<<20), 11).Topics[0].Partitions[0]
			b, _, err := record.Split(got.RecordBatches)
			if err != nil || b.MaxTimestamp != record.NoTimestamp || b.Count != 2 {
				t.Errorf("%s, %v: fetched %+v, %v; want two records without times", name, codec, b.Header, err)
			}
		}
	}
}
