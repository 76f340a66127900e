package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane/lanetest"
	"github.com/millrace/millrace/runtime/ledger"
)

// readySink is a sink whose partitions are described.
type readySink struct {
	connector.Sink
	steps *[]string
	fail  error
}

func (s *readySink) CommitPolicy() connector.CommitPolicy {
	return connector.CommitPolicy{Readiness: connector.ReadinessTopic{Name: "ready"}}
}

func (s *readySink) CommitPartition(_ context.Context, tp string) error {
	*s.steps = append(*s.steps, "commit")
	return s.fail
}

func (s *readySink) DescribePartition(_ context.Context, tp string, _ func(string) (int64, bool)) (connector.PartitionFacts, error) {
	return connector.PartitionFacts{Table: "t", TablePartition: tp, Rows: 7}, nil
}

// TestReadinessIsToldBeforeItIsRecorded: a failure at any step leaves the partition
// unannounced, and the next process takes all steps again, under the same version;
// late rows take them under the next.
func TestReadinessIsToldBeforeItIsRecorded(t *testing.T) {
	ctx := context.Background()
	led, err := ledger.OpenLedger(ctx, lanetest.NewWorld().Process().Store())
	if err != nil {
		t.Fatal(err)
	}
	book := led.Book(ledger.Scope{Job: connector.UUID{1}})
	fact := &ledger.Table{Name: "t", ID: connector.UUID{2}}
	closing := &ledger.Close{Table: fact.ID, TablePartition: "dt=1", Step: ledger.Closing, Version: 1}
	closed := *closing
	closed.Step = ledger.Closed
	if err := book.Append(ctx, fact, closing); err != nil {
		t.Fatal(err)
	}
	if err := book.Append(ctx, &closed); err != nil {
		t.Fatal(err)
	}
	var steps []string
	var versions []uint32
	var broken error
	deps := Deps{Readiness: func(_ context.Context, topic connector.ReadinessTopic) (func(context.Context, Ready) error, error) {
		return func(_ context.Context, m Ready) error {
			steps = append(steps, topic.Name)
			versions = append(versions, m.Version)
			if m.Job != "j" || m.Facts.Rows != 7 || m.Facts.TablePartition != "dt=1" || m.Watermark != batch.NoWatermark {
				t.Errorf("told %+v", m)
			}
			return broken
		}, nil
	}}
	clock := &manualClock{now: time.UnixMilli(1)}
	// life is one process: it looks once, and ends.
	life := func(commit, tell error) ledger.CloseStep {
		t.Helper()
		broken = tell
		r := &Run{book: book, deps: deps, clock: clock, job: &graph.Job{Name: "j"}}
		sink := &readySink{steps: &steps, fail: commit}
		x := &table{fact: fact, sink: sink}
		x.closer = newCloser(book, fact, sink, sink.CommitPolicy(), clock, nil)
		if x.closer.tell, err = r.told(ctx, x, sink.CommitPolicy()); err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		if _, err := x.closer.step(ctx, &closeState{known: true, open: map[string]bool{}}, func() {}, &done); err != nil {
			t.Fatal(err)
		}
		done.Wait()
		return book.Close(ledger.CloseKey{Table: fact.ID, TablePartition: "dt=1"}).Step
	}
	away := errors.New("away")
	if s := life(away, nil); s != ledger.Closed || len(versions) != 0 {
		t.Errorf("after a failed commit: step %v, told %v", s, versions)
	}
	if s := life(nil, away); s != ledger.Closed {
		t.Errorf("after a topic that failed: step %v", s)
	}
	if s := life(nil, nil); s != ledger.Announced {
		t.Errorf("at last: step %v", s)
	}
	if want := []string{"commit", "commit", "ready", "commit", "ready"}; !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
	late := closed
	late.Version = 2
	if err := book.Append(ctx, &ledger.Close{Table: fact.ID, TablePartition: "dt=1", Step: ledger.Closing, Version: 2}); err != nil {
		t.Fatal(err)
	}
	if err := book.Append(ctx, &late); err != nil {
		t.Fatal(err)
	}
	if s := life(nil, nil); s != ledger.Announced || !slices.Equal(versions, []uint32{1, 1, 2}) {
		t.Errorf("after late rows: step %v, versions %v", s, versions)
	}
	r := &Run{book: book, clock: clock, job: &graph.Job{}}
	if _, err := r.told(ctx, &table{fact: fact, sink: &readySink{}}, connector.CommitPolicy{Readiness: connector.ReadinessTopic{Name: "ready"}}); err == nil {
		t.Error("a topic without a log")
	}
}
