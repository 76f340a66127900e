package lane_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/lane/lanetest"
	"github.com/millrace/millrace/runtime/ledger"
)

// twice adds a second INSERT into the first table, with the id as v.
func (s *setup) twice() {
	s.more = func(j *graph.Job) graph.NodeID {
		project := graph.NodeID(len(j.Nodes))
		exprs := []expr.Expr{column(topicSchema, 0), column(topicSchema, 1), column(topicSchema, 0)}
		j.Nodes = append(j.Nodes,
			&graph.Node{ID: project, Op: &graph.Project{Exprs: exprs}, Inputs: []graph.NodeID{0}, Schema: tableSchema, TimeColumn: -1},
			&graph.Node{ID: project + 1, Op: &graph.Sink{Table: lanetest.Table("t", tableSchema)}, Inputs: []graph.NodeID{project}, Schema: tableSchema, TimeColumn: -1})
		return project + 1
	}
}

// TestTwoInsertsIntoOneTable: a record gives two rows that go into different
// table partitions; their files are one intent, so that no crash between them
// can lose a row or bring one twice.
func TestTwoInsertsIntoOneTable(t *testing.T) {
	topic := lanetest.NewTopic("clicks", topicSchema, 1)
	var want []string
	for i := range int64(12) {
		topic.Append(0, lanetest.Record{Rows: [][]any{{100 + i, "p", true, i % 2}}})
		want = append(want, fmt.Sprintf("%d|p|%d", 100+i, i%2), fmt.Sprintf("%d|p|%d", 100+i, 100+i))
	}
	slices.Sort(want)
	s := setup{topic: topic, tables: []string{"t"}, noWhere: true, source: lanetest.SourceOptions{Bounded: true, MaxRecords: 5},
		sink: lanetest.SinkOptions{PartitionBy: "v", Roll: connector.RollPolicy{Bytes: 60}}}
	s.twice()
	ops := steps(t, &s)
	for n := 1; n <= len(ops); n++ {
		w := lanetest.NewWorld()
		p := w.Process()
		p.CrashAt(n, n%2 == 0)
		s.start(t, p).await(t)
		s.start(t, w.Process()).await(t)
		if got := w.Rows("t"); !slices.Equal(got, want) {
			t.Fatalf("crash at operation %d (%s):%s", n, ops[n-1], diff(got, want))
		}
		s.equation(t, w)
	}
}

// TestWriterFullInTheMiddleOfABatch: what of a batch is in the writer and not
// yet named is not sealed to make room for the rest.
func TestWriterFullInTheMiddleOfABatch(t *testing.T) {
	topic := lanetest.NewTopic("clicks", topicSchema, 1)
	for i := range int64(30) {
		topic.Append(0, lanetest.Record{Rows: [][]any{{i, "p", true, i}}})
	}
	s := setup{topic: topic, tables: []string{"t"}, noWhere: true, source: lanetest.SourceOptions{Bounded: true, MaxRecords: 2},
		sink: lanetest.SinkOptions{MaxRows: 7}}
	s.twice()
	w := lanetest.NewWorld()
	l := s.start(t, w.Process())
	l.await(t)
	if n := len(w.Rows("t")); n != 60 {
		t.Errorf("%d rows, want 60", n)
	}
	for _, line := range l.notices {
		if strings.Contains(line, "BUG") {
			t.Error(line)
		}
	}
	s.equation(t, w)
}

// TestLostWhilePublishing: a publish fails, and what was sealed is gone when
// the lane looks. Invariant 3: it does not take that for a refusal.
func TestLostWhilePublishing(t *testing.T) {
	topic, parts := filled(4, 30)
	s := small(topic)
	w := lanetest.NewWorld()
	p := w.Process()
	fail := failNth("publish", 1, false, errTimeout)
	p.SetFault(func(op string) (error, bool, <-chan struct{}) {
		err, apply, block := fail(op)
		if err != nil {
			w.Unstage("t")
		}
		return err, apply, block
	})
	l := s.start(t, p)
	until(t, l, "stop", func() bool { state, _ := l.State(); return state == lane.Stopped })
	_, err := l.State()
	var amb *lane.AmbiguousError
	if !errors.As(err, &amb) || !amb.Gone {
		t.Fatalf("stopped by %v", err)
	}
	if err := l.Resume(lane.ResumeOptions{Rebuild: true}); err != nil {
		t.Fatal(err)
	}
	l.await(t)
	s.verify(t, w, "t", expect(parts, false))
}

