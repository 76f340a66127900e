package keyed

import (
	"context"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane/lanetest"
	"github.com/millrace/millrace/runtime/ledger"
)

// TestIdlePartitionThroughARestart: a partition without data is idle and windows
// fire without it; the stages are stopped and started again, and only then an old
// row comes: it is late, not the end of the lane.
func TestIdlePartitionThroughARestart(t *testing.T) {
	ctx := context.Background()
	topic := lanetest.NewTopic("a", eventSchema, 2)
	put := func(part int, ms ...int64) {
		for _, x := range ms {
			topic.Append(part, lanetest.Record{Rows: [][]any{{int64(1), x * 1000, int64(1), "x"}}, LogTime: x})
		}
	}
	w := newWorld()
	scope := ledger.Scope{Job: connector.UUID{9}}
	start := func() (*engine.Run, *Stages, *ledger.Book) {
		p := w.process(0, false)
		led, err := ledger.OpenLedger(ctx, memLedger{p})
		if err != nil {
			t.Fatal(err)
		}
		c := &lanetest.Connector{Sources: map[string]connector.Source{"a": lanetest.NewWorld().Process().Source(topic, lanetest.SourceOptions{})},
			Sinks: map[string]connector.Sink{"out": &memSink{p: p, name: "out"}}}
		job := countJob(t, graph.Window{Size: minute}, 0)
		job.Bounded = false
		job.Options = map[string]string{"lane.linger": "0", "lane.restart.min-delay": "1 ms", "lane.restart.max-delay": "2 ms"}
		src := job.Nodes[0].Op.(*graph.Source)
		src.Connector, src.Watermark, src.IdleTimeout = c, &expr.Column{Index: 1, Name: "ts", T: eventSchema.Fields[1].Type}, 20*time.Millisecond
		for i, f := range eventSchema.Fields {
			src.Table.Columns, src.Columns = append(src.Table.Columns, connector.Column{Field: f}), append(src.Columns, i)
		}
		job.Nodes[3].Op.(*graph.Sink).Connector = c
		k := &captured{Factory: &Factory{Store: func(ledger.Scope) checkpoint.Store { return memCheckpoints{p, w.checkpoints.Handle()} },
			Options: Options{CheckpointInterval: 2 * time.Millisecond}}}
		n := byte(0)
		r, err := engine.Start(ctx, job, engine.Deps{Ledger: led, Scope: scope, DeadLetters: memDead{p}, Keyed: k,
			NewUUID: func() connector.UUID { n++; return connector.UUID{byte(led.Book(scope).JobEpoch()), n} }})
		if err != nil {
			t.Fatal(err)
		}
		return r, k.st, led.Book(scope)
	}
	until := func(what string, r *engine.Run, ok func() bool) {
		t.Helper()
		tick, limit := time.NewTicker(2*time.Millisecond), time.After(10*time.Second)
		defer tick.Stop()
		for !ok() {
			select {
			case <-tick.C:
			case <-limit:
				t.Fatalf("no %s: %+v", what, r.Status())
			}
		}
	}
	put(0, 1000, 60_000, 121_000)
	r, _, _ := start()
	until("two windows", r, func() bool { return len(w.rows("out")) == 2 })
	if err := r.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	put(1, 30_000, 125_000)
	r, _, book := start()
	table := connector.UUID{}
	for _, x := range book.Tables() {
		if x.Exchange {
			table = x.ID
		}
	}
	until("late row", r, func() bool {
		for _, c := range book.Cursors(table) {
			if c.Partition == 1 && c.Counts.Late == 1 && c.Counts.Folded == 1 {
				return true
			}
		}
		return false
	})
	put(0, 190_000)
	put(1, 190_000)
	until("third window", r, func() bool { return len(w.rows("out")) == 3 })
	if err := r.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	want := []string{"1|" + ts(0) + "|" + ts(minute) + "|" + ts(minute-1), "1|" + ts(minute) + "|" + ts(2*minute) + "|" + ts(2*minute-1),
		"2|" + ts(2*minute) + "|" + ts(3*minute) + "|" + ts(3*minute-1)}
	if got := w.rows("out"); len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Fatalf("the table differs:\n%s", diff(got, want))
	}
}
