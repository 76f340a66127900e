package batch

import "math/bits"

// Bitmap is an Arrow bitmap, least significant bit first. As a validity
// bitmap a nil Bitmap means "all set".
type Bitmap []byte

// BitmapBytes is the number of bytes of a bitmap of n bits.
func BitmapBytes(n int) int { return (n + 7) >> 3 }

// Get reports bit i.
func (b Bitmap) Get(i int) bool { return b[i>>3]&(1<<(i&7)) != 0 }

// Set sets bit i.
func (b Bitmap) Set(i int) { b[i>>3] |= 1 << (i & 7) }

// Clear clears bit i.
func (b Bitmap) Clear(i int) { b[i>>3] &^= 1 << (i & 7) }

// Put sets bit i to v.
func (b Bitmap) Put(i int, v bool) {
	if v {
		b.Set(i)
	} else {
		b.Clear(i)
	}
}

// Count is the number of set bits among the first n.
func (b Bitmap) Count(n int) int {
	c := 0
	for _, x := range b[:n>>3] {
		c += bits.OnesCount8(x)
	}
	if r := n & 7; r != 0 {
		c += bits.OnesCount8(b[n>>3] & (1<<r - 1))
	}
	return c
}

// Resize returns a bitmap of n bits, all equal to v, using b's memory where
// it suffices.
func (b Bitmap) Resize(n int, v bool) Bitmap {
	nb := BitmapBytes(n)
	if cap(b) < nb {
		b = make(Bitmap, nb)
	}
	b = b[:nb]
	fill := byte(0)
	if v {
		fill = 0xff
	}
	for i := range b {
		b[i] = fill
	}
	return b
}
