package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/lane/lanetest"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/slot"
)

// manualClock stands still until it is moved.
type manualClock struct{ now time.Time }

func (c *manualClock) Now() time.Time { return c.now }

func (c *manualClock) AfterFunc(time.Duration, func()) slot.Timer { panic("BUG: no timers here") }

// batchSink announces many partitions at once and refuses some.
type batchSink struct {
	batches [][]string
	fail    func(tp string) error
}

func (s *batchSink) CommitPolicy() connector.CommitPolicy { return connector.CommitPolicy{} }

func (s *batchSink) CommitPartition(context.Context, string) error {
	return errors.New("partitions are announced one by one")
}

func (s *batchSink) CommitPartitions(_ context.Context, tps []string) []error {
	s.batches = append(s.batches, tps)
	errs := make([]error, len(tps))
	if s.fail != nil {
		for i, tp := range tps {
			errs[i] = s.fail(tp)
		}
	}
	return errs
}

// away is an error that may go away by itself.
type away struct{}

func (away) Error() string   { return "the server is away" }
func (away) Retryable() bool { return true }

func TestAnnouncements(t *testing.T) {
	ctx := context.Background()
	led, err := ledger.OpenLedger(ctx, lanetest.NewWorld().Process().Store())
	if err != nil {
		t.Fatal(err)
	}
	book := led.Book(ledger.Scope{Job: connector.UUID{1}})
	table := &ledger.Table{Name: "t", ID: connector.UUID{2}}
	if err := book.Append(ctx, table); err != nil {
		t.Fatal(err)
	}
	const n = announceBatch + 20
	for i := range n {
		for _, step := range []ledger.CloseStep{ledger.Closing, ledger.Closed} {
			if err := book.Append(ctx, &ledger.Close{Table: table.ID, TablePartition: fmt.Sprintf("h%03d", i), Step: step, Version: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	clock, sink := &manualClock{now: time.UnixMilli(1)}, &batchSink{}
	c := newCloser(book, table, sink, connector.CommitPolicy{}, clock, nil)
	step := func() {
		t.Helper()
		var done sync.WaitGroup
		if _, err := c.step(ctx, &closeState{known: true, open: map[string]bool{}}, func() {}, &done); err != nil {
			t.Fatal(err)
		}
		done.Wait()
	}
	announced := func() (k int) {
		for _, x := range book.Closes(table.ID) {
			if x.Step == ledger.Announced {
				k++
			}
		}
		return k
	}

	sink.fail = func(tp string) error {
		if tp == "h007" {
			return fmt.Errorf("registering: %w", away{})
		}
		return nil
	}
	step()
	if len(sink.batches) != 2 || len(sink.batches[0]) != announceBatch || announced() != n-1 {
		t.Fatalf("%d batches, %d announced, want 2 and %d", len(sink.batches), announced(), n-1)
	}
	if c.lastErr() == nil || c.finalErr() != nil {
		t.Errorf("an error that may go away: %v, and in the end %v", c.lastErr(), c.finalErr())
	}
	step() // too soon
	if len(sink.batches) != 2 {
		t.Fatal("a failed announcement is tried again at once")
	}
	for i := range 3 {
		clock.now = clock.now.Add(firstAnnounceWait << i)
		step()
		if want := 3 + i; len(sink.batches) != want || len(sink.batches[want-1]) != 1 {
			t.Fatalf("try %d: batches %v", i, sink.batches[2:])
		}
	}
	clock.now = clock.now.Add(announcePatience)
	if c.finalErr() == nil {
		t.Error("it is tried for ever when nothing else is left to do")
	}
	sink.fail = func(string) error { return errors.New("the table is gone") }
	step()
	if c.finalErr() == nil {
		t.Error("an error that stays is not told")
	}
	sink.fail = nil
	clock.now = clock.now.Add(maxAnnounceWait)
	step()
	if announced() != n || c.lastErr() != nil {
		t.Errorf("%d announced, %v", announced(), c.lastErr())
	}
}
