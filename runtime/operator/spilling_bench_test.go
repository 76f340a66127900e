package operator

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/storage/vfs"
)

// BenchmarkSpilledGroups folds b.N batches of 4,096 rows into 400,000 groups that are
// there already (COUNT, SUM, MAX by an integer): with memory for all of them, and with
// memory for a tenth. The keys are by chance, all alike or 19 of 20 among 20,000 of
// them; groups give their changes, or their rows at the end, which counts to the time.
func BenchmarkSpilledGroups(b *testing.B) {
	for _, updates := range []bool{true, false} {
		for _, hot := range []bool{false, true} {
			for _, tenth := range []bool{false, true} {
				name := fmt.Sprintf("changes=%t/hot=%t/spilled=%t", updates, hot, tenth)
				b.Run(name, func(b *testing.B) { benchSpilled(b, updates, hot, tenth) })
			}
		}
	}
}

func benchSpilled(b *testing.B, updates, hot, tenth bool) {
	const rows, keys = 4096, 400_000
	op := &graph.GroupAggregate{Updates: updates}
	out := groupsOut(b, op)
	g, err := NewGroupAggregate(op, pairSchema, out, 0)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	batchOf := func(key func(i int) int64) *KeyedRows {
		var in []change
		for i := range rows {
			in = append(in, change{k: key(i), v: rng.Int64N(1000)})
		}
		return changesOf(in)
	}
	ctx := expr.NewContext(nil, 1)
	emitted := 0
	res := &Results{Emit: func(x *batch.Batch) error { emitted += x.Len; return nil }, Dead: func(*batch.Batch, *batch.ValueError) {}}
	var store *spill.Store
	budget := int64(1) << 60
	fold := func(n int, in *KeyedRows) {
		if err := g.Fold(ctx, in, res); err != nil {
			b.Fatal(err)
		}
		if n%16 == 0 && g.Bytes() > budget {
			if err := g.Spill(); err != nil {
				b.Fatal(err)
			}
		}
	}
	if tenth {
		store = spill.New(vfs.NewOS(), b.TempDir()+"/spill")
		defer store.Close()
		// What the same groups take in memory, see B/key.
		budget = keys * 77 / 10
		g.SpillTo(store, budget)
	}
	for n := range keys/rows + 1 {
		fold(n, batchOf(func(i int) int64 { return int64(n*rows+i) % keys }))
	}
	var batches []*KeyedRows
	for range 32 {
		batches = append(batches, batchOf(func(int) int64 {
			if hot && rng.IntN(20) > 0 {
				return rng.Int64N(keys / 20)
			}
			return rng.Int64N(keys)
		}))
	}
	b.ResetTimer()
	began := processTime(b)
	for n := range b.N {
		fold(n, batches[n%len(batches)])
	}
	if err := g.Advance(ctx, batch.MaxWatermark, res); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric((processTime(b)-began).Seconds()*1e6/float64(rows*b.N), "cpu-us/row")
	b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
	if tenth {
		b.ReportMetric(float64(store.Bytes())/(1<<20), "MB-disk")
		b.ReportMetric(float64(store.Written())/(1<<20), "MB-written")
	}
	if updates {
		b.ReportMetric(float64(g.Bytes())/keys, "B/key")
	}
}

// processTime is the CPU time of the process: on a machine that others use the wall
// says little.
func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSpilledSort orders 400,000 rows of two integers by the second one: with
// memory for all of them, and with memory for a tenth.
func BenchmarkSpilledSort(b *testing.B) {
	const rows, each = 400_000, 4096
	op := &graph.Sort{Keys: []graph.SortKey{{Column: 1}}, Limit: -1}
	rng := rand.New(rand.NewPCG(1, 2))
	var batches []*KeyedRows
	for n := 0; n < rows; n += each {
		var in []change
		for range min(each, rows-n) {
			in = append(in, change{k: rng.Int64N(rows), v: rng.Int64N(1 << 40)})
		}
		x := changesOf(in)
		x.Batch.Kinds = nil
		batches = append(batches, x)
	}
	for _, tenth := range []bool{false, true} {
		b.Run(fmt.Sprintf("spilled=%t", tenth), func(b *testing.B) {
			var spent time.Duration
			var peak, written int64
			for range b.N {
				s, ctx := NewSort(op, pairSchema), expr.NewContext(nil, 1)
				store, budget := spill.New(vfs.NewOS(), b.TempDir()+"/spill"), int64(1)<<60
				if tenth {
					budget = rows * sortedRowBytes / 10
					s.SpillTo(store, budget)
				}
				got := 0
				res := &Results{Emit: func(x *batch.Batch) error { got += x.Len; return nil }, Dead: func(*batch.Batch, *batch.ValueError) {}}
				began := processTime(b)
				for i, in := range batches {
					if err := s.Fold(ctx, in, res); err != nil {
						b.Fatal(err)
					}
					if peak = max(peak, s.Bytes()); i%4 == 0 && s.Bytes() > budget {
						if err := s.Spill(); err != nil {
							b.Fatal(err)
						}
					}
				}
				if err := s.Advance(ctx, batch.MaxWatermark, res); err != nil || got != rows {
					b.Fatalf("%d rows: %v", got, err)
				}
				spent += processTime(b) - began
				written = store.Written()
				if err := store.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(spent.Seconds()*1e6/float64(rows*b.N), "cpu-us/row")
			b.ReportMetric(float64(peak)/rows, "B/row")
			b.ReportMetric(float64(written)/(1<<20), "MB-written")
		})
	}
}

// sortedRowBytes is what a row of BenchmarkSpilledSort takes in memory, see B/row.
const sortedRowBytes = 71
