package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/lane/lanetest"
	"github.com/millrace/millrace/runtime/ledger"
)

// TestNoFileComesIntoAClosedPartition: of an intent and the record that closes its
// partition, made from what each saw before the other, the second one gives way.
func TestNoFileComesIntoAClosedPartition(t *testing.T) {
	ctx := context.Background()
	led, err := ledger.OpenLedger(ctx, lanetest.NewWorld().Process().Store())
	if err != nil {
		t.Fatal(err)
	}
	scope := ledger.Scope{Job: connector.UUID{1}}
	book := led.Book(scope)
	fact := &ledger.Table{Name: "t", ID: connector.UUID{2}}
	if err := book.Append(ctx, fact); err != nil {
		t.Fatal(err)
	}
	of := lane.Progress{Next: 9}
	of.Output = ledger.CursorKey{Output: fact.ID, Topic: connector.UUID{3}}
	id := connector.LaneID{Topic: connector.UUID{3}}
	if err := book.Append(ctx, &ledger.Lane{ID: id, Topic: "a", Partitions: []int32{0}}, &ledger.Open{Lane: id, Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	intent := func(tp string, seq uint64) *ledger.Intent {
		h := connector.Header{ID: connector.ArtifactID{Job: scope.Job, Table: fact.ID, Lane: id, Epoch: 1, Sequence: seq}, TablePartition: tp}
		return &ledger.Intent{Writer: ledger.Writer{Lane: id, Epoch: 1}, Artifacts: []connector.Artifact{{Header: h}}}
	}
	c := newCloser(book, fact, &batchSink{}, connector.CommitPolicy{Aside: true}, &manualClock{now: time.UnixMilli(1)}, nil)
	step := func(s *closeState) {
		t.Helper()
		s.known, s.ended, s.progress, s.idle = true, true, []lane.Progress{of}, func(*lane.Progress) bool { return false }
		if s.open == nil {
			s.open = map[string]bool{}
		}
		var done sync.WaitGroup
		if _, err := c.step(ctx, s, func() {}, &done); err != nil {
			t.Fatal(err)
		}
		done.Wait()
	}
	at := func(tp string) ledger.CloseStep {
		if x := book.Close(ledger.CloseKey{Table: fact.ID, TablePartition: tp}); x != nil {
			return x.Step
		}
		return 0
	}
	// What lies aside is no partition.
	step(&closeState{open: map[string]bool{"": true, "h0": true}})
	if at("") != 0 || at("h0") != ledger.Closing {
		t.Fatalf("aside %v, h0 %v", at(""), at("h0"))
	}
	x := book.Close(ledger.CloseKey{Table: fact.ID, TablePartition: "h0"})
	if x.Late(connector.UUID{3}, 0, 8) || !x.Late(connector.UUID{3}, 0, 9) || !x.Late(connector.UUID{3}, 1, 0) {
		t.Errorf("what is late by the bounds %+v", x.Bounds)
	}
	// An intent that came after the plan was made is waited for.
	in := intent("h0", 1)
	if err := c.Intend(ctx, []ledger.Fact{in}, []string{"h0"}); err != nil {
		t.Fatal(err)
	}
	closed := *x
	closed.Step = ledger.Closed
	if left := c.undisturbed([]ledger.Fact{&closed}); len(left) != 0 {
		t.Error("closed while a file is about to come in")
	}
	if err := c.Commit(ctx, []ledger.Fact{&ledger.Outcome{ID: in.ID(), Writer: in.Writer, Result: ledger.Committed}}, []string{"h0"}); err != nil {
		t.Fatal(err)
	}
	step(&closeState{})
	if at("h0") != ledger.Closed {
		t.Fatalf("h0 is %v", at("h0"))
	}
	// And one that comes after it is refused; nothing of it is recorded.
	err = c.Intend(ctx, []ledger.Fact{intent("h0", 2)}, []string{"", "h0"})
	if !errors.Is(err, lane.ErrPartitionClosed) || len(book.Intents(func(e *ledger.Entry) bool { return e.Result == ledger.Pending })) != 0 {
		t.Errorf("an intent for a closed partition: %v", err)
	}
	if err := c.Intend(ctx, []ledger.Fact{intent("", 3)}, []string{""}); err != nil {
		t.Errorf("an intent for rows aside: %v", err)
	}
	if x = book.Close(ledger.CloseKey{Table: fact.ID, TablePartition: "h0"}); !x.Late(connector.UUID{3}, 0, 8) {
		t.Error("a row below the bounds that is not committed finds its partition closed, and is not late")
	}
}

// TestAsideBehindAStage: a table behind a keyed stage has no rows that could be late by
// their offsets.
func TestAsideBehindAStage(t *testing.T) {
	r := &Run{tables: map[string]*table{
		"t": {fact: &ledger.Table{Name: "t"}, closer: &closer{policy: connector.CommitPolicy{Aside: true}}},
		"e": {fact: &ledger.Table{Name: "exchange 1", Exchange: true, Feeds: []string{"u"}}}}}
	if err := r.asideOfLanes(); err != nil {
		t.Error(err)
	}
	r.tables["e"].fact.Feeds = []string{"t"}
	var n *graph.NotYetError
	if err := r.asideOfLanes(); !errors.As(err, &n) {
		t.Errorf("got %v", err)
	}
}
