package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// sinkWorld is a topic with the sink in front of it.
type sinkWorld struct {
	*world
	with []string
	out  string // the topic
	job  byte   // whose the sinks are
	// patience is how long a cluster may take to make what was committed readable, and
	// a look may fail because of it; 0: no time.
	patience time.Duration
}

// patiently does something until it is done, or patience is at its end.
func (w *sinkWorld) patiently(do func() (done bool)) {
	end := time.After(w.patience)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !do() {
		select {
		case <-tick.C:
		case <-end:
			return
		}
	}
}

// visible are the rows that readers see, once there are as many as are to come.
func (w *sinkWorld) visible(t testing.TB, n int) (have []int64) {
	t.Helper()
	w.patiently(func() bool {
		have = w.Visible(t)
		return len(have) >= n
	})
	return have
}

func (w *sinkWorld) Shared() {}

func newSinkWorld(t testing.TB, with ...string) *sinkWorld {
	w := &sinkWorld{world: newWorld(t), with: with, out: "out", job: 1}
	w.topic("out", 3, nil)
	return w
}

func (w *sinkWorld) Open(ctx context.Context, o connector.Owner) (connector.Sink, error) {
	return w.conn.OpenSink(ctx, w.table(w.out, conntest.Columns(), w.with...), o)
}

// committed is every record of a topic up to its last stable offset, as a reader
// with read_committed sees it.
func (w *world) committed(topic string) []*kgo.Record {
	w.t.Helper()
	ends, err := w.admin.ListCommittedOffsets(w.ctx, topic)
	check(w.t, err, ends.Error())
	from := map[int32]kgo.Offset{}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			from[o.Partition], left[o.Partition] = kgo.NewOffset().AtStart(), o.Offset
		}
	})
	if len(left) == 0 {
		return nil
	}
	c, _ := w.dial(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), kgo.FetchMaxWait(20*time.Millisecond))
	var out []*kgo.Record
	for len(left) > 0 {
		fs := c.PollFetches(w.ctx)
		check(w.t, fs.Err())
		fs.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				out = append(out, r)
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return out
}

func idsOf(t testing.TB, rs []*kgo.Record) []int64 {
	t.Helper()
	var out []int64
	for _, r := range rs {
		var row struct{ ID int64 }
		check(t, json.Unmarshal(r.Value, &row))
		out = append(out, row.ID)
	}
	slices.Sort(out)
	return out
}

func (w *sinkWorld) Visible(t testing.TB) []int64 { return idsOf(t, w.committed(w.out)) }

func TestSinkAcceptance(t *testing.T) {
	conntest.RunSink(t, func(t testing.TB) conntest.World { return newSinkWorld(t) })
}

// lane is the lane that the tests write as.
var lane = connector.LaneID{Topic: conntest.UUID(7), Set: 1}

func attemptOf(epoch uint64) connector.Attempt {
	return connector.Attempt{ID: connector.ArtifactID{Job: conntest.UUID(1), Table: conntest.UUID(9), Lane: lane, Epoch: epoch}, MemoryBytes: 16 << 20}
}

func (w *sinkWorld) sink(epoch uint64) *sink {
	w.t.Helper()
	s, err := w.Open(w.ctx, conntest.OwnerOf(w.job, epoch))
	check(w.t, err)
	w.t.Cleanup(func() { s.Close() })
	return s.(*sink)
}

// seal writes rows and seals them.
func (w *sinkWorld) seal(wr connector.Writer, a connector.Attempt, sequence uint64, b *batch.Batch) connector.Artifact {
	w.t.Helper()
	ids, err := wr.Buckets(b, nil, nil)
	check(w.t, err)
	check(w.t, wr.Write(b, nil, ids[0]))
	id := a.ID
	id.Sequence = sequence
	as, err := wr.Seal(w.ctx, []connector.SealRequest{{Bucket: ids[0], Header: connector.Header{ID: id, Rows: int64(b.Len)}}})
	check(w.t, err)
	return as[0]
}

