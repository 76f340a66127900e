package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// sinkWorld is a topic with the sink in front of it.
type sinkWorld struct {
	*world
	with []string
	out  string         // the topic
	job  connector.UUID // whose the sinks are
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
	var rs []*kgo.Record
	var err error
	w.patiently(func() bool {
		rs, err = w.readCommitted(w.out)
		return err == nil && len(rs) >= n
	})
	check(t, err)
	return idsOf(t, rs)
}

func (w *sinkWorld) Shared() {}

func newSinkWorld(t testing.TB, with ...string) *sinkWorld {
	w := &sinkWorld{world: newWorld(t), with: with, out: "out", job: conntest.UUID(1)}
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
	rs, err := w.readCommitted(topic)
	check(w.t, err)
	return rs
}

func (w *world) readCommitted(topic string) (out []*kgo.Record, err error) {
	ends, err := w.admin.ListCommittedOffsets(w.ctx, topic)
	if err = errors.Join(err, ends.Error()); err != nil {
		return nil, err
	}
	from := map[int32]kgo.Offset{}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			from[o.Partition], left[o.Partition] = kgo.NewOffset().AtStart(), o.Offset
		}
	})
	if len(left) == 0 {
		return nil, nil
	}
	c, _ := w.dial(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), kgo.FetchMaxWait(20*time.Millisecond))
	defer c.Close()
	for len(left) > 0 {
		fs := c.PollFetches(w.ctx)
		if err := fs.Err(); err != nil {
			return nil, err
		}
		fs.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				out = append(out, r)
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return out, nil
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

// lane is the lane that the tests write as.
var lane = connector.LaneID{Topic: conntest.UUID(7), Set: 1}

func attemptOf(epoch uint64) connector.Attempt {
	return connector.Attempt{ID: connector.ArtifactID{Job: conntest.UUID(1), Table: conntest.UUID(9), Lane: lane, Epoch: epoch}, MemoryBytes: 16 << 20}
}

func (w *sinkWorld) sink(epoch uint64) *sink {
	w.t.Helper()
	o := conntest.OwnerOf(1, epoch)
	o.Job = w.job
	s, err := w.Open(w.ctx, o)
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

// settled looks what became of two artefacts, the first of which was published: what
// is said is what readers see; then the second one's rows are there, and each once. a
// is the attempt that goes on. It does what a lane does, which tries again where an error
// is Retryable.
func (w *sinkWorld) settled(t *testing.T, s *sink, a connector.Attempt, first, second connector.Artifact, restart bool) {
	t.Helper()
	open, still := connector.Sealed, restart // still: nothing of this process is sealed
	if restart {
		open = connector.Absent
	}
	for end := time.Now().Add(w.patience); ; a.ID.Epoch++ {
		var out []connector.Outcome
		var err error
		w.patiently(func() bool {
			out, err = s.Resolve(w.ctx, []connector.Artifact{first, second})
			return !again(err)
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
		if out[1] == connector.Published {
			return
		}
		if out[1] != open {
			t.Fatalf("the second is %s", out[1])
		}
		wr, err := s.OpenWriter(w.ctx, a)
		if err == nil {
			if still {
				second, still, open = w.seal(wr, a, 0, conntest.Rows(10, 10)), false, connector.Sealed
			}
			err = s.Publish(w.ctx, []connector.Artifact{second})[0]
		}
		if err != nil && (!again(err) || time.Now().After(end)) {
			t.Fatal(err)
		}
	}
}

// again reports an error after which a lane goes on by itself.
func again(err error) bool {
	var r connector.Retryable
	return errors.As(err, &r) && r.Retryable()
}
