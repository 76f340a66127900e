package conntest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
)

// replaceRun is what the suite remembers of a job that replaces both partitions a
// few times, the last time one of them by nothing.
type replaceRun struct {
	// named are the rounds that a manifest names, done of them are committed.
	named    [][]connector.Replacement
	done     int
	jobEpoch uint64
}

const replaceRounds = 3

// contents are the visible rows after n rounds.
func contents(n int) []int64 {
	switch n {
	case 0:
		return []int64{}
	case replaceRounds:
		return span([2]int64{int64(n) * 100, 8})
	}
	return span([2]int64{int64(n) * 100, 8}, [2]int64{int64(n)*100 + 50, 8})
}

func (l *replaceRun) cycle(ctx context.Context, w World) error {
	l.jobEpoch++
	o := OwnerOf(1, l.jobEpoch)
	s, err := w.Open(ctx, o)
	if err != nil {
		return fmt.Errorf("opening sink: %w", err)
	}
	defer s.Close()
	r := s.(connector.Replacer)
	a := keyedAttempt(1, l.jobEpoch, 0)
	wr, err := s.OpenWriter(ctx, a)
	if err != nil {
		return fmt.Errorf("opening writer: %w", err)
	}
	defer wr.Close()
	var seq uint64
	if l.done < len(l.named) {
		if err := l.recover(ctx, r); err != nil {
			return err
		}
	}
	for n := l.done + 1; n <= replaceRounds; n++ {
		var round []connector.Replacement
		for p := range partitions {
			name, err := r.PartitionOf(rowsOf(p, 0, 1), 0)
			if err != nil {
				return err
			}
			x := connector.Replacement{TablePartition: name, Version: uint64(n)}
			if n < replaceRounds || p == 0 {
				if x.Parts, err = sealPart(ctx, wr, a, uint64(n), &seq, rowsOf(p, int64(n*100+p*50), 8)); err != nil {
					return fmt.Errorf("sealing: %w", err)
				}
			}
			round = append(round, x)
		}
		// The manifest is durable here.
		l.named = append(l.named, round)
		for _, err := range r.Replace(ctx, round) {
			if err != nil {
				return fmt.Errorf("replacing: %w", err)
			}
		}
		l.done = n
	}
	return nil
}

func (l *replaceRun) recover(ctx context.Context, r connector.Replacer) error {
	pending := l.named[l.done]
	outcomes, err := r.ResolveReplace(ctx, pending)
	if err != nil {
		return fmt.Errorf("resolving: %w", err)
	}
	for i, o := range outcomes {
		switch o {
		case connector.Published:
		case connector.Sealed:
			if err := r.Replace(ctx, pending[i:i+1])[0]; err != nil {
				return fmt.Errorf("replacing: %w", err)
			}
		case connector.Absent:
			return &lostError{pending[i].Parts[0].Header.ID}
		default:
			return fmt.Errorf("outcome of %s is %s without an error", pending[i].TablePartition, o)
		}
	}
	l.done++
	return nil
}

// whole checks that each partition shows the content of a round or of the one
// before, never a mix.
func (l *replaceRun) whole(t testing.TB, w World, what string) {
	t.Helper()
	have := w.Visible(t)
	slices.Sort(have)
	part := func(v []int64, p int) []int64 {
		return slices.DeleteFunc(slices.Clone(v), func(x int64) bool { return int(x%100)/50 != p })
	}
	for p := range partitions {
		ok := false
		for _, n := range []int{l.done, min(l.done+1, replaceRounds)} {
			ok = ok || slices.Equal(part(have, p), part(contents(n), p))
		}
		if !ok {
			t.Fatalf("%s: partition %d shows %v after %d rounds", what, p, brief(part(have, p)), l.done)
		}
	}
}

func (l *replaceRun) finish(t testing.TB, w World, what string) {
	t.Helper()
	l.whole(t, w, what)
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
	have := w.Visible(t)
	slices.Sort(have)
	if want := contents(replaceRounds); !slices.Equal(have, want) {
		t.Fatalf("%s: visible rows are %v, want %v", what, brief(have), brief(want))
	}
}

func cleanReplaceRun(t *testing.T, open func(testing.TB) ReplaceWorld) int {
	t.Helper()
	clean := open(t).(FaultWorld)
	if err := new(replaceRun).cycle(context.Background(), clean); err != nil {
		t.Fatal(err)
	}
	return clean.Operations()
}

func replaceFaults(t *testing.T, open func(testing.TB) ReplaceWorld) {
	n, failed := cleanReplaceRun(t, open), 0
	for op := range n {
		w, l := open(t).(FaultWorld), new(replaceRun)
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

func replaceCrashes(t *testing.T, open func(testing.TB) ReplaceWorld) {
	n := cleanReplaceRun(t, open)
	for op := range n + 1 {
		for seed := range uint64(3) {
			w, l := open(t).(FaultWorld), new(replaceRun)
			w.CrashAt(op)
			if err := l.cycle(context.Background(), w); err == nil && op < n {
				t.Logf("a crash before operation %d of %d was not noticed", op, n)
			}
			l.finish(t, w.AfterCrash(seed), fmt.Sprintf("crash before operation %d of %d, seed %d", op, n, seed))
		}
	}
	t.Logf("%d operations, 3 crashes each", n)
}
