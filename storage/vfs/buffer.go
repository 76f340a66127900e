package vfs

// hugePage is the size of a huge page, in bytes.
const hugePage = 2 << 20

// minHugeBuffer is the smallest buffer worth huge pages, in bytes: getting them takes
// some hundred microseconds, once.
const minHugeBuffer = 1 << 20

// NewBuffer returns n zero bytes for large reads and writes that are used again and
// again. From a mebibyte on it begins at a multiple of DirectAlign and lies in huge
// pages where the system has some. Then the kernel need not look up and pin each 4 KiB
// of a read past the page cache, which takes a third of the processor time (it was
// 190 us for a mebibyte, and is 70), the disk gets fewer and larger pieces, and
// summing takes a fifth less.
//
// The memory is the garbage collector's as any other.
func NewBuffer(n int) []byte {
	b := make([]byte, n)
	if n >= minHugeBuffer {
		useHugePages(b)
	}
	return b
}
