package keyed

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/slot"
)

// TestStateLivesByTheClock: a group that no row came to for its time to live begins
// anew, and is counted; one that rows came to goes on.
func TestStateLivesByTheClock(t *testing.T) {
	ctx := context.Background()
	w := newWorld()
	p := w.process(0, false)
	led, err := ledger.OpenLedger(ctx, memLedger{p})
	if err != nil {
		t.Fatal(err)
	}
	book := led.Book(ledger.Scope{})
	f := at(0)
	if err := book.Append(ctx, &ledger.Lane{ID: f.lane(), Topic: "a", Source: "a", Partitions: []int32{0}}); err != nil {
		t.Fatal(err)
	}
	b, g := groupJob(t, 1, []int{0}, call(t, "COUNT(*)", "COUNT", eventSchema))
	b.job.Batch = false
	op := b.job.Nodes[g].Op.(*graph.GroupAggregate)
	op.Updates, op.TTL = true, time.Hour.Milliseconds()
	b.sink("out", g)
	clock := slot.NewManualClock(time.Unix(1_700_000_000, 0))
	factory := &Factory{Store: func(ledger.Scope) checkpoint.Store { return memCheckpoints{p, w.checkpoints.Handle()} }, Options: Options{CheckpointInterval: -1}}
	st, err := factory.OpenStages(ctx, b.job, engine.KeyedEnv{Book: book, DeadLetters: memDead{p}, JobEpoch: 1, Clock: clock,
		Sinks:   map[graph.NodeID]engine.SinkHandle{3: {Table: &ledger.Table{Name: "out", ID: connector.UUID{3}}, Sink: &memSink{p: p, name: "out"}}},
		Outputs: map[graph.NodeID]connector.UUID{1: {7}}})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Kill()
	ex, err := st.Exchange(1)
	if err != nil {
		t.Fatal(err)
	}
	in, err := ex.Attach(ctx, lane.Attachment{Lane: f.lane(), Epoch: 1, Topic: "a", Partitions: []connector.Partition{{TopicID: f.topic()}},
		Start: []ledger.Cursor{{Topic: f.topic(), Watermark: batch.NoWatermark}}})
	if err != nil {
		t.Fatal(err)
	}
	offset := int64(0)
	give := func(uid int64) {
		t.Helper()
		rows := &batch.Batch{}
		fill(rows, []event{{num(uid), 0, nil, ""}})
		rows.Runs = []batch.Run{{Rows: 1, BaseOffset: offset, EndOffset: offset + 1}}
		rows.Watermark = []int64{batch.NoWatermark}
		offset++
		h := &lane.Handover{Batch: rows, Sel: batch.Sel{0}, Moved: []lane.Moved{{Watermark: batch.NoWatermark, Cursor: ledger.Cursor{Topic: f.topic(), Offset: offset, Watermark: batch.NoWatermark}}}}
		if err := in.HandOver(ctx, h); err != nil {
			t.Fatal(err)
		}
		if err := st.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
	}
	give(1)
	give(2)
	clock.Advance(40 * time.Minute)
	give(1)
	clock.Advance(30 * time.Minute)
	give(1)
	give(2)
	want := []string{"+U 1|2", "+U 1|3", "-U 1|1", "-U 1|2", "1|1", "2|1", "2|1"}
	tick, limit := time.NewTicker(time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for {
		got := slices.Sorted(slices.Values(w.rows("out")))
		if slices.Equal(got, want) {
			break
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%v, want %v", got, want)
		}
	}
	if n := st.Status()[0].Expired; n != 1 {
		t.Errorf("%d groups are counted as expired, want 1", n)
	}
}
