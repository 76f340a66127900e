package exchange

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

var schema = &batch.Schema{Fields: []types.Field{{Name: "k", Type: types.NewBigInt()}}}

// rows makes a hand-over of rows of one partition that moves it to end, with a
// watermark.
func rows(part int32, end, watermark int64, keys ...int64) *lane.Handover {
	b := &batch.Batch{Schema: schema, Len: len(keys), Cols: make([]batch.Vec, 1)}
	b.Cols[0].Reset(schema.Fields[0].Type, len(keys))
	copy(b.Cols[0].I64, keys)
	b.Runs = []batch.Run{{Partition: part, Rows: int32(len(keys)), BaseOffset: end - int64(len(keys)), EndOffset: end}}
	h := moved(part, end, watermark)
	h.Batch = b
	return h
}

func moved(part int32, end, watermark int64) *lane.Handover {
	return &lane.Handover{Moved: []lane.Moved{{Partition: part, Watermark: watermark,
		Cursor: ledger.Cursor{Topic: connector.UUID{1}, Partition: part, Offset: end, Watermark: watermark}}}}
}

type fixture struct {
	t     *testing.T
	gate  *Gate
	in    []*Inbox
	ctx   context.Context
	lanes []*ledger.Lane
}

// newFixture is a gate with one stage of two tasks that tables a and b reach.
func newFixture(t *testing.T, restored int64, sources ...string) *fixture {
	f := &fixture{t: t, ctx: context.Background()}
	for i, s := range sources {
		f.lanes = append(f.lanes, &ledger.Lane{ID: connector.LaneID{Topic: connector.UUID{byte(i + 1)}}, Topic: s, Source: s, Partitions: []int32{0, 1, 2}})
	}
	f.gate = NewGate(GateConfig{Lanes: func() []*ledger.Lane { return f.lanes }})
	f.in = []*Inbox{NewInbox(1, 1000, restored), NewInbox(1, 1000, restored)}
	f.gate.AddStage(StageConfig{Name: "s", Inboxes: f.in, Watermark: restored,
		Entrances: []EntranceConfig{{Node: 3, Keys: []int{0}, Output: connector.UUID{7}, Sources: sources}}})
	f.gate.Start()
	return f
}

func (f *fixture) attach(i int, epoch uint64, parts int, start ...ledger.Cursor) *Inlet {
	f.t.Helper()
	e, ok := f.gate.Entrance(3)
	if !ok {
		f.t.Fatal("no entrance")
	}
	a := lane.Attachment{Lane: f.lanes[i].ID, Epoch: epoch, Topic: f.lanes[i].Topic}
	for p := range parts {
		a.Partitions = append(a.Partitions, connector.Partition{TopicID: f.lanes[i].ID.Topic, ID: int32(p)})
		c := ledger.Cursor{Topic: f.lanes[i].ID.Topic, Partition: int32(p), Watermark: batch.NoWatermark}
		if p < len(start) {
			c = start[p]
		}
		a.Start = append(a.Start, c)
	}
	in, err := e.Attach(f.ctx, a)
	if err != nil {
		f.t.Fatal(err)
	}
	return in.(*Inlet)
}

func (f *fixture) hand(in *Inlet, h *lane.Handover) {
	f.t.Helper()
	if err := in.HandOver(f.ctx, h); err != nil {
		f.t.Fatal(err)
	}
}

// drain gives the watermarks and barriers that wait in an inbox.
func drain(in *Inbox) (out []int64) {
	for {
		m, ok, err := in.take()
		if !ok || err != nil {
			return out
		}
		switch m.Kind {
		case Watermark:
			out = append(out, m.Time)
		case Barrier:
			out = append(out, -int64(m.Checkpoint))
		}
	}
}

func (f *fixture) expect(what string, want ...int64) {
	f.t.Helper()
	for i, in := range f.in {
		if got := drain(in); !slices.Equal(got, want) {
			f.t.Fatalf("%s: task %d got %v, want %v", what, i, got, want)
		}
	}
}

