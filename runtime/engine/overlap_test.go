package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane/lanetest"
	"github.com/millrace/millrace/runtime/ledger"
)

// TestOverlapIsRefusedFirst: a topic that two tables read into one leaves no lane in the
// ledger, and a job without the overlap starts afterwards.
func TestOverlapIsRefusedFirst(t *testing.T) {
	w := newWorld("a")
	w.topics["a"].Append(0, event(1, 0))
	p := w.Process()
	led, err := ledger.OpenLedger(t.Context(), p.Store())
	if err != nil {
		t.Fatal(err)
	}
	scope := ledger.Scope{Job: connector.UUID{9}}
	start := func(sources ...string) (*engine.Run, error) {
		c := &lanetest.Connector{Sources: map[string]connector.Source{}, Sinks: map[string]connector.Sink{"all": p.Sink("all", w.sink)}}
		j := &graph.Job{Name: "job", Bounded: true, Options: w.options}
		var inputs []graph.NodeID
		for _, n := range sources {
			c.Sources[n] = p.Source(w.topics["a"], lanetest.SourceOptions{Bounded: true, MaxRecords: 5})
			id := graph.NodeID(len(j.Nodes))
			j.Nodes = append(j.Nodes, &graph.Node{ID: id, Schema: schema, TimeColumn: 2, Op: &graph.Source{Table: lanetest.Table(n, schema), Connector: c, Columns: []int{0, 1, 2}}})
			inputs = append(inputs, id)
		}
		union := graph.NodeID(len(j.Nodes))
		j.Nodes = append(j.Nodes, &graph.Node{ID: union, Op: &graph.Union{}, Inputs: inputs, Schema: schema, TimeColumn: 2},
			&graph.Node{ID: union + 1, Op: &graph.Sink{Table: lanetest.Table("all", schema, 1), Connector: c}, Inputs: []graph.NodeID{union}, Schema: schema, TimeColumn: 2})
		return engine.Start(context.Background(), j, engine.Deps{Ledger: led, Scope: scope, DeadLetters: p.DeadLetters()})
	}
	if _, err := start("one", "two"); err == nil || !strings.Contains(err.Error(), "topic a read as two tables (one and two) into one table (all)") {
		t.Fatalf("started with an overlap: %v", err)
	}
	if lanes := led.Book(scope).Lanes(); len(lanes) > 0 {
		t.Errorf("the refused start has recorded %d lanes", len(lanes))
	}
	r, err := start("two")
	if err != nil {
		t.Fatal(err)
	}
	if err := wait(t, r); err != nil {
		t.Fatal(err)
	}
	if rows := w.Rows("all"); len(rows) != 1 {
		t.Errorf("%d rows, want 1", len(rows))
	}
}
