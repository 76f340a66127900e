package operator

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/storage/vfs"
)

// BenchmarkSpilledTopN folds b.N batches of 4,096 rows of two integers into 200,000 keys
// that are there already, each with its last row or its first four: with memory for all
// of them, and with memory for a tenth.
func BenchmarkSpilledTopN(b *testing.B) {
	for _, n := range []int64{1, 4} {
		for _, hot := range []bool{false, true} {
			for _, tenth := range []bool{false, true} {
				b.Run(fmt.Sprintf("rows=%d/hot=%t/spilled=%t", n, hot, tenth), func(b *testing.B) { benchTopN(b, n, hot, tenth) })
			}
		}
	}
}

func benchTopN(b *testing.B, n int64, hot, tenth bool) {
	const rows, keys = 4096, 200_000
	op := &graph.Rank{Keys: []int{0}, Order: []graph.SortKey{{Column: 1, Desc: true}}, N: n, Changes: true, Latest: n == 1}
	k, err := NewTopN(op, pairSchema, pairSchema)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	batchOf := func(at int64, key func(i int) int64) *KeyedRows {
		var in []change
		for i := range rows {
			in = append(in, change{k: key(i), v: at + int64(i)})
		}
		x := changesOf(in)
		x.Batch.Kinds = nil
		return x
	}
	budget, peak := int64(1)<<60, int64(0)
	store := spill.New(vfs.NewOS(), b.TempDir()+"/spill")
	if tenth {
		budget = keys * topNBytes[n] / 10
		k.SpillTo(store, budget)
	}
	ctx := expr.NewContext(nil, 1)
	res := &Results{Emit: func(*batch.Batch) error { return nil }, Dead: func(*batch.Batch, *batch.ValueError) {}}
	fold := func(i int, in *KeyedRows) {
		if err := k.Fold(ctx, in, res); err != nil {
			b.Fatal(err)
		}
		if i%4 == 0 {
			if peak = max(peak, k.Bytes()); peak > budget && k.Bytes() > budget {
				if err := k.Spill(); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	at := int64(0)
	for range n {
		for i := range keys/rows + 1 {
			fold(i, batchOf(at, func(j int) int64 { return int64(i*rows+j) % keys }))
			at += rows
		}
	}
	var batches []*KeyedRows
	for range b.N {
		batches = append(batches, batchOf(at, func(int) int64 {
			if hot && rng.IntN(20) > 0 {
				return rng.Int64N(keys / 20)
			}
			return rng.Int64N(keys)
		}))
		at += rows
	}
	b.ResetTimer()
	began := processTime(b)
	for i, in := range batches {
		fold(i, in)
	}
	b.StopTimer()
	b.ReportMetric((processTime(b)-began).Seconds()*1e6/float64(rows*b.N), "cpu-us/row")
	b.ReportMetric(float64(peak)/keys, "B/key")
	if tenth {
		b.ReportMetric(float64(store.Bytes())/(1<<20), "MB-disk")
	}
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
}

// topNBytes is what a key of BenchmarkSpilledTopN takes in memory, see B/key.
var topNBytes = map[int64]int64{1: 247, 4: 557}
