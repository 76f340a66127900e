package keyed

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
)

// BenchmarkStages hands b.N batches of 4,096 rows over to a window aggregate of
// two tasks (COUNT, COUNT, SUM, MIN, LAST_VALUE) with a number of keys, with a
// checkpoint every 200 ms, into a sink that drops them.
func BenchmarkStages(b *testing.B) {
	for _, keys := range []int{1_000, 300_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) { benchStages(b, int64(keys)) })
	}
}

func benchStages(b *testing.B, keys int64) {
	ctx := context.Background()
	w := newWorld()
	p := w.process(0, false)
	led, err := ledger.OpenLedger(ctx, memLedger{p})
	if err != nil {
		b.Fatal(err)
	}
	book := led.Book(ledger.Scope{})
	f := &feed{name: "a"}
	if err := book.Append(ctx, &ledger.Lane{ID: f.lane(), Topic: "a", Source: "a", Partitions: []int32{0}}); err != nil {
		b.Fatal(err)
	}
	factory := &Factory{Store: func(ledger.Scope) checkpoint.Store { return w.checkpoints.Handle() }, Options: Options{CheckpointInterval: 200 * time.Millisecond}}
	st, err := factory.OpenStages(ctx, windowJob(b, 2, 0, "a"), engine.KeyedEnv{Book: book, DeadLetters: memDead{p}, JobEpoch: 1,
		Sinks:   map[graph.NodeID]engine.SinkHandle{3: {Table: &ledger.Table{Name: "out", ID: connector.UUID{3}}, Sink: &memSink{p: p, name: "out"}}},
		Outputs: map[graph.NodeID]connector.UUID{1: {7}}})
	if err != nil {
		b.Fatal(err)
	}
	ex, err := st.Exchange(1)
	if err != nil {
		b.Fatal(err)
	}
	in, err := ex.Attach(ctx, lane.Attachment{Lane: f.lane(), Epoch: 1, Topic: "a", Partitions: []connector.Partition{{TopicID: f.topic()}},
		Start: []ledger.Cursor{{Topic: f.topic(), Watermark: batch.NoWatermark}}})
	if err != nil {
		b.Fatal(err)
	}
	const rows = 4096
	row := func(n int64) event { return event{uid: num(n * 7919 % keys), ts: n % 60_000, v: num(n), s: "room"} }
	b.ResetTimer()
	for i := range b.N {
		events := make([]event, rows)
		for k := range events {
			events[k] = row(int64(i*rows + k))
		}
		x := &batch.Batch{Runs: []batch.Run{{Rows: rows, BaseOffset: int64(i * rows), EndOffset: int64((i + 1) * rows)}}}
		fill(x, events)
		h := &lane.Handover{Batch: x, Moved: []lane.Moved{{Watermark: 0, Cursor: ledger.Cursor{Topic: f.topic(), Offset: int64((i + 1) * rows)}}}}
		if err := in.HandOver(ctx, h); err != nil {
			b.Fatal(err)
		}
	}
	if err := st.Checkpoint(ctx); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(st.Completed()), "checkpoints")
	b.ReportMetric(float64(st.Status()[0].StateBytes)/float64(min(keys, int64(rows*b.N))), "B/key")
	st.Kill()
}
