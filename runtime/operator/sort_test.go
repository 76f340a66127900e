package operator

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/storage/vfs"
)

// sortedChanges is what ORDER BY v DESC, then by the whole row, gives of changes.
func sortedChanges(rows []change, op *graph.Sort) []string {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b change) int {
		if a.v != b.v {
			return int(b.v - a.v)
		}
		return int(a.k - b.k)
	})
	rows = rows[min(op.Offset, int64(len(rows))):]
	if op.Limit >= 0 {
		rows = rows[:min(op.Limit, int64(len(rows)))]
	}
	var out []string
	for _, x := range rows {
		out = append(out, fmt.Sprintf("%v|%d|%d", batch.Insert, x.k, x.v))
	}
	return out
}

// TestSpilledRowsAreSorted: rows by chance with limits, moved to disk again and again so
// that runs are merged in levels, and restarts in between.
func TestSpilledRowsAreSorted(t *testing.T) {
	levels := 0
	for seed := uint64(1); seed <= 6; seed++ {
		rng := rand.New(rand.NewPCG(seed, 51))
		op := &graph.Sort{Keys: []graph.SortKey{{Column: 1, Desc: true}}, Limit: -1}
		if seed%3 == 1 {
			op.Limit, op.Offset = []int64{0, 7, 500}[rng.IntN(3)], []int64{0, 5, 400}[rng.IntN(3)]
		}
		s := newSpilled(t, rng, func() Keyed { return NewSort(op, pairSchema) })
		ctx := expr.NewContext(nil, 1)
		var rows []change
		for step := range 400 {
			var more []change
			for range 1 + rng.IntN(12) {
				// Numbers below 128 are ordered by their encoding, too.
				more = append(more, change{k: rng.Int64N(100), v: rng.Int64N(100)})
			}
			rows = append(rows, more...)
			in := changesOf(more)
			in.Batch.Kinds = nil
			s.both(func(k Keyed, out *Results) error { return k.Fold(ctx, in, out) })
			if rng.IntN(10) > 0 {
				s.spill()
			}
			for _, r := range s.disk.(*Sort).disk.runs {
				levels = max(levels, r.level)
			}
			if rng.IntN(200) == 0 && step < 399 {
				restartSorted(s)
			}
		}
		s.both(func(k Keyed, out *Results) error { return k.Advance(ctx, batch.MaxWatermark, out) })
		want := sortedChanges(rows, op)
		for i, said := range s.said {
			if !slices.Equal(said, want) {
				t.Fatalf("seed %d: in memory, else on disk: %d: %d rows, want %d: %s, want %s", seed, i, len(said), len(want), head(said), head(want))
			}
		}
		if n := s.store.Bytes(); n != 0 {
			t.Fatalf("seed %d: %d bytes are on disk at the end", seed, n)
		}
	}
	if levels < 2 {
		t.Fatalf("runs were merged up to level %d", levels)
	}
}

func head(rows []string) string { return strings.Join(rows[:min(len(rows), 20)], " ") }

// restartSorted goes on from saved state, at times with enough memory. All rows are
// those of the one subtask.
func restartSorted(s *spilled) {
	s.t.Helper()
	parts, own := s.save(), [][]byte{s.memory.Save()}
	s.memory, s.disk = s.fresh(), s.spilling([]int64{1, 1 << 12, 1 << 40}[s.rng.IntN(3)])
	if s.rng.IntN(3) == 0 {
		own = parts // what was spilled is as good for one that does not spill
	}
	loadParts(s.t, s.memory, own, state.Range{From: 0, To: state.Groups})
	loadParts(s.t, s.disk, parts, state.Range{From: 0, To: state.Groups})
}

