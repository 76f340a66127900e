package kafkaproto_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// rig is a store with a server on a loopback port.
type rig struct {
	store  *topiclog.Store
	server *kafkaproto.Server
	addr   string
	served chan error
}

func start(t testing.TB, o kafkaproto.Options) *rig {
	t.Helper()
	store, err := topiclog.Open(topiclog.Options{FS: vfs.NewMem(), Dir: "data", ReserveBytes: -1, RetentionInterval: -1, PoisonReleased: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return serveStore(t, store, o)
}

// serveStore is start with a store of the caller's.
func serveStore(t testing.TB, store *topiclog.Store, o kafkaproto.Options) *rig {
	t.Helper()
	o.Store, o.PoisonReleased = store, true
	s, err := kafkaproto.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{store: store, server: s, addr: l.Addr().String(), served: make(chan error, 2)}
	go func() { r.served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutting down: %v", err)
		}
	})
	return r
}

func (r *rig) client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(r.addr), kgo.DisableIdempotentWrite(), kgo.ProducerLinger(0)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (r *rig) topic(t testing.TB, name string, partitions int, config map[string]string) topiclog.Topic {
	t.Helper()
	topic, err := r.store.CreateTopic(context.Background(), topiclog.TopicSpec{Name: name, Partitions: partitions, Config: config})
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

func ctxOf(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// dial opens a raw connection.
func (r *rig) dial(t testing.TB) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// frame is a request of kmsg as bytes.
func frame(req kmsg.Request, version int16) []byte {
	req.SetVersion(version)
	b := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, 7)
	return b
}

// receive reads one response without its length.
func receive(t testing.TB, c net.Conn) []byte {
	t.Helper()
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		t.Fatalf("reading a response: %v", err)
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	return b
}

// ask sends a request in one version and decodes the answer.
func ask[R kmsg.Response](t testing.TB, c net.Conn, req kmsg.Request, version int16) R {
	t.Helper()
	if _, err := c.Write(frame(req, version)); err != nil {
		t.Fatal(err)
	}
	b := receive(t, c)
	if got := binary.BigEndian.Uint32(b); got != 7 {
		t.Fatalf("correlation id %d, want 7", got)
	}
	b = b[4:]
	resp := req.ResponseKind()
	if resp.IsFlexible() && resp.Key() != 18 {
		b = b[1:]
	}
	if err := resp.ReadFrom(b); err != nil {
		t.Fatalf("%T version %d: %v", resp, version, err)
	}
	// What is decoded must be all of it: what encodes to the same bytes was.
	if again := resp.AppendTo(nil); len(again) != len(b) {
		t.Fatalf("%T version %d: %d bytes, of which its layout explains %d", resp, version, len(b), len(again))
	}
	return resp.(R)
}

func closedByServer(t testing.TB, c net.Conn) {
	t.Helper()
	n, err := c.Read(make([]byte, 1))
	var timeout net.Error
	if n != 0 || err == nil || (errors.As(err, &timeout) && timeout.Timeout()) {
		t.Fatalf("read %d bytes, error %v; the server should have closed the connection", n, err)
	}
}

func TestProduceAndConsume(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		name := "t" + string(rune('0'+codecNumber(codec)))
		r.topic(t, name, 3, nil)
		p := r.client(t, kgo.ProducerBatchCompression(codec), kgo.DefaultProduceTopic(name))
		value := make([]byte, 1000)
		const total = 300
		for i := range total {
			binary.BigEndian.PutUint32(value, uint32(i))
			p.Produce(ctxOf(t), &kgo.Record{Value: append([]byte(nil), value...), Key: []byte{byte(i)}}, func(_ *kgo.Record, err error) {
				if err != nil {
					t.Errorf("producing: %v", err)
				}
			})
		}
		if err := p.Flush(ctxOf(t)); err != nil {
			t.Fatal(err)
		}
		c := r.client(t, kgo.ConsumeTopics(name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		seen := map[uint32]bool{}
		next := map[int32]int64{}
		for len(seen) < total {
			fs := c.PollFetches(ctxOf(t))
			if err := fs.Err(); err != nil {
				t.Fatal(err)
			}
			fs.EachRecord(func(rec *kgo.Record) {
				if rec.Offset != next[rec.Partition] {
					t.Errorf("partition %d: offset %d, want %d", rec.Partition, rec.Offset, next[rec.Partition])
				}
				next[rec.Partition]++
				seen[binary.BigEndian.Uint32(rec.Value)] = true
			})
		}
	}
}

func codecNumber(c kgo.CompressionCodec) int {
	for i, x := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		if x == c {
			return i
		}
	}
	return 9
}

func TestAcksZeroAndOne(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "a", 1, nil)
	for i, acks := range []kgo.Acks{kgo.NoAck(), kgo.LeaderAck()} {
		p := r.client(t, kgo.RequiredAcks(acks), kgo.DefaultProduceTopic("a"))
		if err := p.ProduceSync(ctxOf(t), kgo.StringRecord("x")).FirstErr(); err != nil {
			t.Fatal(err)
		}
		l, err := r.store.Fetch(ctxOf(t), topiclog.FetchRequest{Partition: topic.Partitions[0].ID, Offset: int64(i), MaxWait: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if l.NextOffset != int64(i)+1 {
			t.Errorf("next offset %d, want %d", l.NextOffset, i+1)
		}
		l.Release()
	}
}

func TestUnixSocket(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	path := filepath.Join(t.TempDir(), "kafka.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go func() { r.served <- r.server.Serve(l) }()
	c := r.client(t, kgo.DefaultProduceTopic("u"), kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}))
	r.topic(t, "u", 1, nil)
	if err := c.ProduceSync(ctxOf(t), kgo.StringRecord("x")).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func TestAdmin(t *testing.T) {
	r := start(t, kafkaproto.Options{DefaultPartitions: 4})
	adm := kadm.NewClient(r.client(t))
	ctx := ctxOf(t)
	value := "60000"
	made, err := adm.CreateTopics(ctx, 2, 1, map[string]*string{"retention.ms": &value}, "one", "two")
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Error(); err != nil {
		t.Fatal(err)
	}
	topic, err := r.store.Topic("one")
	if err != nil {
		t.Fatal(err)
	}
	if made["one"].ID != kadm.TopicID(topic.ID) {
		t.Errorf("topic id %v, the store has %v", made["one"].ID, topic.ID)
	}
	if topic.Settings.Retention != time.Minute {
		t.Errorf("retention %v, want 1m", topic.Settings.Retention)
	}
	bad := "never"
	for _, c := range []struct {
		name       string
		partitions int32
		replicas   int16
		config     map[string]*string
		want       error
	}{
		{"one", 1, 1, nil, kerr.TopicAlreadyExists},
		{"x/y", 1, 1, nil, kerr.InvalidTopicException},
		{"__own", 1, 1, nil, kerr.InvalidTopicException},
		{"p", 0, 1, nil, kerr.InvalidPartitions},
		{"r", 1, 3, nil, kerr.InvalidReplicationFactor},
		{"c", 1, 1, map[string]*string{"retention.ms": &bad}, kerr.InvalidConfig},
		{"u", 1, 1, map[string]*string{"no.such.option": &value}, kerr.InvalidConfig},
		{"d", -1, -1, nil, nil},
	} {
		got, err := adm.CreateTopics(ctx, c.partitions, c.replicas, c.config, c.name)
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(got[c.name].Err, c.want) {
			t.Errorf("creating %s: %v, want %v", c.name, got[c.name].Err, c.want)
		}
	}
	if d, err := r.store.Topic("d"); err != nil || len(d.Partitions) != 4 {
		t.Errorf("topic d has %d partitions (%v), want the default of 4", len(d.Partitions), err)
	}
	more, err := adm.UpdatePartitions(ctx, 5, "one")
	if err != nil || more.Error() != nil {
		t.Fatal(err, more.Error())
	}
	less, err := adm.UpdatePartitions(ctx, 2, "one")
	if err != nil || !errors.Is(less["one"].Err, kerr.InvalidPartitions) {
		t.Errorf("shrinking: %v %v, want %v", err, less["one"].Err, kerr.InvalidPartitions)
	}
	configs, err := adm.DescribeTopicConfigs(ctx, "one")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, c := range configs[0].Configs {
		found[c.Key] = c.MaybeValue()
	}
	if found["retention.ms"] != "60000" || found["cleanup.policy"] != "delete" {
		t.Errorf("options %v", found)
	}
	listed, err := adm.ListTopics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !listed.Has("one") || !listed.Has("two") || len(listed["one"].Partitions) != 5 {
		t.Errorf("listed %v", listed.Names())
	}
	gone, err := adm.DeleteTopics(ctx, "two", "nothing")
	if err != nil {
		t.Fatal(err)
	}
	if gone["two"].Err != nil || !errors.Is(gone["nothing"].Err, kerr.UnknownTopicOrPartition) {
		t.Errorf("deleting: %v, %v", gone["two"].Err, gone["nothing"].Err)
	}
	if err := r.store.Subscribe(ctx, topiclog.Subscription{Group: "g", Topic: topic.ID, Owner: "job g"}); err != nil {
		t.Fatal(err)
	}
	kept, err := adm.DeleteTopics(ctx, "one")
	if err != nil || !errors.Is(kept["one"].Err, kerr.PolicyViolation) {
		t.Errorf("deleting a topic in use: %v %v, want %v", err, kept["one"].Err, kerr.PolicyViolation)
	}
}

func TestOffsetsOfGroups(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	r.topic(t, "a", 2, nil)
	adm := kadm.NewClient(r.client(t))
	ctx := ctxOf(t)
	var os kadm.Offsets
	os.Add(kadm.Offset{Topic: "a", Partition: 1, At: 42, LeaderEpoch: 0, Metadata: "note"})
	if err := adm.CommitAllOffsets(ctx, "g", os); err != nil {
		t.Fatal(err)
	}
	got, err := adm.FetchOffsets(ctx, "g")
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := got.Lookup("a", 1); !ok || o.At != 42 || o.Metadata != "note" {
		t.Errorf("position %+v, want 42 with its note", o)
	}
	none, err := adm.FetchOffsets(ctx, "nobody")
	if err != nil || len(none) != 0 {
		t.Errorf("a group that never was: %v, %v; want no positions and no error", none, err)
	}
	c := r.dial(t)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = "g", "m", 1
	rt := kmsg.NewOffsetCommitRequestTopic()
	rt.Topic = "a"
	rt.Partitions = append(rt.Partitions, kmsg.NewOffsetCommitRequestTopicPartition())
	req.Topics = append(req.Topics, rt)
	if got := ask[*kmsg.OffsetCommitResponse](t, c, req, 7); got.Topics[0].Partitions[0].ErrorCode != 25 {
		t.Errorf("a commit of a member: code %d, want 25", got.Topics[0].Partitions[0].ErrorCode)
	}
	for version := int16(1); version <= 8; version++ {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Group = "g"
		req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "a", Partitions: []int32{0, 1, 9}}}
		req.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "g", Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: "a", Partitions: []int32{0, 1, 9}}}}}
		resp := ask[*kmsg.OffsetFetchResponse](t, c, req, version)
		var offsets []int64
		if version < 8 {
			for _, p := range resp.Topics[0].Partitions {
				offsets = append(offsets, p.Offset)
			}
		} else {
			for _, p := range resp.Groups[0].Topics[0].Partitions {
				offsets = append(offsets, p.Offset)
			}
		}
		if len(offsets) != 3 || offsets[0] != -1 || offsets[1] != 42 || offsets[2] != -1 {
			t.Errorf("version %d: offsets %v, want [-1 42 -1]", version, offsets)
		}
	}
}
