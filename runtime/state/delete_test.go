package state

import (
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// TestDeletedKeysComeAgain deletes and finds keys at random, with hashes that
// collide, beside a map.
func TestDeletedKeysComeAgain(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		r := rand.New(rand.NewPCG(seed, 3))
		k := NewKeys([]types.Type{types.NewBigInt()})
		slots := map[int64]int32{}
		var v batch.Vec
		v.Reset(types.NewBigInt(), 1)
		cols := []*batch.Vec{&v}
		hash := func(x int64) uint64 { return uint64(x%7)<<1 | 1<<60 }
		for step := range 3000 {
			x := int64(r.IntN(90))
			v.I64[0] = x
			old, there := slots[x]
			switch r.IntN(5) {
			case 0, 1:
				if there {
					k.Delete(old)
					delete(slots, x)
				}
			case 2:
				if step%50 == 0 {
					var live []int32
					for s := range int32(k.Len()) {
						if !k.Deleted(s) {
							live = append(live, s)
						}
					}
					k = k.Take(live)
					for i := range live {
						slots[k.Columns()[0].I64[i]] = int32(i)
					}
					if k.Len() != len(slots) {
						t.Fatalf("seed %d: %d keys are left, want %d", seed, k.Len(), len(slots))
					}
				}
			default:
				n := k.Len()
				got := k.FindOne(cols, hash(x), 0)
				if there && got != old || !there && got != int32(n) {
					t.Fatalf("seed %d, step %d: slot %d, want %d of %d", seed, step, got, old, n)
				}
				slots[x] = got
			}
			if got := k.Slot(cols, hash(x), 0); (got >= 0) != mapHas(slots, x) {
				t.Fatalf("seed %d, step %d: key %d is in slot %d", seed, step, x, got)
			}
		}
	}
}

func mapHas(m map[int64]int32, x int64) bool { _, ok := m[x]; return ok }
