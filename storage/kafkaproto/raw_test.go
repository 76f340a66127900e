package kafkaproto_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// batch builds a batch with records at the given times.
func batch(t testing.TB, codec record.Codec, key []byte, times ...int64) []byte {
	t.Helper()
	b := record.Builder{Codec: codec}
	for _, ts := range times {
		if err := b.Append(ts, key, []byte("value"), nil); err != nil {
			t.Fatal(err)
		}
	}
	out, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(nil), out...)
}

func produceRequest(topic topiclog.Topic, acks int16, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks = acks
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic, rt.TopicID = topic.Name, topic.ID
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Records = records
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

func fetchRequest(topic topiclog.Topic, offset int64, wait time.Duration, maxBytes int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(wait.Milliseconds()), 1, maxBytes
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID = topic.Name, topic.ID
	for i := range topic.Partitions {
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = int32(i), offset, maxBytes
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)
	return req
}

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

// TestFetchVersions compares the codec with kmsg's in every version, and that
// the bytes are the producer's, but for offset and epoch.
func TestFetchVersions(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "a", 2, nil)
	c := r.dial(t)
	sent := batch(t, record.Gzip, bytes.Repeat([]byte("k"), 500), 1000, 2000)
	ask[*kmsg.ProduceResponse](t, c, produceRequest(topic, -1, sent), 9)
	for version := int16(4); version <= 18; version++ {
		req := fetchRequest(topic, 0, 0, 1<<20)
		req.Rack = "r"
		req.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: "f", TopicID: [16]byte{1}, Partitions: []int32{1, 2}}}
		got := ask[*kmsg.FetchResponse](t, c, req, version)
		if got.ErrorCode != 0 || got.SessionID != 0 || len(got.Topics) != 1 || len(got.Topics[0].Partitions) != 2 {
			t.Fatalf("version %d: %+v", version, got)
		}
		p := got.Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.HighWatermark != 2 || p.LastStableOffset != 2 || p.PreferredReadReplica != -1 {
			t.Errorf("version %d: %+v", version, p)
		}
		if len(p.RecordBatches) != len(sent) || !bytes.Equal(p.RecordBatches[16:], sent[16:]) {
			t.Errorf("version %d: %d bytes, not those produced", version, len(p.RecordBatches))
		}
	}
}

func TestFetchBoundsAndErrors(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "a", 1, nil)
	c := r.dial(t)
	for range 3 {
		ask[*kmsg.ProduceResponse](t, c, produceRequest(topic, -1, batch(t, record.None, bytes.Repeat([]byte("k"), 1000), 1)), 9)
	}
	one := ask[*kmsg.FetchResponse](t, c, fetchRequest(topic, 1, 0, 10), 11)
	if b := one.Topics[0].Partitions[0].RecordBatches; len(b) < 1000 || len(b) > 1200 {
		t.Errorf("%d bytes, want the one batch although it is larger than asked for", len(b))
	}
	for _, x := range []struct {
		what string
		edit func(*kmsg.FetchRequest)
		top  int16
		part int16
	}{
		{"beyond the end", func(f *kmsg.FetchRequest) { f.Topics[0].Partitions[0].FetchOffset = 4 }, 0, 1},
		{"before the start", func(f *kmsg.FetchRequest) { f.Topics[0].Partitions[0].FetchOffset = -5 }, 0, 1},
		{"no such partition", func(f *kmsg.FetchRequest) { f.Topics[0].Partitions[0].Partition = 7 }, 0, 3},
		{"epoch of the future", func(f *kmsg.FetchRequest) { f.Topics[0].Partitions[0].CurrentLeaderEpoch = 99 }, 0, 75},
		{"unknown session", func(f *kmsg.FetchRequest) { f.SessionID = 12; f.SessionEpoch = 3 }, 70, 0},
		{"epoch without a session", func(f *kmsg.FetchRequest) { f.SessionEpoch = 3 }, 70, 0},
		{"asking for a session", func(f *kmsg.FetchRequest) { f.SessionEpoch = 0 }, 0, 0},
	} {
		req := fetchRequest(topic, 0, time.Minute, 1<<20)
		x.edit(req)
		got := ask[*kmsg.FetchResponse](t, c, req, 11)
		if got.ErrorCode != x.top || (got.SessionID != 0) != (req.SessionEpoch == 0) {
			t.Errorf("%s: code %d, session %d", x.what, got.ErrorCode, got.SessionID)
		}
		if x.top == 0 && got.Topics[0].Partitions[0].ErrorCode != x.part {
			t.Errorf("%s: code %d, want %d", x.what, got.Topics[0].Partitions[0].ErrorCode, x.part)
		}
	}
}

