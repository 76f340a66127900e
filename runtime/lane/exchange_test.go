package lane_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
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
)

// stage is a keyed stage that keeps what it is handed, and a checkpoint.
type stage struct {
	mu         sync.Mutex
	rows       []string
	moved      map[int32]lane.Moved
	idle       []int32
	rejoined   []int32
	fired      int64
	checkpoint []ledger.Cursor
	kept       []string // rows in the checkpoint
	attached   lane.Attachment
}

func (s *stage) Restored(context.Context, connector.LaneID) ([]ledger.Cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checkpoint, nil
}

func (s *stage) Attach(_ context.Context, a lane.Attachment) (lane.Inlet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attached, s.moved = a, map[int32]lane.Moved{}
	s.rows = slices.Clone(s.kept)
	return s, nil
}

func (s *stage) HandOver(ctx context.Context, h *lane.Handover) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	for k := range h.Batch.Runs {
		run := &h.Batch.Runs[k]
		for i := int(run.FirstRow); i < int(run.FirstRow+run.Rows); i++ {
			s.rows = append(s.rows, fmt.Sprintf("%d@%d/%d.%d", h.Batch.Cols[0].Int64(i), run.Partition, h.Batch.Offset(run, i), h.Batch.Index(i)))
		}
	}
	for _, m := range h.Moved {
		s.moved[m.Partition] = m
	}
	return nil
}

func (s *stage) Idle(_ context.Context, p int32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, p)
	return nil
}

func (s *stage) Rejoin(_ context.Context, p int32) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejoined = append(s.rejoined, p)
	return s.fired, nil
}

func (s *stage) Close() error { return nil }

// barrier takes a checkpoint of what was handed over so far.
func (s *stage) barrier() []ledger.Cursor {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checkpoint, s.kept = nil, slices.Clone(s.rows)
	for p := range s.attached.Partitions {
		if m, ok := s.moved[int32(p)]; ok {
			s.checkpoint = append(s.checkpoint, m.Cursor)
		} else {
			s.checkpoint = append(s.checkpoint, s.attached.Start[p])
		}
	}
	return s.checkpoint
}

var timedSchema = lanetest.Schema("id", "BIGINT", "ts", "TIMESTAMP")

// timed is GROUP BY a window of 10 s over the topic, whose row time is ts.
func timed(t *testing.T, s *stage, p *lanetest.Process, topic *lanetest.Topic, clock slot.Clock, bounded bool) *life {
	t.Helper()
	return timedAnd(t, s, p, topic, clock, bounded, nil)
}

// timedAnd is timed with a further table, or nil.
func timedAnd(t *testing.T, s *stage, p *lanetest.Process, topic *lanetest.Topic, clock slot.Clock, bounded bool, more *ledger.Table) *life {
	t.Helper()
	led, err := ledger.OpenLedger(context.Background(), p.Store())
	if err != nil {
		t.Fatal(err)
	}
	l := &life{book: led.Book(scope), process: p}
	op := &graph.WindowAggregate{Window: graph.Window{Size: 10_000}, Time: 1, Late: graph.LateRows{Table: -1}}
	job := &graph.Job{Nodes: []*graph.Node{
		{ID: 0, Op: &graph.Source{Table: lanetest.Table("topic", timedSchema), Columns: []int{0, 1},
			Watermark: &expr.Column{Index: 1, Name: "ts", T: timedSchema.Fields[1].Type}}, Schema: timedSchema, TimeColumn: 1},
		{ID: 1, Op: &graph.Exchange{Parallelism: 1}, Inputs: []graph.NodeID{0}, Schema: timedSchema, TimeColumn: 1},
		{ID: 2, Op: op, Inputs: []graph.NodeID{1}, Schema: timedSchema, TimeColumn: 1, Path: "w"},
	}}
	tab := &ledger.Table{Name: "w", Exchange: true}
	copy(tab.ID[:], "table-w")
	outputs := []lane.OutputConfig{{Table: tab, Nodes: []graph.NodeID{1}, Exchange: s, Stage: job.Nodes[2], IdleTimeout: time.Minute}}
	if more != nil {
		sink := lanetest.Table(more.Name, timedSchema)
		job.Nodes = append(job.Nodes, &graph.Node{ID: 3, Op: &graph.Sink{Table: sink}, Inputs: []graph.NodeID{0}, Schema: timedSchema, TimeColumn: 1})
		outputs = append(outputs, lane.OutputConfig{Table: more, Nodes: []graph.NodeID{3}, Sink: p.Sink(more.Name, lanetest.SinkOptions{}), SinkTable: sink})
	}
	l.Lane, err = lane.New(lane.Config{Name: topic.Name, Fact: &ledger.Lane{ID: connector.LaneID{Topic: topic.ID}, Topic: topic.Name, Partitions: []int32{0, 1}},
		Partitions: topic.Partitions(), Job: job, Sources: []graph.NodeID{0}, Source: p.Source(topic, lanetest.SourceOptions{Bounded: bounded, MaxRecords: 3}),
		Book: l.book, DeadLetters: p.DeadLetters(), Slot: slot.New(slot.Options{Clock: clock}), Options: lane.Options{Linger: -1, RestartMin: time.Millisecond},
		Outputs: outputs, NewEnds: true})
	if err != nil {
		t.Fatal(err)
	}
	l.Start()
	return l
}

