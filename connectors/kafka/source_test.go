package kafka

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/record"
)

// raw produces a batch as it is.
func (w *world) raw(topic string, partition int32, data []byte) {
	w.t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 5000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic, rt.TopicID = topic, w.cluster.TopicInfo(topic).TopicID
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = partition, data
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := w.client.Broker(int(w.cluster.LeaderFor(topic, partition))).Request(w.ctx, req)
	check(w.t, err)
	check(w.t, kerr.ErrorForCode(resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode))
}

// answer makes brokers answer fetches of partition 0 at an offset with given bytes.
func (w *world) answer(offset, end int64, data []byte) {
	w.cluster.ControlKey(int16(kmsg.Fetch), func(q kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		req := q.(*kmsg.FetchRequest)
		if req.Topics[0].Partitions[0].FetchOffset != offset {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		rt := kmsg.NewFetchResponseTopic()
		rt.TopicID = req.Topics[0].TopicID
		rp := kmsg.NewFetchResponseTopicPartition()
		rp.HighWatermark, rp.LastStableOffset, rp.RecordBatches = end, end, data
		rt.Partitions = append(rt.Partitions, rp)
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
}

func TestStartAndEnd(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 3, nil)
	for i := range 10 {
		r := rec("t", 0, fmt.Sprintf(`{"id":%d}`, i))
		r.Timestamp = time.UnixMilli(int64(1000 * i))
		check(t, w.client.ProduceSync(w.ctx, r).FirstErr())
	}
	w.put("t", 1, `{"id":0}`)
	check(t, w.cluster.DeleteRecords("t", 0, 2))
	var committed kadm.Offsets
	committed.AddOffset("t", 0, 5, -1)
	_, err := w.admin.CommitOffsets(w.ctx, "g", committed)
	check(t, err)
	const group = "properties.group.id"
	for _, x := range []struct {
		with       []string
		start, end []int64
		explain    string
	}{
		{nil, []int64{2, 0, 0}, nil, "'scan.startup.mode' = 'earliest-offset'"},
		{[]string{"scan.startup.mode", scanrange.Latest}, []int64{10, 1, 0}, nil, "'scan.startup.mode' = 'latest-offset'"},
		{[]string{"scan.startup.mode", scanrange.Group, group, "g"}, []int64{5, 0, 0}, nil, `warning: group "g" has no offset here, so the earliest record`},
		{[]string{"scan.startup.mode", scanrange.Group, group, "g", "properties.auto.offset.reset", "latest"}, []int64{5, 1, 0}, nil, `warning: group "g" has no offset here, so behind the latest record`},
		{[]string{"scan.startup.mode", scanrange.Group, group, "unheard-of"}, []int64{2, 0, 0}, nil, `warning: group "unheard-of" has no offset here, so the earliest record`},
		{[]string{"scan.startup.mode", scanrange.Timestamp, "scan.startup.timestamp-millis", "4001"}, []int64{5, 1, 0}, nil, ""},
		{[]string{"scan.startup.mode", scanrange.Timestamp, "scan.startup.timestamp-millis", "0"}, []int64{2, 0, 0}, nil, ""},
		{[]string{"scan.startup.mode", scanrange.Specific, "scan.startup.specific-offsets", "partition:0,offset:7"}, []int64{7, 0, 0}, nil, ""},
		{[]string{"scan.bounded.mode", scanrange.Latest}, []int64{2, 0, 0}, []int64{10, 1, 0}, ""},
		{[]string{"scan.bounded.mode", scanrange.Group, group, "g"}, []int64{2, 0, 0}, []int64{5, 0, 0}, ""},
		{[]string{"scan.bounded.mode", scanrange.Timestamp, "scan.bounded.timestamp-millis", "6000"}, []int64{2, 0, 0}, []int64{6, 1, 0}, ""},
		{[]string{"scan.bounded.mode", scanrange.Specific, "scan.bounded.specific-offsets", "partition:0,offset:4"}, []int64{2, 0, 0}, []int64{4, 1, 0}, ""},
	} {
		s := w.source(w.table("t", idOnly, x.with...))
		parts, err := s.Partitions(w.ctx)
		check(t, err)
		from, err := s.Start(w.ctx, parts)
		check(t, err)
		ends, err := s.End(w.ctx, parts)
		check(t, err)
		if x.end == nil {
			x.end = []int64{connector.Unbounded, connector.Unbounded, connector.Unbounded}
		}
		var start []int64
		for i, p := range from {
			start = append(start, p.Offset)
			if p.Partition != parts[i] || p.Partition.TopicID != s.id || p.Partition.ID != int32(i) {
				t.Errorf("%v: position %d is %+v", x.with, i, p)
			}
		}
		if !slices.Equal(start, x.start) || !slices.Equal(ends, x.end) {
			t.Errorf("%v: from %v to %v, want %v to %v", x.with, start, ends, x.start, x.end)
		}
		if said := s.ExplainStart(parts); x.explain != "" && said[2] != x.explain {
			t.Errorf("%v: explained as %q, want %q", x.with, said[2], x.explain)
		}
		errs, err := s.Check(w.ctx, from)
		check(t, err)
		for i, e := range errs {
			if e != nil {
				t.Errorf("%v: the start of partition %d: %v", x.with, i, e)
			}
		}
	}
	for _, x := range []struct {
		with []string
		want string
	}{
		{[]string{"scan.startup.mode", scanrange.Group, group, "g", "properties.auto.offset.reset", "none"}, "'none'"},
		{[]string{"scan.startup.mode", scanrange.Specific, "scan.startup.specific-offsets", "partition:0,offset:1"}, "outside the log (2..10)"},
		{[]string{"scan.startup.mode", scanrange.Specific, "scan.startup.specific-offsets", "partition:0,offset:11"}, "outside the log (2..10)"},
	} {
		s := w.source(w.table("t", idOnly, x.with...))
		parts, err := s.Partitions(w.ctx)
		check(t, err)
		if _, err := s.Start(w.ctx, parts); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v: %v, want %q", x.with, err, x.want)
		}
	}
	s := w.source(w.table("t", idOnly, "scan.bounded.mode", scanrange.Specific, "scan.bounded.specific-offsets", "partition:0,offset:11"))
	parts, err := s.Partitions(w.ctx)
	check(t, err)
	if _, err := s.End(w.ctx, parts); err == nil || !strings.Contains(err.Error(), "behind the log's end 10") {
		t.Errorf("an end behind the log: %v", err)
	}
}

func TestMirrorCursor(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 1, nil)
	w.put("t", 0, `{"id":0}`, `{"id":1}`)
	for _, group := range []string{"", "g"} {
		with := []string{}
		if group != "" {
			with = append(with, "properties.group.id", group)
		}
		s := w.source(w.table("t", idOnly, with...))
		parts, err := s.Partitions(w.ctx)
		check(t, err)
		check(t, s.MirrorCursor(w.ctx, []connector.Position{{Partition: parts[0], Offset: 2, LeaderEpoch: 0}}))
	}
	all, err := w.admin.FetchOffsets(w.ctx, "g")
	check(t, err)
	if o, ok := all.Lookup("t", 0); !ok || o.At != 2 {
		t.Errorf("the group is at %+v", o)
	}
}