// TestLongPoll: a fetch at the end is answered by the next append, long before
// its time is over.
func TestLongPoll(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "a", 2, nil)
	c := r.dial(t)
	if _, err := c.Write(frame(fetchRequest(topic, 0, 10*time.Minute, 1<<20), 11)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.Append(ctxOf(t), topiclog.AppendRequest{Partition: topic.Partitions[1].ID, Batches: batch(t, record.None, nil, 5)}); err != nil {
		t.Fatal(err)
	}
	b := receive(t, c)
	resp := kmsg.NewPtrFetchResponse()
	resp.SetVersion(11)
	if err := resp.ReadFrom(b[4:]); err != nil {
		t.Fatal(err)
	}
	if len(resp.Topics[0].Partitions[1].RecordBatches) == 0 {
		t.Error("no records")
	}
}

func TestListOffsets(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "a", 1, nil)
	empty := r.topic(t, "empty", 1, nil)
	c := r.dial(t)
	for _, times := range [][]int64{{100, 300}, {900, 200}, {900, 500}} {
		ask[*kmsg.ProduceResponse](t, c, produceRequest(topic, -1, batch(t, record.None, nil, times...)), 9)
	}
	if _, err := r.store.DeleteRecords(ctxOf(t), topic.Partitions[0].ID, 1); err != nil {
		t.Fatal(err)
	}
	most := int32(1) // offsets, of version 0
	list := func(topic string, ts int64, version int16) kmsg.ListOffsetsResponseTopicPartition {
		req := kmsg.NewPtrListOffsetsRequest()
		rt := kmsg.NewListOffsetsRequestTopic()
		rt.Topic = topic
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Timestamp, rp.MaxNumOffsets = ts, most
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		return ask[*kmsg.ListOffsetsResponse](t, c, req, version).Topics[0].Partitions[0]
	}
	for _, x := range []struct {
		what              string
		ts                int64
		version           int16
		offset, timestamp int64
		code              int16
	}{
		{"end", -1, 1, 6, -1, 0}, {"start", -2, 1, 1, -1, 0}, {"largest", -3, 7, 2, 900, 0},
		{"largest, too early a version", -3, 6, -1, -1, 35}, {"local start", -4, 8, 1, -1, 0}, {"remote end", -5, 9, -1, -1, 0},
		{"a time", 301, 10, 2, 900, 0}, {"time 0", 0, 4, 1, 300, 0}, {"after all", 901, 5, -1, -1, 0}, {"-9", -9, 10, -1, -1, 35},
	} {
		got := list("a", x.ts, x.version)
		if got.Offset != x.offset || got.Timestamp != x.timestamp || got.ErrorCode != x.code {
			t.Errorf("%s: offset %d, time %d, code %d; want %d, %d, %d", x.what, got.Offset, got.Timestamp, got.ErrorCode, x.offset, x.timestamp, x.code)
		}
	}
	if got := list(empty.Name, -3, 10); got.Offset != -1 || got.Timestamp != -1 || got.ErrorCode != 0 {
		t.Errorf("largest of an empty partition: %+v", got)
	}
	if got := list("none", -1, 10); got.ErrorCode != 3 {
		t.Errorf("no such topic: code %d, want 3", got.ErrorCode)
	}
	for _, x := range []struct {
		what, topic string
		ts          int64
		most        int32
		want        []int64
		code        int16
	}{
		{"the end", "a", -1, 1, []int64{6}, 0}, {"the end and what is before", "a", -1, 9, []int64{6, 1}, 0}, {"the start", "a", -2, 9, []int64{1}, 0},
		{"before a time", "a", 301, 9, []int64{2, 1}, 0}, {"before a time, one", "a", 301, 1, []int64{2}, 0}, {"before all", "a", 300, 9, nil, 0},
		{"after all", "a", 901, 9, []int64{6, 1}, 0}, {"none wanted", "a", -1, 0, nil, 0}, {"fewer than none", "a", -1, -1, nil, 0},
		{"an empty partition's end", empty.Name, -1, 9, []int64{0}, 0}, {"an empty partition, by time", empty.Name, 300, 9, nil, 0},
		{"largest, which version 0 has not", "a", -3, 9, nil, 35}, {"no such topic", "none", -1, 9, nil, 3},
	} {
		most = x.most
		if got := list(x.topic, x.ts, 0); !slices.Equal(got.OldStyleOffsets, x.want) || got.ErrorCode != x.code {
			t.Errorf("version 0, %s: %v, code %d; want %v, %d", x.what, got.OldStyleOffsets, got.ErrorCode, x.want, x.code)
		}
	}
}

