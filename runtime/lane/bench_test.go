package lane_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/lane/lanetest"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/slot"
	"github.com/millrace/millrace/runtime/types"
)

// BenchmarkLane is what the lane itself costs: 12 columns, a WHERE, hashes,
// offset sets, counts by minute; a source that decodes nothing and a sink that
// keeps nothing. ns/row.
func BenchmarkLane(b *testing.B) {
	s := &batch.Schema{}
	for i := range 12 {
		f := types.Field{Name: fmt.Sprintf("c%d", i), Type: types.NewBigInt()}
		switch {
		case i == 0:
			f.Type = types.NewBoolean()
		case i == 1:
			f.Type = types.NewTimestamp(3)
		case i < 8:
			f.Type = types.NewString()
		}
		s.Fields = append(s.Fields, f)
	}
	const rows = 4096
	src := &benchSource{schema: s, rows: rows, batches: b.N/rows + 1}
	src.fill()
	exprs := make([]expr.Expr, 12)
	for i := range exprs {
		exprs[i] = column(s, i)
	}
	table := lanetest.Table("t", s)
	job := &graph.Job{Nodes: []*graph.Node{
		{ID: 0, Op: &graph.Source{Table: lanetest.Table("s", s), Columns: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, Watermark: column(s, 1)}, Schema: s, TimeColumn: 1},
		{ID: 1, Op: &graph.Filter{Predicate: column(s, 0)}, Inputs: []graph.NodeID{0}, Schema: s, TimeColumn: 1},
		{ID: 2, Op: &graph.Project{Exprs: exprs}, Inputs: []graph.NodeID{1}, Schema: s, TimeColumn: 1},
		{ID: 3, Op: &graph.Sink{Table: table}, Inputs: []graph.NodeID{2}, Schema: s, TimeColumn: 1},
	}}
	store := ledger.NewMemStore()
	led, err := ledger.OpenLedger(context.Background(), store)
	if err != nil {
		b.Fatal(err)
	}
	parts, _ := src.Partitions(context.Background())
	l, err := lane.New(lane.Config{Name: "bench", Fact: &ledger.Lane{Topic: "t", Partitions: []int32{0}}, Partitions: parts, Job: job,
		Sources: []graph.NodeID{0}, Source: src, Book: led.Book(scope), DeadLetters: lanetest.NewWorld().Process().DeadLetters(),
		Slot: slot.New(slot.Options{}), Outputs: []lane.OutputConfig{{Table: &ledger.Table{Name: "t"}, Nodes: []graph.NodeID{3},
			Sink: &benchSink{}, SinkTable: table}}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	l.Start()
	<-l.Done()
	b.StopTimer()
	if state, err := l.State(); state != lane.Finished {
		b.Fatal(state, err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(src.batches*rows), "ns/row")
}

type benchSource struct {
	schema        *batch.Schema
	rows, batches int
	batch         batch.Batch
	done          int
}

func (s *benchSource) fill() {
	b := &s.batch
	b.Reset(s.schema)
	b.Len = s.rows
	for c := range b.Cols {
		v := &b.Cols[c]
		v.Reset(s.schema.Fields[c].Type, s.rows)
		for i := range s.rows {
			switch s.schema.Fields[c].Type.Kind {
			case types.Boolean:
				v.Bools.Put(i, i%10 > 0)
			case types.Varchar:
				v.PutString(i, fmt.Sprintf("value-%d-%d", c, i))
			case types.Timestamp:
				v.SetInt64(i, int64(i)*10_000)
			default:
				v.SetInt64(i, int64(i))
			}
		}
		v.PadOffsets()
	}
}

func (s *benchSource) Partitions(context.Context) ([]connector.Partition, error) {
	return []connector.Partition{{Topic: "t"}}, nil
}
func (s *benchSource) Start(_ context.Context, p []connector.Partition) ([]connector.Position, error) {
	return make([]connector.Position, len(p)), nil
}
func (s *benchSource) End(_ context.Context, p []connector.Partition) ([]int64, error) {
	return []int64{int64(s.rows * s.batches)}, nil
}
func (s *benchSource) Check(_ context.Context, p []connector.Position) ([]error, error) {
	return make([]error, len(p)), nil
}
func (s *benchSource) Open(context.Context, []connector.Split, []int, func()) (connector.Reader, error) {
	return s, nil
}
func (s *benchSource) Next(_ context.Context, b *batch.Batch, _, _ int) error {
	if s.done == s.batches {
		return io.EOF
	}
	*b = s.batch
	at := int64(s.done * s.rows)
	b.Runs = []batch.Run{{Rows: int32(s.rows), BaseOffset: at, EndOffset: at + int64(s.rows), LogTime: 60_000}}
	s.done++
	return nil
}
func (s *benchSource) Raw(int32, int64) (connector.RawRecord, bool) {
	return connector.RawRecord{}, false
}
func (s *benchSource) LogEnd(int32) int64 { return int64(s.rows * s.batches) }
func (s *benchSource) Release()           {}
func (s *benchSource) Close() error       { return nil }

type benchSink struct{ open []connector.Bucket }

func (s *benchSink) MaxEpoch(context.Context, connector.LaneID) (uint64, error) { return 0, nil }
func (s *benchSink) OpenWriter(context.Context, connector.Attempt) (connector.Writer, error) {
	return s, nil
}
func (s *benchSink) Roll() connector.RollPolicy {
	return connector.RollPolicy{Bytes: 128 << 20, Age: time.Hour}
}
func (s *benchSink) Close() error { return nil }
func (s *benchSink) Publish(_ context.Context, a []connector.Artifact) []error {
	return make([]error, len(a))
}
func (s *benchSink) Resolve(_ context.Context, a []connector.Artifact) ([]connector.Outcome, error) {
	return make([]connector.Outcome, len(a)), nil
}
func (s *benchSink) Discard(context.Context, []connector.Artifact) error { return nil }
func (s *benchSink) Buckets(_ *batch.Batch, sel batch.Sel, out []connector.BucketID) ([]connector.BucketID, error) {
	for range sel {
		out = append(out, 0)
	}
	return out, nil
}
func (s *benchSink) Write(_ *batch.Batch, sel batch.Sel, _ connector.BucketID) error {
	if s.open == nil {
		s.open = []connector.Bucket{{}}
	}
	s.open[0].Rows += int64(len(sel))
	s.open[0].Bytes += int64(len(sel)) * 60
	return nil
}
func (s *benchSink) Open() []connector.Bucket { return s.open }
func (s *benchSink) HeldBytes() int64         { return 0 }
func (s *benchSink) Seal(_ context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	s.open = nil
	out := make([]connector.Artifact, len(req))
	for i := range out {
		out[i].Header = req[i].Header
	}
	return out, nil
}
