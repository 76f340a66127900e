package batch

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/millrace/millrace/runtime/types"
)

// TestSnapshotStays: what another goroutine reads of a snapshot is what was there, whatever
// is added meanwhile, NULLs and nested values included (-race looks at the memory).
func TestSnapshotStays(t *testing.T) {
	list := types.NewArray(types.NewBoolean())
	row := types.NewRow(types.Field{Name: "s", Type: types.NewString()}, types.Field{Name: "b", Type: types.NewBoolean()})
	for _, typ := range []types.Type{types.NewBoolean(), types.NewTinyInt(), types.NewBigInt(), types.NewString(), list, row} {
		rng := rand.New(rand.NewPCG(1, uint64(typ.Kind)))
		var v Vec
		v.Reset(typ, 0)
		add := func(n int) {
			for range n {
				v.Grow(1)
				fillRow(&v, v.Len-1, rng)
			}
			v.PadOffsets()
		}
		var wait sync.WaitGroup
		for range 40 {
			s, same := v.Snapshot(), v.Clone()
			wait.Go(func() {
				for range 3 {
					for i := range same.Len {
						if s.Len != same.Len || !ValueEqual(&s, i, same, i) {
							t.Errorf("%s: row %d of %d is another one now", typ, i, same.Len)
							return
						}
					}
				}
			})
			add(rng.IntN(20))
		}
		wait.Wait()
	}
}

// fillRow sets a row to some value, or NULL.
func fillRow(v *Vec, i int, rng *rand.Rand) {
	if rng.IntN(5) == 0 {
		v.NullRow(i)
		return
	}
	switch v.Type.Physical() {
	case types.PhysBool:
		v.Bools.Put(i, rng.IntN(2) == 0)
	case types.PhysBytes:
		v.PutString(i, "some text"[:rng.IntN(10)])
	case types.PhysList:
		for range rng.IntN(4) {
			c := v.Children[0]
			c.Grow(1)
			fillRow(c, c.Len-1, rng)
		}
		v.EndList()
	case types.PhysRow:
		for _, c := range v.Children {
			fillRow(c, i, rng)
		}
	default:
		v.SetInt64(i, rng.Int64N(100))
	}
}
