package keyed

import (
	"context"
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

// TestCheckpointsByTheClock: one an interval while something has come in, none
// while nothing has.
func TestCheckpointsByTheClock(t *testing.T) {
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
	clock := slot.NewManualClock(time.Unix(1_700_000_000, 0))
	tab := &ledger.Table{Name: "out", ID: connector.UUID{3}}
	factory := &Factory{Store: func(ledger.Scope) checkpoint.Store { return memCheckpoints{p, w.checkpoints.Handle()} }}
	st, err := factory.OpenStages(ctx, countJob(t, graph.Window{Size: minute}, 0), engine.KeyedEnv{Book: book, DeadLetters: memDead{p}, JobEpoch: 1, Clock: clock,
		Sinks:   map[graph.NodeID]engine.SinkHandle{3: {Table: tab, Sink: &memSink{p: p, name: "out"}}},
		Outputs: map[graph.NodeID]connector.UUID{1: {7}}})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Kill()
	// until waits for the driver, which runs on its own.
	until := func(what string, ok func() bool) {
		t.Helper()
		tick, limit := time.NewTicker(time.Millisecond), time.After(10*time.Second)
		defer tick.Stop()
		for !ok() {
			select {
			case <-tick.C:
			case <-limit:
				t.Fatalf("no %s", what)
			}
		}
	}
	armed := func(after time.Time) func() bool {
		return func() bool { at, ok := clock.Next(); return ok && at.After(after) }
	}
	interval := 10 * time.Second
	ex, err := st.Exchange(1)
	if err != nil {
		t.Fatal(err)
	}
	in, err := ex.Attach(ctx, lane.Attachment{Lane: f.lane(), Epoch: 1, Topic: "a", Partitions: []connector.Partition{{TopicID: f.topic()}},
		Start: []ledger.Cursor{{Topic: f.topic(), Watermark: batch.NoWatermark}}})
	if err != nil {
		t.Fatal(err)
	}
	for n := uint64(1); n <= 3; n++ {
		h := &lane.Handover{Moved: []lane.Moved{{Watermark: int64(n), Cursor: ledger.Cursor{Topic: f.topic(), Offset: int64(n)}}}}
		if err := in.HandOver(ctx, h); err != nil {
			t.Fatal(err)
		}
		until("timer", armed(clock.Now()))
		clock.Advance(interval)
		until("checkpoint", func() bool { return st.Completed() == n })
	}
	for range 3 {
		until("timer", armed(clock.Now()))
		clock.Advance(interval)
	}
	until("timer", armed(clock.Now()))
	if n := st.Completed(); n != 3 {
		t.Fatalf("%d checkpoints, the last of them of nothing", n)
	}
	c, ok := book.Cursor(ledger.CursorKey{Output: connector.UUID{7}, Topic: f.topic()})
	if !ok || c.Offset != 3 {
		t.Fatalf("cursor %+v", c)
	}
}