func TestDiscovery(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 1, nil)
	count := func(s connector.Source) int {
		t.Helper()
		p, err := s.Partitions(w.ctx)
		check(t, err)
		return len(p)
	}
	plain := w.source(w.table("t", idOnly))
	never := w.source(w.table("t", idOnly, "scan.topic-partition-discovery.interval", "0"))
	hourly := w.source(w.table("t", idOnly, "scan.topic-partition-discovery.interval", "1 h"))
	for _, s := range []*source{plain, never, hourly} {
		if n := count(s); n != 1 {
			t.Fatalf("%d partitions", n)
		}
	}
	_, err := w.admin.CreatePartitions(w.ctx, 2, "t")
	check(t, err)
	if a, b, c := count(plain), count(never), count(hourly); a != 3 || b != 1 || c != 1 {
		t.Errorf("%d, %d and %d partitions; want 3, 1, 1", a, b, c)
	}
}

func mismatchOf(t testing.TB, err error) *connector.MismatchError {
	t.Helper()
	var m *connector.MismatchError
	if !errors.As(err, &m) {
		t.Fatalf("no mismatch: %v", err)
	}
	return m
}

func (w *world) checkAt(s *source, offset int64, epoch int32) error {
	w.t.Helper()
	errs, err := s.Check(w.ctx, []connector.Position{{Partition: connector.Partition{TopicID: s.id, Topic: "t"}, Offset: offset, LeaderEpoch: epoch}})
	check(w.t, err)
	return errs[0]
}