func ids(first, n int64) []int64 {
	var out []int64
	for i := range n {
		out = append(out, first+i)
	}
	return out
}

// TestSinkFaults loses requests and answers of each kind while artefacts are
// published: what Resolve says is what readers see, and the rows are there once
// after another try.
func TestSinkFaults(t *testing.T) {
	hangUp := errors.New("hang up")
	for _, key := range []kmsg.Key{kmsg.InitProducerID, kmsg.AddPartitionsToTxn, kmsg.Produce, kmsg.EndTxn, kmsg.ListOffsets, kmsg.FindCoordinator} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", key.Name(), restart), func(t *testing.T) {
				w := newSinkWorld(t, "properties.default.api.timeout.ms", "3000")
				s := w.sink(1)
				a := attemptOf(1)
				wr, err := s.OpenWriter(w.ctx, a)
				check(t, err)
				first := w.seal(wr, a, 0, conntest.Rows(0, 10))
				check(t, s.Publish(w.ctx, []connector.Artifact{first})...)
				second := w.seal(wr, a, 1, conntest.Rows(10, 10))
				var lost atomic.Int32
				w.cluster.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
					lost.Add(1)
					return nil, hangUp, true
				})
				for _, err := range s.Publish(w.ctx, []connector.Artifact{second}) {
					t.Logf("%d lost, publishing: %v", lost.Load(), err)
				}
				if restart {
					s = w.sink(2)
				}
				w.settled(t, s, attemptOf(2), first, second, restart)
			})
		}
	}
}

// settled looks what became of two artefacts, the first of which was published: what
// is said is what readers see; then the second one's rows are there, and each once. a
// is the attempt that writes them again after a restart.
func (w *sinkWorld) settled(t *testing.T, s *sink, a connector.Attempt, first, second connector.Artifact, restart bool) {
	t.Helper()
	var out []connector.Outcome
	var err error
	w.patiently(func() bool {
		out, err = s.Resolve(w.ctx, []connector.Artifact{first, second})
		return err == nil
	})
	check(t, err)
	want := ids(0, 10)
	if out[1] == connector.Published {
		want = ids(0, 20)
	}
	have := w.visible(t, len(want))
	if out[0] != connector.Published || !slices.Equal(have, want) {
		t.Fatalf("resolved %v, visible are %v", out, have)
	}
	if restart && out[1] != connector.Published && out[1] != connector.Absent || !restart && out[1] != connector.Published && out[1] != connector.Sealed {
		t.Fatalf("the second is %s", out[1])
	}
	if out[1] == connector.Published {
		return
	}
	wr, err := s.OpenWriter(w.ctx, a)
	check(t, err)
	if restart {
		second = w.seal(wr, a, 0, conntest.Rows(10, 10))
	}
	check(t, s.Publish(w.ctx, []connector.Artifact{second})...)
	if have := w.visible(t, 20); !slices.Equal(have, ids(0, 20)) {
		t.Fatalf("visible are %v", have)
	}
}

// TestSinkLostAnswer commits and loses the answer: the artefact is published, and
// said to be.
func TestSinkLostAnswer(t *testing.T) {
	w := newSinkWorld(t)
	s := w.sink(1)
	a := attemptOf(1)
	wr, err := s.OpenWriter(w.ctx, a)
	check(t, err)
	x := w.seal(wr, a, 0, conntest.Rows(0, 10))
	st := s.lane(transactionalID(s.prefix, a.ID))
	p, err := decodePayload(x.Payload)
	check(t, err)
	rows, err := s.records(st, x.Header.ID, p)
	check(t, err)
	// The process dies between the commit and its note of it.
	check(t, s.transactLane(w.ctx, st, rows, st.record.with(pointOf(x.Header.ID), point{})))
	next := w.sink(2)
	out, err := next.Resolve(w.ctx, []connector.Artifact{x})
	check(t, err)
	if out[0] != connector.Published {
		t.Fatalf("it is %s", out[0])
	}
	check(t, next.Publish(w.ctx, []connector.Artifact{x})...)
	if have := w.Visible(t); !slices.Equal(have, ids(0, 10)) {
		t.Fatalf("visible are %v", have)
	}
}

