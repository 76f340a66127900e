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

func temporalCases(t testing.TB) (out []timedCase) {
	for _, kind := range []graph.JoinKind{graph.InnerJoin, graph.LeftJoin} {
		for _, retracts := range [][2]bool{{}, {true, false}, {false, true}, {true, true}} {
			op := &graph.Join{Kind: kind, Keys: []graph.JoinKey{{}}, Temporal: &graph.JoinTemporal{LeftTime: 1, RightTime: 1}, Retracts: retracts}
			if retracts[0] == (kind == graph.LeftJoin) {
				op.Condition = differ(t)
			}
			out = append(out, timedCase{name: fmt.Sprintf("temporal %v, %v", kind, retracts), op: op})
		}
	}
	return out
}

// TestSpilledTemporalJoinsSayTheSame: left rows and versions by chance, left rows taken
// back, keys that are NULL, state moved to disk, watermarks and restarts.
func TestSpilledTemporalJoinsSayTheSame(t *testing.T) {
	spilledTimedJoins(t, temporalCases(t))
}

// TestTemporalJoinOnADiskThatFails at each operation: the cause comes out.
func TestTemporalJoinOnADiskThatFails(t *testing.T) {
	for _, c := range temporalCases(t)[5:6] {
		timedJoinFails(t, "a temporal join", c)
	}
}

// TestSpilledTemporalJoinStaysWithinItsBudget: beyond memory only indexes stay, and of the
// versions that the watermark has passed one a key is left on disk.
func TestSpilledTemporalJoinStaysWithinItsBudget(t *testing.T) {
	const budget, keys = 256 << 10, 10_000
	c := timedCase{op: &graph.Join{Kind: graph.LeftJoin, Keys: []graph.JoinKey{{}}, Temporal: &graph.JoinTemporal{LeftTime: 1, RightTime: 1}}}
	k := c.operator(t)().(Spilling)
	store := spill.New(vfs.NewMem(), "/spill")
	defer store.Close()
	k.SpillTo(store, budget)
	ctx, rng := expr.NewContext(nil, 1), rand.New(rand.NewPCG(5, 5))
	rows, padded, want := 0, 0, 0
	res := &Results{Emit: func(b *batch.Batch) error {
		for i := range b.Len {
			rows++
			if b.Cols[2].IsNull(i) {
				padded++
			} else if b.Cols[3].Int64(i) != b.Cols[1].Int64(i)-1000 {
				t.Fatalf("a row of %d has the version of %d", b.Cols[1].Int64(i), b.Cols[3].Int64(i))
			}
		}
		return nil
	}, Dead: func(*batch.Batch, *batch.ValueError) {}}
	most := int64(0)
	for step := range int64(200) {
		var left, right []change
		for range 250 {
			// A version, and a left row a millisecond behind it.
			key, at := 1+rng.Int64N(keys), 10*step
			right, left = append(right, change{k: key, v: at}), append(left, change{k: key, v: at + 1})
			want++
		}
		for side, in := range [][]change{left, right} {
			if err := k.Fold(ctx, timedSide(side, in), res); err != nil {
				t.Fatal(err)
			}
			if k.Bytes() > budget {
				if err := k.Spill(); err != nil {
					t.Fatal(err)
				}
				if n := k.Bytes(); n > budget {
					t.Fatalf("%d bytes stay in memory, of %d", n, budget)
				}
			}
		}
		if err := k.Advance(ctx, 10*step-300, res); err != nil {
			t.Fatal(err)
		}
		if step == 100 {
			most = store.Bytes()
		}
	}
	if most < budget {
		t.Fatalf("%d bytes on disk", most)
	}
	if n := store.Bytes(); n > 2*most {
		t.Errorf("%d bytes are on disk, half-way it was %d", n, most)
	}
	if err := k.Advance(ctx, batch.MaxWatermark, res); err != nil {
		t.Fatal(err)
	}
	if rows != want || padded > 0 {
		t.Errorf("%d rows, %d of them padded, want %d", rows, padded, want)
	}
}
