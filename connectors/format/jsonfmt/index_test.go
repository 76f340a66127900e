package jsonfmt

import (
	"math/rand/v2"
	"testing"
)

// TestIndex compares the index, made in blocks and portably, with its
// definition.
func TestIndex(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, 3))
	alphabet := []byte("ab !#[]\"\"\\\\\x00\x7f\x80\xa2\xdc\xff\x21\x23\x5b\x5d")
	var x index
	for n := range 400 {
		b := make([]byte, n)
		for i := range b {
			b[i] = alphabet[r.IntN(len(alphabet))]
		}
		set := func(i int) bool {
			return i == len(b) || i < len(b) && (b[i] == '"' || b[i] == '\\' || b[i] >= 0x80)
		}
		x.build(b)
		for i := range len(x.words) * 8 {
			if got := x.words[i>>3]>>(i&7)&1 == 1; got != set(i) {
				t.Fatalf("seed %d, %q: bit %d is %v", seed, b, i, got)
			}
		}
		for p := range n {
			want := p
			for !set(want) {
				want++
			}
			if got := x.next(p); got != want {
				t.Fatalf("seed %d, %q: next(%d) = %d, want %d", seed, b, p, got, want)
			}
		}
		for i := 0; i+8 <= n; i += 8 {
			var v uint64
			for k := range 8 {
				v |= uint64(b[i+k]) << (8 * k)
			}
			if special(v) != uint64(x.words[i/8]) {
				t.Fatalf("portable and block form differ at %d of %q", i, b)
			}
		}
	}
}

// TestLongStretches has no set bit for many words.
func TestLongStretches(t *testing.T) {
	var x index
	for n := range 300 {
		b := make([]byte, n)
		for i := range b {
			b[i] = 'a'
		}
		x.build(b)
		for p := range n {
			if got := x.next(p); got != n {
				t.Fatalf("next(%d) of %d = %d", p, n, got)
			}
		}
	}
}