func timedRow(id, ms int64) lanetest.Record {
	return lanetest.Record{Rows: [][]any{{id, ms * 1000}}}
}

// TestLateRowsAreDecidedByTheirOwnPartition: a row is late iff its partition's
// watermark before it stands at its window's last millisecond or later.
func TestLateRowsAreDecidedByTheirOwnPartition(t *testing.T) {
	topic := lanetest.NewTopic("timed", timedSchema, 2)
	topic.Append(0, timedRow(1, 0), timedRow(2, 9_998), timedRow(3, 5_000), // not late: 9,998 < 9,999
		timedRow(4, 9_999), timedRow(5, 5_000), // late
		timedRow(6, 10_000), lanetest.Record{Rows: [][]any{{int64(7), nil}}}, // NULL row time
		lanetest.Record{Rows: [][]any{{int64(8), lanetest.Bad{Code: batch.CodeTypeMismatch, Message: "no time"}}}})
	topic.Append(1, timedRow(11, 3_000)) // its own partition has seen nothing
	s := &stage{}
	w := lanetest.NewWorld()
	l := timed(t, s, w.Process(), topic, nil, true)
	l.await(t)
	slices.Sort(s.rows)
	if want := []string{"11@1/0.0", "1@0/0.0", "2@0/1.0", "3@0/2.0", "4@0/3.0", "6@0/5.0"}; !slices.Equal(s.rows, want) {
		t.Errorf("handed over %v, want %v", s.rows, want)
	}
	var letters []string
	for _, d := range w.Dead() {
		letters = append(letters, fmt.Sprintf("%d %s", d.Offset, d.Reason))
	}
	if want := []string{"4 late", "6 null_event_time", "7 type_mismatch"}; !slices.Equal(letters, want) {
		t.Errorf("dead letters %v, want %v", letters, want)
	}
	c := s.moved[0].Cursor
	if c.Offset != 8 || c.Counts.Read != 8 || c.Counts.Folded != 5 || c.Counts.Late != 1 || c.Counts.Dead.Sum() != 2 || c.Counts.Open() != 0 {
		t.Errorf("cursor %+v", c)
	}
	if s.moved[0].Watermark != batch.MaxWatermark || s.moved[1].Watermark != batch.MaxWatermark {
		t.Errorf("watermarks at the end: %+v", s.moved)
	}
}

// TestNewTableOnAnOldTopic: a table that is added later is read from the topic's
// first record, which is not the first that the stage has seen. The stage gets
// nothing twice, and what was late stays late.
func TestNewTableOnAnOldTopic(t *testing.T) {
	topic := lanetest.NewTopic("timed", timedSchema, 2)
	topic.Append(0, timedRow(1, 50_000), timedRow(2, 45_000), timedRow(3, 41_000))
	s, w := &stage{}, lanetest.NewWorld()
	timed(t, s, w.Process(), topic, nil, true).await(t)
	s.barrier()
	topic.Truncate(0, 1)
	topic.Append(0, timedRow(4, 42_000), timedRow(5, 60_000))
	l := timedAnd(t, s, w.Process(), topic, nil, true, &ledger.Table{Name: "new", ID: tableID("new")})
	l.await(t)
	slices.Sort(s.rows)
	if want := []string{"1@0/0.0", "5@0/4.0"}; !slices.Equal(s.rows, want) {
		t.Errorf("handed over %v, want %v", s.rows, want)
	}
	if c := s.moved[0].Cursor; c.Counts.Read != 5 || c.Counts.Folded != 2 || c.Counts.Late != 3 {
		t.Errorf("cursor %+v", c)
	}
	if got := w.Rows("new"); len(got) != 4 {
		t.Errorf("the new table has %v", got)
	}
}