// TestSinkOpenTransaction leaves a transaction open, as a process does that is
// killed: the next run ends it before it says that nothing was published.
func TestSinkOpenTransaction(t *testing.T) {
	w := newSinkWorld(t)
	s := w.sink(1)
	a := attemptOf(1)
	wr, err := s.OpenWriter(w.ctx, a)
	check(t, err)
	x := w.seal(wr, a, 0, conntest.Rows(0, 10))
	st := s.lane(transactionalID(s.prefix, a.ID))
	p, err := decodePayload(x.Payload)
	check(t, err)
	rows, err := s.records(st, x.Header.ID, p)
	check(t, err)
	check(t, st.client.BeginTransaction())
	r := st.record.with(pointOf(x.Header.ID), point{})
	check(t, produce(w.ctx, st.client, rows, &kgo.Record{Topic: commitsTopic, Partition: s.commits.partition, Key: []byte(laneKeyPrefix + st.txn), Value: r.encode()}))

	next := w.sink(2)
	out, err := next.Resolve(w.ctx, []connector.Artifact{x})
	check(t, err)
	if out[0] != connector.Absent {
		t.Fatalf("it is %s", out[0])
	}
	if err := st.client.EndTransaction(w.ctx, kgo.TryCommit); err == nil {
		t.Fatal("the killed process commits")
	}
	if have := w.Visible(t); len(have) > 0 {
		t.Fatalf("visible are %v", have)
	}
}

// TestSinkKeyed carries rows of a keyed stage, which are not read again, in the
// payload: another process publishes them.
func TestSinkKeyed(t *testing.T) {
	w := newSinkWorld(t)
	s := w.sink(1)
	a := attemptOf(1)
	a.ID.Lane, a.ID.Keyed, a.ID.Subtask, a.ID.Manifest = connector.LaneID{}, true, 2, 5
	wr, err := s.OpenWriter(w.ctx, a)
	check(t, err)
	x := w.seal(wr, a, 0, conntest.Rows(0, 10))
	next := w.sink(2)
	out, err := next.Resolve(w.ctx, []connector.Artifact{x})
	check(t, err)
	if out[0] != connector.Sealed {
		t.Fatalf("it is %s", out[0])
	}
	for range 2 {
		check(t, next.Publish(w.ctx, []connector.Artifact{x})...)
	}
	if have := w.Visible(t); !slices.Equal(have, ids(0, 10)) {
		t.Fatalf("visible are %v", have)
	}
}

// TestSinkSettled keeps the lane's record small, and the artefacts in it that
// somebody may ask for.
func TestSinkSettled(t *testing.T) {
	w := newSinkWorld(t)
	s := w.sink(1)
	a := attemptOf(1)
	wr, err := s.OpenWriter(w.ctx, a)
	check(t, err)
	var all []connector.Artifact
	for i := range uint64(6) {
		x := w.seal(wr, a, i, conntest.Rows(int64(i)*10, 10))
		check(t, s.Publish(w.ctx, []connector.Artifact{x})...)
		if i == 3 {
			check(t, s.Settled(w.ctx, x.Header.ID))
		}
		all = append(all, x)
	}
	next := w.sink(2)
	out, err := next.Resolve(w.ctx, all[3:])
	check(t, err)
	if !slices.Equal(out, []connector.Outcome{connector.Published, connector.Published, connector.Published}) {
		t.Fatalf("they are %v", out)
	}
	if n := len(next.lane(transactionalID(s.prefix, a.ID)).record.published); n != 3 {
		t.Fatalf("%d artefacts are remembered, want 3", n)
	}
}

