package kafkaproto_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
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