// TestSilentPartition: data in one of three partitions gives no watermark; when
// the others are idle it does; one that comes back is told what was fired.
func TestSilentPartition(t *testing.T) {
	f := newFixture(t, batch.NoWatermark, "a")
	in := f.attach(0, 1, 3)
	f.hand(in, rows(0, 3, 120_000, 1, 2, 3))
	f.expect("a silent partition holds")
	if err := in.Idle(f.ctx, 1); err != nil {
		t.Fatal(err)
	}
	f.expect("one of two is idle")
	if err := in.Idle(f.ctx, 2); err != nil {
		t.Fatal(err)
	}
	f.expect("both are idle", 120_000)
	if err := in.HandOver(f.ctx, rows(2, 1, 30_000, 5)); !errors.Is(err, ErrRejoin) {
		t.Fatalf("rows of an idle partition: %v, want ErrRejoin", err)
	}
	bound, err := in.Rejoin(f.ctx, 2)
	if err != nil || bound != 120_000 {
		t.Fatalf("rejoin: bound %d, %v; want 120000", bound, err)
	}
	f.hand(in, rows(0, 4, 200_000, 1))
	f.expect("the partition is back and has handed over nothing")
	f.hand(in, rows(2, 1, 30_000, 5))
	f.expect("it is behind what was fired")
	f.hand(in, rows(2, 2, 150_000, 5))
	f.expect("it has caught up", 150_000)
	for p := range int32(3) {
		if err := in.Idle(f.ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	f.expect("all are idle: the watermark does not move")
}

// TestSilentPartitionsIdleAtOnce: when the partition with data becomes idle
// together with the silent ones, its windows fire all the same.
func TestSilentPartitionsIdleAtOnce(t *testing.T) {
	for _, order := range [][]int32{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		f := newFixture(t, batch.NoWatermark, "a")
		in := f.attach(0, 1, 3)
		f.hand(in, rows(0, 3, 120_000, 1, 2, 3))
		for _, p := range order {
			if err := in.Idle(f.ctx, p); err != nil {
				t.Fatal(err)
			}
		}
		f.expect("all are idle", 120_000)
	}
}

// TestWatermarksWaitForAllLanes: no window fires before every lane of the
// stage's sources has attached, and none that the ledger knows is forgotten.
func TestWatermarksWaitForAllLanes(t *testing.T) {
	f := newFixture(t, batch.NoWatermark, "a", "b")
	a := f.attach(0, 1, 1)
	f.hand(a, moved(0, 5, 50))
	f.expect("table b is not read yet")
	if h := f.gate.Holds(0); !slices.Contains(h, "topic b is not read yet") {
		t.Fatalf("holds %v", h)
	}
	b := f.attach(1, 1, 1)
	f.expect("b has handed over nothing")
	f.hand(b, moved(0, 1, 40))
	f.expect("both", 40)
	f.hand(b, moved(0, 9, batch.MaxWatermark))
	f.expect("b has ended", 50)
	f.hand(a, moved(0, 9, batch.MaxWatermark))
	f.expect("all have ended", batch.MaxWatermark)
}

// TestRestoredStageAsksForRejoin: a partition that was idle when the checkpoint
// was made, or is new, may lie behind what the stage has fired.
func TestRestoredStageAsksForRejoin(t *testing.T) {
	f := newFixture(t, 1000, "a")
	f.expect("what was restored is not sent twice")
	start := []ledger.Cursor{{Topic: connector.UUID{1}, Watermark: 1000}, {Topic: connector.UUID{1}, Partition: 1, Watermark: 500}}
	in := f.attach(0, 1, 2, start...)
	f.hand(in, rows(0, 1, 1500, 1))
	if err := in.HandOver(f.ctx, rows(1, 1, 600, 1)); !errors.Is(err, ErrRejoin) {
		t.Fatalf("rows behind the fired bound: %v, want ErrRejoin", err)
	}
	f.hand(in, moved(1, 1, 600)) // a position alone
	if bound, err := in.Rejoin(f.ctx, 1); err != nil || bound != 1000 {
		t.Fatalf("bound %d, %v", bound, err)
	}
	f.hand(in, rows(1, 2, 1200, 1))
	f.expect("the minimum of both", 1200)
}

// TestBatchModeFiresNothingBeforeTheEnd.
func TestBatchModeFiresNothingBeforeTheEnd(t *testing.T) {
	f := newFixture(t, batch.NoWatermark, "a")
	f.gate.cfg.Batch = true
	in := f.attach(0, 1, 1)
	f.hand(in, rows(0, 1, 5000, 1))
	f.expect("in the middle")
	f.hand(in, moved(0, 1, batch.MaxWatermark))
	f.expect("at the end", batch.MaxWatermark)
}

// TestBarrierStandsBetweenHandOvers and answers for lanes that do nothing.
func TestBarrierStandsBetweenHandOvers(t *testing.T) {
	f := newFixture(t, batch.NoWatermark, "a")
	start := ledger.Cursor{Topic: connector.UUID{1}, Offset: 10, Watermark: 5, Counts: ledger.Counts{Records: 10, Read: 10, Folded: 10}}
	in := f.attach(0, 1, 1, start)
	cut := f.gate.Barrier(1)
	if len(cut) != 1 || cut[0].Offset != 10 || cut[0].Output != (connector.UUID{7}) || cut[0].Counts.Folded != 10 {
		t.Fatalf("before the first hand-over: %+v", cut)
	}
	f.hand(in, rows(0, 12, 7, 1, 2))
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if cut = f.gate.Barrier(2); cut[0].Offset != 12 {
		t.Fatalf("a closed lane answers with %d, want 12", cut[0].Offset)
	}
	f.expect("barriers and watermark in order", -1, 7, -2)
	e, _ := f.gate.Entrance(3)
	if got, err := e.Restored(f.ctx, f.lanes[0].ID); err != nil || len(got) != 1 || got[0].Offset != 12 {
		t.Fatalf("a lane that begins again goes on at %+v, %v", got, err)
	}
	behind := ledger.Cursor{Topic: connector.UUID{1}, Offset: 11}
	_, err := e.Attach(f.ctx, lane.Attachment{Lane: f.lanes[0].ID, Epoch: 2, Partitions: []connector.Partition{{TopicID: connector.UUID{1}}}, Start: []ledger.Cursor{behind}})
	if !errors.Is(err, ErrBehind) {
		t.Fatalf("a lane that would hand over again: %v", err)
	}
}

func TestLowerEpochsAreFenced(t *testing.T) {
	f := newFixture(t, batch.NoWatermark, "a")
	old := f.attach(0, 1, 1)
	f.attach(0, 2, 1)
	if err := old.HandOver(f.ctx, rows(0, 1, 1, 1)); !errors.Is(err, connector.ErrFenced) {
		t.Fatalf("an old attempt handed over: %v", err)
	}
	e, _ := f.gate.Entrance(3)
	if _, err := e.Attach(f.ctx, lane.Attachment{Lane: f.lanes[0].ID, Epoch: 1}); !errors.Is(err, connector.ErrFenced) {
		t.Fatalf("an old epoch attached: %v", err)
	}
}

// TestHandOverWaitsForRoomAndIsAllOrNothing.
func TestHandOverWaitsForRoomAndIsAllOrNothing(t *testing.T) {
	f := newFixture(t, batch.NoWatermark, "a")
	in := f.attach(0, 1, 1)
	var keys []int64
	for k := range int64(400) {
		keys = append(keys, k)
	}
	f.hand(in, rows(0, 400, 1, keys...)) // more than the limit is taken once
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	if err := in.HandOver(ctx, rows(0, 401, 2, 400)); !errors.Is(err, context.Canceled) {
		t.Fatalf("no room, and the context ended: %v", err)
	}
	if cut := f.gate.Barrier(1); cut[0].Offset != 400 {
		t.Fatalf("what was not taken has moved the position to %d", cut[0].Offset)
	}
	done := make(chan error)
	go func() { done <- in.HandOver(f.ctx, rows(0, 401, 2, 400)) }()
	for i := range f.in {
		m, err := f.in[i].Recv(f.ctx)
		if err != nil || m.Kind != Data {
			t.Fatalf("task %d: %+v, %v", i, m, err)
		}
		for _, row := range m.Rows.Sel {
			if !state.RangeOf(i, 2).Has(m.Rows.Hashes[row]) {
				t.Fatalf("task %d got a row of another's key group", i)
			}
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	f.gate.Shut(errors.New("over"))
	if err := in.HandOver(f.ctx, moved(0, 402, 3)); err == nil || err.Error() != "over" {
		t.Fatalf("after the end: %v", err)
	}
}

// TestRetiredLaneHoldsNothing: a topic that was created again has a new lane; the
// old one no longer holds windows back. What a lane holds is found by partition.
func TestRetiredLaneHoldsNothing(t *testing.T) {
	f := newFixture(t, batch.NoWatermark, "a", "b")
	a, b := f.attach(0, 1, 1), f.attach(1, 1, 1)
	f.hand(a, moved(0, 1, 10))
	f.hand(b, moved(0, 1, 99))
	f.expect("both", 10)
	gone := *f.lanes[0]
	gone.Retired = true
	f.lanes[0] = &gone
	f.gate.Barrier(1)
	f.expect("without the retired lane", 99, -1)
	e, _ := f.gate.Entrance(3)
	f.lanes = append(f.lanes, &ledger.Lane{ID: connector.LaneID{Topic: connector.UUID{1}, Set: 7}, Topic: "a", Source: "a", Partitions: []int32{0}})
	if got, err := e.Restored(f.ctx, f.lanes[2].ID); err != nil || len(got) != 1 || got[0].Offset != 1 {
		t.Fatalf("a partition that changed its lane goes on at %+v, %v", got, err)
	}
}

// TestEmptyInputEnds: a bounded source without a partition has no lane, and the
// engine says so.
func TestEmptyInputEnds(t *testing.T) {
	f := newFixture(t, batch.NoWatermark, "a")
	f.gate.cfg.Bounded = true
	f.lanes = nil
	f.expect("nobody knows yet")
	f.gate.Expect(nil)
	f.expect("there is no lane", batch.MaxWatermark)
}

// TestInboxAlignsBarriersAndCombinesWatermarks over three channels.
func TestInboxAlignsBarriersAndCombinesWatermarks(t *testing.T) {
	ctx := context.Background()
	in := NewInbox(3, 1000, batch.NoWatermark)
	send := func(ch int, m Message) {
		if err := in.Send(ctx, ch, m); err != nil {
			t.Fatal(err)
		}
	}
	data := func(n int64) Message { return Message{Rows: &Rows{Bytes: n}} }
	send(0, Message{Kind: Watermark, Time: 10})
	send(1, Message{Kind: Watermark, Time: 20})
	send(0, Message{Kind: Barrier, Checkpoint: 1})
	send(0, data(1)) // behind the barrier
	send(1, data(2))
	send(2, data(3))
	var seen []int64
	next := func() (Message, bool) { m, ok, _ := in.take(); return m, ok }
	for {
		m, ok := next()
		if !ok {
			break
		}
		if m.Kind != Data {
			t.Fatalf("got %+v before all channels had said anything", m)
		}
		seen = append(seen, m.Rows.Bytes)
	}
	slices.Sort(seen)
	if !slices.Equal(seen, []int64{2, 3}) {
		t.Fatalf("got rows %v, want those before the barrier", seen)
	}
	send(2, Message{Kind: Watermark, Time: 15})
	if m, ok := next(); !ok || m.Kind != Watermark || m.Time != 10 {
		t.Fatalf("got %+v, want watermark 10", m)
	}
	send(1, Message{Kind: Barrier, Checkpoint: 1})
	send(1, Message{Kind: Watermark, Time: 30})
	if m, ok := next(); ok {
		t.Fatalf("got %+v while channel 2 owes its barrier", m)
	}
	send(2, Message{Kind: Barrier, Checkpoint: 1})
	if m, ok := next(); !ok || m.Kind != Barrier || m.Checkpoint != 1 {
		t.Fatalf("got %+v, want the barrier", m)
	}
	if m, ok := next(); !ok || m.Kind != Data || m.Rows.Bytes != 1 {
		t.Fatalf("got %+v, want the row behind the barrier", m)
	}
	in.Close()
	if _, err := in.Recv(ctx); !errors.Is(err, ErrClosed) {
		t.Fatalf("after Close: %v", err)
	}
	if err := in.Send(ctx, 0, data(1)); !errors.Is(err, ErrClosed) {
		t.Fatalf("sending after Close: %v", err)
	}
}
