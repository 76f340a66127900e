package offsets

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// bools is the oracle: a set over a small universe.
type bools [64]bool

func (m bools) set() Set {
	var s Set
	for i, in := range m {
		if in {
			s.Add(int64(i), int64(i)+1)
		}
	}
	return s
}

func randomBools(r *rand.Rand) (m bools) {
	for range r.IntN(6) {
		first := r.IntN(64)
		for i := first; i < min(64, first+r.IntN(12)); i++ {
			m[i] = true
		}
	}
	return m
}

func TestSetAgainstOracle(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	for round := range 5000 {
		a, b := randomBools(r), randomBools(r)
		var union, minus, both bools
		for i := range a {
			union[i], minus[i], both[i] = a[i] || b[i], a[i] && !b[i], a[i] && b[i]
		}
		sa, sb := a.set(), b.set()
		for name, pair := range map[string][2]Set{
			"union":     {sa.Union(sb), union.set()},
			"subtract":  {sa.Subtract(sb), minus.set()},
			"intersect": {sa.Intersect(sb), both.set()},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Fatalf("seed %d round %d: %s of %v and %v = %v, want %v", seed, round, name, sa, sb, pair[0], pair[1])
			}
		}
		var n int64
		for i := range a {
			if a[i] {
				n++
			}
			if sa.Contains(int64(i)) != a[i] {
				t.Fatalf("round %d: Contains(%d) of %v", round, i, sa)
			}
		}
		if sa.Count() != n {
			t.Fatalf("round %d: Count of %v = %d, want %d", round, sa, sa.Count(), n)
		}
		got, rest, err := Decode(append(sa.AppendTo(nil), 0xAA))
		if err != nil || len(rest) != 1 || !reflect.DeepEqual(got, sa) {
			t.Fatalf("round %d: Decode(AppendTo(%v)) = %v, %v, %v", round, sa, got, rest, err)
		}
	}
}

func TestAddOutOfOrder(t *testing.T) {
	var s Set
	s.Add(10, 12)
	s.Add(3, 5)
	s.Add(5, 6)
	s.Add(11, 20)
	if got := s.String(); got != "3-5,10-19" {
		t.Fatalf("got %s", got)
	}
	if got := s.From(12).String(); got != "12-19" {
		t.Fatalf("From(12) = %s", got)
	}
}

// TestManyShortRanges: every 24th offset, as when rows alternate between files.
func TestManyShortRanges(t *testing.T) {
	const n = 100_000
	var sets [24]Set
	for i := range int64(24 * n) {
		sets[i%24].Add(i, i+1)
	}
	for k := range sets {
		s := &sets[k]
		if s.Ranges() != n || s.Count() != n || cap(s.packed)+16*cap(s.marks) > 5*n/2 {
			t.Fatalf("%d ranges take %d bytes", s.Ranges(), cap(s.packed)+16*cap(s.marks))
		}
	}
	for o := int64(0); o < 24*n; o += 997 {
		for k := range sets {
			if sets[k].Contains(o) != (o%24 == int64(k)) {
				t.Fatalf("Contains(%d) of set %d", o, k)
			}
		}
	}
	if got := sets[5].CountIn(24, 24*101); got != 100 {
		t.Errorf("CountIn: %d", got)
	}
	if got := UnionOf(sets[:]...); got.String() != "0-2399999" {
		t.Errorf("the union is %s", got)
	}
	if got := UnionOf(sets[:23]...).Intersect(sets[23]); !got.Empty() {
		t.Errorf("the intersection has %d offsets", got.Count())
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Of(3, 9).Union(Of(20, 21)).AppendTo(nil))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, rest, err := Decode(b)
		if err != nil {
			return
		}
		again, _, err := Decode(s.AppendTo(nil))
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("re-encoding %v (rest %d): %v, %v", s, len(rest), again, err)
		}
	})
}