func TestCheck(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 1, nil)
	w.put("t", 0, `{"id":0}`, `{"id":1}`, `{"id":2}`)
	first := w.cluster.PartitionInfo("t", 0).Epoch
	for w.cluster.PartitionInfo("t", 0).Epoch == first {
		w.cluster.ShufflePartitionLeaders()
	}
	w.put("t", 0, `{"id":3}`, `{"id":4}`)
	now := w.cluster.PartitionInfo("t", 0).Epoch
	s := w.source(w.table("t", idOnly))
	for _, ok := range []struct {
		offset int64
		epoch  int32
	}{{0, -1}, {0, first}, {3, first}, {5, now}, {5, -1}, {2, now}} {
		if err := w.checkAt(s, ok.offset, ok.epoch); err != nil {
			t.Errorf("offset %d in epoch %d: %v", ok.offset, ok.epoch, err)
		}
	}
	check(t, w.cluster.DeleteRecords("t", 0, 1))
	for _, x := range []struct {
		offset               int64
		epoch                int32
		earliest, last, lost int64
		reason               string
	}{
		{0, first, 1, 5, 1, "1 offsets were removed before they were read"},
		{6, -1, 1, 5, -1, "the log ends before the position"},
		{4, first, 3, 5, -1, "unclean leader election"},
		{5, now + 7, 1, 5, -1, "put back to an earlier state"},
	} {
		m := mismatchOf(t, w.checkAt(s, x.offset, x.epoch))
		if m.Earliest != x.earliest || m.Latest != x.last || m.Lost != x.lost || m.Recreated || !strings.Contains(m.Reason, x.reason) {
			t.Errorf("offset %d in epoch %d: %+v", x.offset, x.epoch, m)
		}
	}
	check(t, w.cluster.DeleteTopic("t"))
	if m := mismatchOf(t, w.checkAt(s, 2, first)); !m.Recreated || m.Reason != "the topic was deleted" {
		t.Errorf("deleted: %+v", m)
	}
	w.topic("t", 1, nil)
	w.client, _ = w.dial() // the other one refuses a topic that was made again
	w.put("t", 0, `{"id":9}`)
	for _, x := range []*source{s, w.source(w.table("t", idOnly))} {
		p := connector.Position{Partition: connector.Partition{TopicID: s.id, Topic: "t"}, Offset: 1}
		errs, err := x.Check(w.ctx, []connector.Position{p})
		check(t, err)
		if m := mismatchOf(t, errs[0]); !m.Recreated || m.Latest != 1 || m.Reason != "the topic was deleted and created again" {
			t.Errorf("made again: %+v", m)
		}
	}
	if _, err := s.Partitions(w.ctx); err == nil {
		t.Error("the source of a topic that is gone lists the new one's partitions")
	}
}

// A topic that is deleted, or made again, while it is read ends the reader behind
// what was read; nothing of the new one is given.
func TestRecreatedWhileReading(t *testing.T) {
	for _, again := range []bool{false, true} {
		w := newWorld(t)
		w.topic("t", 1, nil)
		w.put("t", 0, `{"id":0}`, `{"id":1}`)
		r := w.open(w.source(w.table("t", idOnly)), nil)
		have, err := r.collect(2, 100, 1<<20, nil)
		check(t, err)
		check(t, w.cluster.DeleteTopic("t"))
		if again {
			w.topic("t", 1, nil)
			client, _ := w.dial()
			check(t, client.ProduceSync(w.ctx, rec("t", 0, `{"id":7}`), rec("t", 0, `{"id":8}`), rec("t", 0, `{"id":9}`)).FirstErr())
		}
		more, err := r.collect(-1, 100, 1<<20, nil)
		m := mismatchOf(t, err)
		if !m.Recreated || m.Position.Offset != 2 || len(more) > 0 || !reflect.DeepEqual(have, got{0: {"0:0", "1:1"}}) {
			t.Errorf("made again %t: %+v after %v and %v", again, m, have, more)
		}
	}
}