// TestSortingOnADiskThatFails: each operation on the disk fails once; that is an error
// with its cause, and never rows that are out of order or missing.
func TestSortingOnADiskThatFails(t *testing.T) {
	op := &graph.Sort{Keys: []graph.SortKey{{Column: 1, Desc: true}}, Limit: -1}
	rng := rand.New(rand.NewPCG(3, 52))
	var rows []change
	for range 1200 {
		rows = append(rows, change{k: rng.Int64N(100), v: rng.Int64N(100)})
	}
	want := sortedChanges(rows, op)
	run := func(fs vfs.FS) ([]string, error) {
		x := &spilled{t: t}
		s, ctx := NewSort(op, pairSchema), expr.NewContext(nil, 1)
		s.SpillTo(spill.New(fs, "/spill"), 1)
		for part := range slices.Chunk(rows, 40) {
			in := changesOf(part)
			in.Batch.Kinds = nil
			if err := s.Fold(ctx, in, x.results(0)); err != nil {
				return nil, err
			}
			if err := s.Spill(); err != nil {
				return nil, err
			}
		}
		err := s.Advance(ctx, batch.MaxWatermark, x.results(0))
		return x.said[0], err
	}
	failed := 0
	check := func(fs vfs.FS, cause error, what string) {
		t.Helper()
		got, err := run(fs)
		var e *spill.Error
		switch {
		case err != nil && (!errors.Is(err, cause) || !errors.As(err, &e)):
			t.Fatalf("%s: %v", what, err)
		case err != nil:
			failed++
		case !slices.Equal(got, want):
			t.Fatalf("%s: other rows", what)
		}
	}
	for n := int64(1); ; n++ {
		nth := &vfs.Nth{Kinds: vfs.OpsAll &^ (vfs.OpClose | vfs.OpRemove), From: n - 1}
		check(vfs.NewFault(vfs.NewMem(), nth), syscall.EIO, fmt.Sprintf("operation %d fails", n))
		if nth.Fired() == 0 {
			break
		}
	}
	for _, limit := range []int64{0, 1000, 10_000} {
		check(vfs.NewLimited(vfs.NewMem(), limit), syscall.ENOSPC, fmt.Sprintf("room for %d bytes", limit))
	}
	if failed < 100 {
		t.Errorf("%d runs failed", failed)
	}
}

// TestSortStaysWithinItsBudget: what is in memory of rows on disk is their index.
func TestSortStaysWithinItsBudget(t *testing.T) {
	const budget = 256 << 10
	op := &graph.Sort{Keys: []graph.SortKey{{Column: 1}}, Limit: -1}
	s, store, ctx := NewSort(op, pairSchema), spill.New(vfs.NewMem(), "/spill"), expr.NewContext(nil, 1)
	s.SpillTo(store, budget)
	rng := rand.New(rand.NewPCG(4, 53))
	n, last := 0, int64(-1)
	res := &Results{Emit: func(b *batch.Batch) error {
		for _, v := range b.Cols[1].I64[:b.Len] {
			if v < last {
				t.Fatalf("%d behind %d", v, last)
			}
			n, last = n+1, v
		}
		return nil
	}, Dead: func(*batch.Batch, *batch.ValueError) {}}
	for range 200 {
		var rows []change
		for range 500 {
			rows = append(rows, change{k: rng.Int64N(1 << 40), v: rng.Int64N(1 << 40)})
		}
		in := changesOf(rows)
		in.Batch.Kinds = nil
		if err := s.Fold(ctx, in, res); err != nil {
			t.Fatal(err)
		}
		if s.Bytes() > budget {
			if err := s.Spill(); err != nil {
				t.Fatal(err)
			}
			if n := s.Bytes(); n > budget*3/5 {
				t.Fatalf("%d bytes stay in memory, of %d", n, budget)
			}
		}
	}
	if n := store.Bytes(); n < 2*budget {
		t.Fatalf("%d bytes on disk", n)
	}
	if err := s.Advance(ctx, batch.MaxWatermark, res); err != nil || n != 100_000 {
		t.Fatalf("%d rows: %v", n, err)
	}
}