// TestSinkTopics: topics that are missing, made again, or that forget.
func TestSinkTopics(t *testing.T) {
	w := newSinkWorld(t)
	_, err := w.conn.OpenSink(w.ctx, w.table("nowhere", conntest.Columns()), conntest.OwnerOf(1, 1))
	if !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("a missing topic: %v", err)
	}
	s := w.sink(1)
	a := attemptOf(1)
	wr, err := s.OpenWriter(w.ctx, a)
	check(t, err)
	x := w.seal(wr, a, 0, conntest.Rows(0, 5))
	_, err = w.admin.DeleteTopics(w.ctx, "out")
	check(t, err)
	_, err = w.admin.CreateTopic(w.ctx, 3, 1, nil, "out")
	check(t, err)
	var replaced *replacedError
	if err := s.Publish(w.ctx, []connector.Artifact{x})[0]; !errors.As(err, &replaced) || !errors.Is(err, connector.ErrRefused) {
		t.Errorf("publishing to a topic made again: %v", err)
	}
	if _, err := s.OpenWriter(w.ctx, attemptOf(2)); !errors.As(err, &replaced) {
		t.Errorf("writing on to a topic made again: %v", err)
	}
	out, err := s.Resolve(w.ctx, []connector.Artifact{x})
	check(t, err)
	if have := w.Visible(t); out[0] == connector.Published || len(have) > 0 {
		t.Errorf("it is %s, visible are %v", out[0], have)
	}
	// The topic of commits, made again: nothing is claimed about what was in it.
	_, err = w.admin.DeleteTopics(w.ctx, commitsTopic)
	check(t, err)
	_, err = w.admin.CreateTopic(w.ctx, commitsPartitions, 1, map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}, commitsTopic)
	check(t, err)
	var lost *commitsError
	if _, err := s.Resolve(w.ctx, []connector.Artifact{x}); !errors.As(err, &lost) {
		t.Errorf("the topic of commits was made again: %v", err)
	}
	next := w.sink(2)
	out, err = next.Resolve(w.ctx, []connector.Artifact{x})
	check(t, err)
	if out[0] != connector.Unknown || next.ExplainUnknown(x) == "" {
		t.Errorf("with another topic of commits it is %s", out[0])
	}
	for _, bad := range []struct {
		partitions int32
		policy     string
	}{{commitsPartitions, "delete"}, {4, "compact"}, {commitsPartitions, "compact,delete"}} {
		_, err = w.admin.DeleteTopics(w.ctx, commitsTopic)
		check(t, err)
		_, err = w.admin.CreateTopic(w.ctx, bad.partitions, 1, map[string]*string{"cleanup.policy": &bad.policy}, commitsTopic)
		check(t, err)
		if _, err := w.Open(w.ctx, conntest.OwnerOf(1, 3)); !errors.As(err, &lost) {
			t.Errorf("%d partitions, %s: %v", bad.partitions, bad.policy, err)
		}
	}
}

// TestSinkDirectories: the same job out of another data directory is another
// owner, who may adopt the topic.
func TestSinkDirectories(t *testing.T) {
	w := newSinkWorld(t)
	s := w.sink(5)
	wr, err := s.OpenWriter(w.ctx, attemptOf(1))
	check(t, err)
	x := w.seal(wr, attemptOf(1), 0, conntest.Rows(0, 5))
	other := conntest.OwnerOf(1, 1)
	other.DataDirectory = conntest.UUID(77)
	var owned *connector.OwnedError
	if _, err := w.Open(w.ctx, other); !errors.As(err, &owned) {
		t.Fatalf("another data directory: %v", err)
	}
	other.Adopt = true
	adopted, err := w.Open(w.ctx, other)
	check(t, err)
	defer adopted.Close()
	_, err = adopted.OpenWriter(w.ctx, attemptOf(2))
	check(t, err)
	if err := s.Publish(w.ctx, []connector.Artifact{x})[0]; !errors.Is(err, connector.ErrFenced) {
		t.Fatalf("the former owner publishes: %v", err)
	}
}
