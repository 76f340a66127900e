package conntest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
)

// ledger is what the suite remembers of a run, as the runtime's ledger would.
type ledger struct {
	intents   []connector.Artifact // sealed and named
	committed int                  // of the intents, how many are committed
	done      int64                // rows below are covered by intents
	epoch     uint64               // last lane epoch taken
	jobEpoch  uint64
}

const (
	faultRounds = 3
	roundRows   = 8
)

// cycle writes what is missing, round by round, and stops at the first error.
func (l *ledger) cycle(ctx context.Context, w World) error {
	l.jobEpoch++
	s, err := w.Open(ctx, OwnerOf(1, l.jobEpoch))
	if err != nil {
		return fmt.Errorf("opening sink: %w", err)
	}
	defer s.Close()
	highest, err := s.MaxEpoch(ctx, lane)
	if err != nil {
		return fmt.Errorf("highest epoch: %w", err)
	}
	l.epoch = max(l.epoch, highest) + 1
	a := attempt(1, l.epoch)
	wr, err := s.OpenWriter(ctx, a)
	if err != nil {
		return fmt.Errorf("opening writer: %w", err)
	}
	defer wr.Close()
	if err := l.recover(ctx, s); err != nil {
		return err
	}
	var seq uint64
	for l.done < faultRounds*roundRows {
		as, err := sealAll(ctx, wr, a, &seq, l.done, roundRows)
		if err != nil {
			return fmt.Errorf("sealing: %w", err)
		}
		// The intent is durable here.
		l.intents = append(l.intents, as...)
		l.done += roundRows
		for _, err := range s.Publish(ctx, as) {
			if err != nil {
				return fmt.Errorf("publishing: %w", err)
			}
		}
		l.committed = len(l.intents)
	}
	return nil
}

// lostError says that something that was named in the ledger is not there.
type lostError struct{ id connector.ArtifactID }

func (e *lostError) Error() string { return fmt.Sprintf("artefact %s was named and is lost", e.id) }

// recover completes what has an intent and is not committed.
func (l *ledger) recover(ctx context.Context, s connector.Sink) error {
	pending := l.intents[l.committed:]
	if len(pending) == 0 {
		return nil
	}
	outcomes, err := s.Resolve(ctx, pending)
	if err != nil {
		return fmt.Errorf("resolving: %w", err)
	}
	r, ok := s.(connector.ReplayableSeals)
	replayable := ok && r.ReplayableSeals()
	absent := 0
	for i, o := range outcomes {
		switch o {
		case connector.Published:
		case connector.Sealed:
			if err := s.Publish(ctx, pending[i:i+1])[0]; err != nil {
				return fmt.Errorf("publishing: %w", err)
			}
		case connector.Absent:
			if absent++; !replayable {
				return &lostError{pending[i].Header.ID}
			}
		default:
			return fmt.Errorf("outcome of %s is %s without an error", pending[i].Header.ID, o)
		}
	}
	if absent > 0 {
		// They are void, all or none of them, and their rows are read again.
		if absent < len(pending) {
			return fmt.Errorf("%d of %d artefacts that share offsets are absent", absent, len(pending))
		}
		l.intents = l.intents[:l.committed]
		l.done -= roundRows
		return nil
	}
	l.committed = len(l.intents)
	return nil
}

// finish repeats the cycle as a restarted process would, until it is through.
func (l *ledger) finish(t testing.TB, w World, what string) {
	t.Helper()
	var err error
	for range 5 {
		if err = l.cycle(context.Background(), w); err == nil {
			break
		}
		var lost *lostError
		if errors.As(err, &lost) {
			break
		}
	}
	if err != nil {
		t.Fatalf("%s: recovery: %v", what, err)
	}
	wantRows(t, w, 0, faultRounds*roundRows)
}

// faults makes each operation fail once and goes on in the same world, as a
// process does after an error.
func faults(t *testing.T, open func(testing.TB) FaultWorld) {
	clean := open(t)
	if err := new(ledger).cycle(context.Background(), clean); err != nil {
		t.Fatal(err)
	}
	n := clean.Operations()
	failed := 0
	for op := range n {
		w, l := open(t), new(ledger)
		w.FailAt(op)
		if err := l.cycle(context.Background(), w); err != nil {
			failed++
		}
		w.FailAt(-1)
		l.finish(t, w, fmt.Sprintf("error at operation %d of %d", op, n))
	}
	if failed == 0 {
		t.Fatalf("none of %d injected errors was reported", n)
	}
	t.Logf("%d operations, %d errors reported", n, failed)
}

// crashes cuts the power before each operation and starts again on what
// survived, with nothing and with a part of the unsynced data kept.
func crashes(t *testing.T, open func(testing.TB) FaultWorld) {
	clean := open(t)
	if err := new(ledger).cycle(context.Background(), clean); err != nil {
		t.Fatal(err)
	}
	n := clean.Operations()
	for op := range n + 1 {
		for seed := range uint64(3) {
			w, l := open(t), new(ledger)
			w.CrashAt(op)
			err := l.cycle(context.Background(), w)
			if err == nil && op < n {
				// What came after may be clean-up whose errors do not count.
				t.Logf("a crash before operation %d of %d was not noticed", op, n)
			}
			l.finish(t, w.AfterCrash(seed), fmt.Sprintf("crash before operation %d of %d, seed %d", op, n, seed))
		}
	}
	t.Logf("%d operations, 3 crashes each", n)
}
