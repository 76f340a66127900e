package vfs

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// useHugePages has the huge pages that a buffer touches put together, those of its
// ends, too: what else they have belongs to the Go heap like the buffer, whose arenas
// begin and end with huge pages.
func useHugePages(b []byte) {
	for at := 0; at < len(b); at += hugePage / 2 {
		b[at] = 0 // the kernel takes only pages of which there is some part
	}
	b[len(b)-1] = 0
	first := unsafe.Pointer(unsafe.SliceData(b))
	before := uintptr(first) % hugePage
	size := (before + uintptr(len(b)) + hugePage - 1) / hugePage * hugePage
	// Advice: kernels before 6.1 do not know it, and there may be no huge page free.
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(first)-before, size, unix.MADV_COLLAPSE)
}