// TestHandOverGoesOnFromTheCheckpoint: after a crash the lane hands over what
// is above the restored position, with the watermark it had there, and buries
// nothing a second time.
func TestHandOverGoesOnFromTheCheckpoint(t *testing.T) {
	topic := lanetest.NewTopic("timed", timedSchema, 2)
	want := map[string]int{}
	for i := range int64(10) {
		topic.Append(0, timedRow(i, 20_000-i*2_000)) // all but the first ones late
		if 20_000-i*2_000 >= 20_000-20_000%10_000 {
			want[fmt.Sprintf("%d@0/%d.0", i, i)]++
		}
	}
	s := &stage{}
	w := lanetest.NewWorld()
	p := w.Process()
	l := timed(t, s, p, topic, nil, false)
	until(t, l, "all rows", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.moved[0].Cursor.Offset == 10
	})
	cs := s.barrier()
	if cs[0].Offset != 10 || cs[1].Offset != 0 {
		t.Fatalf("the barrier answers %+v", cs)
	}
	// The stage writes it into the ledger when the checkpoint is complete.
	if err := l.book.Append(context.Background(), &cs[0]); err != nil {
		t.Fatal(err)
	}
	for i := int64(10); i < 20; i++ {
		topic.Append(0, timedRow(i, 15_000)) // late by the restored watermark alone
	}
	until(t, l, "late rows", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.moved[0].Cursor.Offset == 20
	})
	for _, r := range l.Rows() {
		if r.Counts.Open() != r.Open {
			t.Errorf("the equation does not hold: %+v", r)
		}
	}
	l.Kill() // what was handed over after the barrier is lost with the stage
	letters := len(w.Dead())
	l = timed(t, s, w.Process(), topic, nil, true)
	l.await(t)
	got := map[string]int{}
	for _, r := range s.rows {
		got[r]++
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("handed over %v, want %v", got, want)
	}
	if len(w.Dead()) != letters {
		t.Errorf("%d dead letters, %d before the crash", len(w.Dead()), letters)
	}
	if c := s.moved[0].Cursor.Counts; c.Read != 20 || c.Late != 19-int64(len(want))+1 {
		t.Errorf("counts %+v, %d rows in time", c, len(want))
	}
}

// TestIdlePartitionRejoins: after its timeout at the log's end a partition is
// idle; its next rows are judged by what the stage had fired meanwhile.
func TestIdlePartitionRejoins(t *testing.T) {
	topic := lanetest.NewTopic("timed", timedSchema, 2)
	topic.Append(0, timedRow(1, 1_000))
	clock := slot.NewManualClock(time.UnixMilli(1_700_000_000_000))
	s := &stage{fired: batch.NoWatermark}
	w := lanetest.NewWorld()
	l := timed(t, s, w.Process(), topic, clock, false)
	until(t, l, "the first row", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.rows) == 1
	})
	l.Quiesce()
	clock.Advance(59 * time.Second)
	l.Wake()
	l.Quiesce()
	s.mu.Lock()
	if len(s.idle) > 0 {
		t.Errorf("idle before the timeout: %v", s.idle)
	}
	s.fired = 19_999 // [0, 10 s) and [10 s, 20 s) have fired
	s.mu.Unlock()
	clock.Advance(2 * time.Second)
	until(t, l, "both partitions idle", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.idle) == 2
	})
	topic.Append(0, timedRow(2, 15_000), timedRow(3, 25_000))
	until(t, l, "the row in time", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.rows) == 2
	})
	if !slices.Equal(s.rejoined, []int32{0, 1, 0}) || s.rows[1] != "3@0/2.0" {
		t.Errorf("rejoined %v, rows %v", s.rejoined, s.rows)
	}
	if d := w.Dead(); len(d) != 1 || d[0].Reason != batch.CodeLateIdle || d[0].Offset != 1 {
		t.Errorf("dead letters %+v", d)
	}
	l.Kill()
}
