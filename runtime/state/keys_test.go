package state

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func TestGroupsCoverAllSubtasksWithoutOverlap(t *testing.T) {
	for p := 1; p <= 300; p++ {
		next := 0
		for s := range p {
			r := RangeOf(s, p)
			if r.From != next {
				t.Fatalf("parallelism %d: subtask %d begins at group %d, want %d", p, s, r.From, next)
			}
			for g := r.From; g < r.To; g++ {
				if SubtaskOf(g, p) != s {
					t.Fatalf("parallelism %d: group %d is of subtask %d, the range says %d", p, g, SubtaskOf(g, p), s)
				}
			}
			next = r.To
		}
		if next != Groups {
			t.Fatalf("parallelism %d: groups end at %d", p, next)
		}
	}
}

// keyColumns makes columns with many equal keys: NULLs, both zeros, NaNs.
func keyColumns(rng *rand.Rand, n int) []batch.Vec {
	ts := []types.Type{types.NewString(), types.NewDouble(), types.NewInt(), types.NewDecimal(30, 2), types.NewBoolean(),
		types.NewArray(types.NewInt())}
	cols := make([]batch.Vec, len(ts))
	for c := range cols {
		v := &cols[c]
		v.Reset(ts[c], n)
		for i := range n {
			if rng.IntN(5) == 0 {
				v.NullRow(i)
				continue
			}
			x := rng.IntN(4)
			switch c {
			case 0:
				v.PutString(i, []string{"", "a", "b", "a\x00"}[x])
			case 1:
				v.SetFloat64(i, []float64{0, math.Copysign(0, -1), math.NaN(), 1.5}[x])
			case 3:
				v.SetDecimal(i, types.DecimalFromInt64(int64(x)-2))
			case 4:
				v.Bools.Put(i, x&1 == 0)
			case 5:
				v.BeginList(i)
				for k := range x {
					v.Children[0].Grow(1)
					v.Children[0].I32[v.Children[0].Len-1] = int32(k)
				}
				v.EndList()
			default:
				v.SetInt64(i, int64(x))
			}
		}
		v.PadOffsets()
	}
	return cols
}

func refs(cols []batch.Vec) []*batch.Vec {
	out := make([]*batch.Vec, len(cols))
	for i := range cols {
		out[i] = &cols[i]
	}
	return out
}

func TestKeysFindEqualKeysAndNoOthers(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		cols := keyColumns(rng, 500)
		all := refs(cols)
		var ts []types.Type
		for i := range cols {
			ts = append(ts, cols[i].Type)
		}
		keys := NewKeys(ts)
		want := map[string]int32{}
		hashes := make([]uint64, 500)
		batch.HashRows(hashes, all, nil)
		sel := make(batch.Sel, 500)
		for i := range sel {
			sel[i] = int32(i)
		}
		slots := make([]int32, 500)
		keys.Find(all, hashes, sel, slots)
		for i := range slots {
			k := string(batch.AppendKey(nil, all, i))
			if s, ok := want[k]; ok && s != slots[i] {
				t.Fatalf("seed %d: row %d has slot %d, an equal row has %d", seed, i, slots[i], s)
			} else if !ok {
				if int(slots[i]) != len(want) {
					t.Fatalf("seed %d: new key of row %d got slot %d, want %d", seed, i, slots[i], len(want))
				}
				want[k] = slots[i]
			}
		}
		if keys.Len() != len(want) {
			t.Fatalf("seed %d: %d keys, want %d", seed, keys.Len(), len(want))
		}
		// What is written is read back as the same keys.
		for c := range keys.Columns() {
			v := &keys.Columns()[c]
			r := NewReader(AppendVec(nil, v))
			back := r.Vec(v.Type)
			if r.Err() != nil || r.Rest() != 0 || back.Len != v.Len {
				t.Fatalf("seed %d: column %d: err %v, rest %d, %d rows", seed, c, r.Err(), r.Rest(), back.Len)
			}
			for i := range v.Len {
				if !batch.ValueEqual(v, i, back, i) {
					t.Fatalf("seed %d: column %d row %d: %s, want %s", seed, c, i, back.Text(i), v.Text(i))
				}
			}
		}
	}
}

func TestReaderNeverPanicsOnDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	cols := keyColumns(rng, 20)
	for c := range cols {
		good := AppendVec(nil, &cols[c])
		for cut := range good {
			NewReader(good[:cut]).Vec(cols[c].Type)
		}
		for range 2000 {
			b := append([]byte(nil), good...)
			b[rng.IntN(len(b))] ^= byte(1 << rng.IntN(8))
			NewReader(b).Vec(cols[c].Type)
		}
	}
}