func TestMetadataVersions(t *testing.T) {
	r := start(t, kafkaproto.Options{AutoCreatePartitions: 3, Advertised: "log.example:9092"})
	a := r.topic(t, "a", 2, nil)
	c := r.dial(t)
	for version := int16(0); version <= 13; version++ {
		all := ask[*kmsg.MetadataResponse](t, c, kmsg.NewPtrMetadataRequest(), version)
		if len(all.Topics) == 0 || *all.Topics[0].Topic != "a" || len(all.Topics[0].Partitions) != 2 {
			t.Errorf("version %d: all topics: %+v", version, all.Topics)
		}
		if b := all.Brokers[0]; b.Host != "log.example" || b.Port != 9092 || b.NodeID != 1 {
			t.Errorf("version %d: broker %+v", version, b)
		}
		req := kmsg.NewPtrMetadataRequest()
		name := "new" + string(rune('a'+version))
		req.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
		req.AllowAutoTopicCreation = false
		got := ask[*kmsg.MetadataResponse](t, c, req, version).Topics[0]
		// Before version 4 a client cannot say no.
		if version < 4 && (got.ErrorCode != 0 || len(got.Partitions) != 3) {
			t.Errorf("version %d: a missing topic: code %d, %d partitions; want it made with 3", version, got.ErrorCode, len(got.Partitions))
		}
		if version >= 4 && got.ErrorCode != 3 {
			t.Errorf("version %d: a missing topic: code %d, want 3", version, got.ErrorCode)
		}
		if version >= 12 {
			req.Topics = []kmsg.MetadataRequestTopic{{TopicID: a.ID}}
			if got := ask[*kmsg.MetadataResponse](t, c, req, version).Topics[0]; got.Topic == nil || *got.Topic != "a" {
				t.Errorf("version %d: by id: %+v", version, got)
			}
		}
		if version >= 1 {
			req.Topics = []kmsg.MetadataRequestTopic{}
			if got := ask[*kmsg.MetadataResponse](t, c, req, version); len(got.Topics) != 0 {
				t.Errorf("version %d: no topics asked for, got %d", version, len(got.Topics))
			}
		}
	}
}

// TestApiVersions: every version that is advertised is answered, one beyond
// closes the connection, and an ApiVersions of the future gets the old layout.
func TestApiVersions(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	c := r.dial(t)
	for version := int16(0); version <= 4; version++ {
		got := ask[*kmsg.ApiVersionsResponse](t, c, kmsg.NewPtrApiVersionsRequest(), version)
		if got.ErrorCode != 0 || len(got.ApiKeys) != len(kafkaproto.Supported()) {
			t.Errorf("version %d: %+v", version, got)
		}
	}
	b := binary.BigEndian.AppendUint32(nil, 14)
	b = append(b, 0, 18, 0, 99, 0, 0, 0, 7, 0xff, 0xff, 1, 2, 3, 4)
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	resp := kmsg.NewPtrApiVersionsResponse()
	if err := resp.ReadFrom(receive(t, c)[4:]); err != nil || resp.ErrorCode != 35 || len(resp.ApiKeys) == 0 {
		t.Errorf("a version of the future: %+v, %v; want error 35 in version 0", resp, err)
	}
	for _, a := range kafkaproto.Supported() {
		req := kmsg.RequestForKey(a.Key)
		if a.Max > req.MaxVersion() {
			t.Errorf("key %d: version %d is advertised, the codec knows %d", a.Key, a.Max, req.MaxVersion())
		}
		if a.Key == 18 {
			continue
		}
		for version := a.Min; version <= a.Max; version++ {
			req := kmsg.RequestForKey(a.Key)
			if p, ok := req.(*kmsg.ProduceRequest); ok {
				p.Acks = 1
			}
			ask[kmsg.Response](t, r.dial(t), req, version)
		}
		beyond := r.dial(t)
		if _, err := beyond.Write(frame(req, a.Max+1)); err != nil {
			t.Fatal(err)
		}
		closedByServer(t, beyond)
	}
}