// Records that go before they are read end the reader; so does a log that was
// cut back below what was read.
func TestGoneWhileReading(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 1, nil)
	w.put("t", 0, `{"id":0}`, `{"id":1}`, `{"id":2}`, `{"id":3}`)
	s := w.source(w.table("t", idOnly))
	splits := w.splits(s)
	check(t, w.cluster.DeleteRecords("t", 0, 3))
	_, err := w.openAt(s, nil, splits...).collect(-1, 100, 1<<20, nil)
	if m := mismatchOf(t, err); m.Lost != 3 || m.Earliest != 3 || m.Position.Offset != 0 {
		t.Errorf("removed: %+v", m)
	}

	// A leader of a later epoch that never had offsets 3 and up of this one.
	r := w.open(s, nil)
	_, err = r.collect(1, 100, 1<<20, nil)
	check(t, err)
	w.cluster.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(q kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		req := q.(*kmsg.OffsetForLeaderEpochRequest)
		resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		rt := kmsg.NewOffsetForLeaderEpochResponseTopic()
		rt.Topic = req.Topics[0].Topic
		rp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
		rp.LeaderEpoch, rp.EndOffset = req.Topics[0].Partitions[0].LeaderEpoch, 3
		rt.Partitions = append(rt.Partitions, rp)
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
	before := w.cluster.PartitionInfo("t", 0).Epoch
	for w.cluster.PartitionInfo("t", 0).Epoch == before {
		w.cluster.ShufflePartitionLeaders()
	}
	client, _ := w.dial()
	check(t, client.ProduceSync(w.ctx, rec("t", 0, `{"id":99}`)).FirstErr())
	more, err := r.collect(-1, 100, 1<<20, nil)
	m := mismatchOf(t, err)
	if m.Position.Offset != 4 || m.Earliest != 3 || m.Lost != -1 || !strings.Contains(m.Reason, "unclean leader election") || len(more) > 0 {
		t.Errorf("cut back: %+v after %v", m, more)
	}
}

// A batch that its producer broke is one malformed record and costs no other;
// one whose checksum is wrong is damage.
func TestBatchesThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 1, nil)
	build := func(change func(body []byte)) []byte {
		b := record.Builder{Codec: record.Zstd}
		for i := range 5 {
			check(t, b.Append(0, nil, []byte(fmt.Sprintf(`{"id":%d,"pad":"%s"}`, i, strings.Repeat("z", 100))), nil))
		}
		raw, err := b.Build()
		check(t, err)
		raw = slices.Clone(raw)
		change(raw[record.HeaderSize:])
		crc := record.Checksum(raw[21:])
		raw[17], raw[18], raw[19], raw[20] = byte(crc>>24), byte(crc>>16), byte(crc>>8), byte(crc)
		return raw
	}
	w.put("t", 0, `{"id":1}`)
	w.raw("t", 0, build(func(b []byte) { b[0] ^= 0xff })) // 1 to 5
	w.put("t", 0, `{"id":6}`)
	s := w.source(w.table("t", idOnly, "scan.bounded.mode", scanrange.Latest))
	r := w.open(s, nil)
	have, err := r.collect(-1, 100, 1<<20, func(b *batch.Batch) {
		for _, n := range b.Notes {
			x, ok := r.Raw(0, n.Offset)
			h, err := record.ParseHeader(x.Value)
			if !ok || err != nil || n.Offset < h.BaseOffset || n.Offset > h.LastOffset() {
				t.Errorf("the letter of %d is %v, %v", n.Offset, h, err)
			}
		}
	})
	check(t, err)
	if want := (got{0: {"0:1", "1:malformed_record", "6:6"}}); !reflect.DeepEqual(have, want) {
		t.Errorf("read %v, want %v", have, want)
	}

	// The broker's disk is bad: the same wrong bytes each time.
	b := record.Builder{}
	check(t, b.Append(0, nil, []byte(`{}`), nil), b.Append(0, nil, []byte(`{}`), nil))
	rotten, err := b.Build()
	check(t, err)
	record.Assign(rotten, 1, 0) // offsets 1 and 2
	rotten[len(rotten)-1] ^= 1
	w.answer(2, 7, rotten)
	_, err = w.openAt(s, nil, connector.Split{From: connector.Position{Partition: connector.Partition{TopicID: s.id, Topic: "t"}, Offset: 2, LeaderEpoch: -1}, End: 7}).collect(-1, 100, 1<<20, nil)
	if m := mismatchOf(t, err); !m.Damaged || m.Earliest != 3 || m.Lost != 1 || !errors.Is(m, record.ErrChecksum) {
		t.Errorf("damage: %+v", m)
	}
}