// TestOpenFilesAreBounded: the slot's budget holds whatever the rows are.
// Invariant 8.
func TestOpenFilesAreBounded(t *testing.T) {
	topic := lanetest.NewTopic("clicks", topicSchema, 1)
	for i := range int64(200) {
		topic.Append(0, lanetest.Record{Rows: [][]any{{i, fmt.Sprintf("p%d", i%10), true, i}}})
	}
	s := setup{topic: topic, tables: []string{"t"}, source: lanetest.SourceOptions{MaxRecords: 8}, openFiles: 3,
		sink: lanetest.SinkOptions{PartitionBy: "p", Roll: connector.RollPolicy{Bytes: 1 << 20}}}
	w := lanetest.NewWorld()
	l := s.start(t, w.Process())
	until(t, l, "end of the topic", func() bool {
		st := l.Status()
		if len(st.Outputs) == 1 && st.Outputs[0].Files > 3+8 {
			t.Fatalf("%d files are open", st.Outputs[0].Files)
		}
		return len(st.Partitions) == 1 && st.Partitions[0].Next == 200
	})
	l.Quiesce()
	if n := l.Status().Outputs[0].Files; n > 3 {
		t.Errorf("%d files are open, at most 3 may be", n)
	}
	if err := l.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.Rows("t")); n != 200 {
		t.Errorf("%d rows", n)
	}
}

// TestEpochAboveTheSinks: a ledger that knows nothing of earlier attempts does
// not start below what the sink has seen. Invariant 9.
func TestEpochAboveTheSinks(t *testing.T) {
	topic, _ := filled(6, 10)
	s := small(topic)
	w := lanetest.NewWorld()
	for range 3 {
		s.start(t, w.Process()).await(t)
	}
	w.Store = ledger.NewMemStore()
	l := s.start(t, w.Process())
	l.await(t)
	if e, _ := l.book.LaneEpoch(connector.LaneID{Topic: topic.ID}); e != 4 {
		state, err := l.State()
		t.Errorf("the lane is %s in epoch %d: %v", state, e, err)
	}
}

// TestCommittedRecordsThatNoLongerDecode: what a committed artefact holds is
// neither evaluated nor buried again, also when the edited job cannot read it.
// Invariant 2.
func TestCommittedRecordsThatNoLongerDecode(t *testing.T) {
	good, bad := lanetest.NewTopic("clicks", topicSchema, 1), lanetest.NewTopic("clicks", topicSchema, 1)
	for i := range int64(20) {
		p := "full"
		if i == 0 {
			p = "waits" // its file is open to the end and holds the position back
		}
		row := lanetest.Record{Rows: [][]any{{i, p, true, i}}}
		good.Append(0, row)
		if i > 0 {
			row = lanetest.Record{Note: batch.CodeMalformed}
		}
		bad.Append(0, row)
	}
	s := setup{topic: good, tables: []string{"t"}, source: lanetest.SourceOptions{MaxRecords: 4},
		sink: lanetest.SinkOptions{PartitionBy: "p", Roll: connector.RollPolicy{Bytes: 100}}}
	w := lanetest.NewWorld()
	p := w.Process()
	l := s.start(t, p)
	until(t, l, "reading", func() bool { st := l.Status(); return len(st.Partitions) == 1 && st.Partitions[0].Next == 20 })
	l.Quiesce()
	l.Kill()
	before := len(w.Rows("t"))
	s.topic, s.source.Bounded = bad, true
	s.start(t, w.Process()).await(t)
	row := s.equation(t, w).Rows()[0]
	if before < 5 || int(row.Counts.Written) != before+1 || len(w.Rows("t")) != before+1 {
		t.Errorf("%d rows were there, now %d: %+v", before, len(w.Rows("t")), row.Counts)
	}
	if got := int64(len(w.Dead())); got != row.Counts.Dead.Sum() || got+row.Counts.Written != 20 {
		t.Errorf("%d dead letters: %+v", got, row.Counts)
	}
}
