package vfs_test

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/millrace/millrace/storage/vfs"
)

// TestNewBuffer: buffers of all sizes are zero, those for direct I/O begin at a
// multiple of DirectAlign, and what surrounds them stays as it is.
func TestNewBuffer(t *testing.T) {
	const mib = 1 << 20
	var kept [][]byte
	for _, n := range []int{0, 1, 4096, mib - 1, mib, mib + mib/16 + 8192, 2 * mib, 4 * mib, 4*mib + 4096} {
		for k := range 4 {
			neighbor := bytes.Repeat([]byte{byte(k + 1)}, 3*mib/2)
			b := vfs.NewBuffer(n)
			if len(b) != n {
				t.Fatalf("%d bytes, want %d", len(b), n)
			}
			for i, c := range b {
				if c != 0 {
					t.Fatalf("buffer of %d bytes: byte %d is %d", n, i, c)
				}
			}
			if at := uintptr(unsafe.Pointer(unsafe.SliceData(b))); n >= mib && at%vfs.DirectAlign != 0 {
				t.Errorf("buffer of %d bytes at %#x", n, at)
			}
			for i := range b {
				b[i] = 0xee
			}
			kept = append(kept, neighbor)
		}
	}
	for i, b := range kept {
		if want := byte(i%4 + 1); bytes.Count(b, []byte{want}) != len(b) {
			t.Errorf("neighbor %d was changed", i)
		}
	}
}