func TestLogAppendTime(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 1, nil)
	b := record.Builder{}
	check(t, b.Append(77, nil, []byte(`{}`), nil))
	raw, err := b.Build()
	check(t, err)
	record.StampLogAppendTime(raw, 99)
	w.put("t", 0, `{}`)
	w.answer(0, 1, raw)
	cols := columns(field("tt", types.NewString()))
	cols[0].Metadata = "timestamp-type"
	have, err := w.open(w.source(w.table("t", cols, "scan.bounded.mode", scanrange.Latest)), nil).collect(-1, 10, 1<<20, nil)
	check(t, err)
	if !reflect.DeepEqual(have, got{0: {"0:LogAppendTime"}}) {
		t.Errorf("read %v", have)
	}
}

// A broker that goes and comes back, and one that is added, cost nothing.
func TestBrokersComeAndGo(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 6, nil)
	r := w.open(w.source(w.table("t", idOnly)), nil)
	for round := range 4 {
		switch round {
		case 1:
			check(t, w.cluster.RemoveNode(1))
		case 2:
			_, _, err := w.cluster.AddNode(1, 0)
			check(t, err)
			w.cluster.ShufflePartitionLeaders()
		case 3:
			for p := range int32(6) {
				check(t, w.cluster.MoveTopicPartition("t", p, 1))
			}
		}
		client, _ := w.dial(kgo.SeedBrokers(w.cluster.ListenAddrs()...))
		for p := range int32(6) {
			check(t, client.ProduceSync(w.ctx, rec("t", p, fmt.Sprintf(`{"id":%d}`, round))).FirstErr())
		}
		have, err := r.collect(6, 100, 1<<20, nil)
		check(t, err)
		for p := range int32(6) {
			if want := fmt.Sprintf("%d:%d", round, round); len(have[p]) != 1 || have[p][0] != want {
				t.Errorf("round %d, partition %d: %v, want %s", round, p, have[p], want)
			}
		}
	}
}

// A cluster that stays away ends the reader with an error to try again; until
// then no partition is taken for caught up.
func TestOutage(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 1, nil)
	w.put("t", 0, `{"id":0}`)
	r := w.open(w.source(w.table("t", idOnly, "properties.default.api.timeout.ms", "300", "properties.request.timeout.ms", "100")), nil)
	if r.LogEnd(0) != 1 || r.LogEnd(9) != 0 {
		t.Errorf("before the first answer: %d", r.LogEnd(0))
	}
	_, err := r.collect(1, 10, 1000, nil)
	check(t, err)
	if r.LogEnd(0) != 1 {
		t.Errorf("the log ends at %d", r.LogEnd(0))
	}
	w.cluster.Close()
	_, err = r.collect(-1, 10, 1000, nil)
	var again connector.Retryable
	if !errors.As(err, &again) || !again.Retryable() {
		t.Errorf("not to be tried again: %v", err)
	}
	if r.LogEnd(0) != 2 {
		t.Errorf("caught up with a cluster that is away: %d", r.LogEnd(0))
	}
}

// A connection that a broker closed is no end of the input.
func TestHungUpIsNotTheEnd(t *testing.T) {
	err := failed(fmt.Errorf("reading: %w", io.EOF), "describing topic t")
	var again connector.Retryable
	if errors.Is(err, io.EOF) || !errors.As(err, &again) || !again.Retryable() {
		t.Errorf("%v looks like the end of the input, or final", err)
	}
}

// A reader can be closed while the cluster is away and nobody leads its partitions.
func TestCloseWithoutLeaders(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 3, nil)
	s := w.source(w.table("t", idOnly))
	for range 20 {
		r := w.open(s, nil)
		w.cluster.ShufflePartitionLeaders()
		check(t, r.Close())
	}
	r := w.open(s, nil)
	w.cluster.Close()
	closed := make(chan error, 1)
	go func() { closed <- r.Close() }()
	select {
	case err := <-closed:
		check(t, err)
	case <-w.ctx.Done():
		t.Fatal("Close hangs while the cluster is away")
	}
}