func TestMalformedRequestsCloseOnlyTheirConnection(t *testing.T) {
	r := start(t, kafkaproto.Options{MaxProduceBytes: 1 << 20, MaxControlBytes: 1 << 16})
	r.topic(t, "a", 1, nil)
	other := r.dial(t)
	ask[*kmsg.ApiVersionsResponse](t, other, kmsg.NewPtrApiVersionsRequest(), 0)
	frameOf := func(size uint32, rest ...byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, size), rest...)
	}
	for what, b := range map[string][]byte{
		"negative length":               frameOf(0xffffffff),
		"length too short":              frameOf(7, 0, 3, 0, 0, 0, 0, 0),
		"oversized":                     frameOf(1<<20 + 1),
		"http":                          []byte("GET / HTTP/1.1\r\n\r\n"),
		"oversized for its key":         frameOf(1<<16+1, 0, 3, 0, 0, 0, 0, 0, 1),
		"unknown key":                   frameOf(10, 3, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff),
		"client id past the end":        frameOf(10, 0, 3, 0, 0, 0, 0, 0, 1, 0, 9),
		"array past the end":            frameOf(14, 0, 3, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff),
		"produce with a huge array":     frameOf(22, 0, 0, 0, 3, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 1, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff),
		"produce with trailing bytes":   frameOf(23, 0, 0, 0, 3, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1),
		"fetch that ends in the middle": frameOf(14, 0, 1, 0, 4, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
	} {
		c := r.dial(t)
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		t.Log(what)
		closedByServer(t, c)
	}
	ask[*kmsg.ApiVersionsResponse](t, other, kmsg.NewPtrApiVersionsRequest(), 0)
}

func TestConnectionLimit(t *testing.T) {
	r := start(t, kafkaproto.Options{MaxConnections: 1})
	first := r.dial(t)
	ask[*kmsg.ApiVersionsResponse](t, first, kmsg.NewPtrApiVersionsRequest(), 0)
	closedByServer(t, r.dial(t))
	ask[*kmsg.ApiVersionsResponse](t, first, kmsg.NewPtrApiVersionsRequest(), 0)
}

func TestIdleConnectionIsClosed(t *testing.T) {
	r := start(t, kafkaproto.Options{IdleTimeout: time.Millisecond})
	closedByServer(t, r.dial(t))
}

// TestShutdownAnswers: a fetch that would wait for minutes does not hold up the
// drain; then the connection is closed and Serve returns.
func TestShutdownAnswers(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic, empty := r.topic(t, "a", 1, nil), r.topic(t, "empty", 1, nil)
	c := r.dial(t)
	if _, err := c.Write(append(frame(produceRequest(topic, 1, batch(t, record.None, nil, 1)), 9), frame(fetchRequest(empty, 0, 10*time.Minute, 1000), 11)...)); err != nil {
		t.Fatal(err)
	}
	receive(t, c) // the produce: what follows it was sent with it
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.server.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-r.served; !errors.Is(err, kafkaproto.ErrServerClosed) {
		t.Errorf("Serve returned %v", err)
	}
	if n := r.server.Connections(); n != 0 {
		t.Errorf("%d connections left", n)
	}
	// The fetch was read and answered, or not read; never answered in part.
	rest, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	if len(rest) > 0 && int(binary.BigEndian.Uint32(rest)) != len(rest)-4 {
		t.Errorf("%d bytes of an answer cut short", len(rest))
	}
}

func TestRemoteListenerIsRefused(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.server.Serve(l); !errors.Is(err, kafkaproto.ErrRemote) {
		t.Errorf("Serve returned %v, want ErrRemote", err)
	}
}

// TestPipelinedProduce: many requests in a row on one connection keep their order.
func TestPipelinedProduce(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "a", 1, nil)
	c := r.dial(t)
	var all []byte
	const n = 100
	for range n {
		all = append(all, frame(produceRequest(topic, -1, batch(t, record.None, nil, 1)), 9)...)
	}
	go c.Write(all)
	for i := range int64(n) {
		resp := kmsg.NewPtrProduceResponse()
		resp.SetVersion(9)
		if err := resp.ReadFrom(receive(t, c)[5:]); err != nil {
			t.Fatal(err)
		}
		if got := resp.Topics[0].Partitions[0].BaseOffset; got != i {
			t.Fatalf("offset %d, want %d", got, i)
		}
	}
}

// TestClientWithDefaults: franz-go wants idempotence unless told otherwise, and
// sees from the versions that it has to do without.
func TestClientWithDefaults(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "a", 1, nil)
	c, err := kgo.NewClient(kgo.SeedBrokers(r.addr), kgo.DefaultProduceTopic("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.ProduceSync(ctxOf(t), kgo.StringRecord("x")).FirstErr(); err != nil {
		t.Error(err)
	}
	if st, err := r.store.State(topic.Partitions[0].ID); err != nil || st.HighWatermark != 1 {
		t.Errorf("high watermark %d (%v), want 1", st.HighWatermark, err)
	}
}
