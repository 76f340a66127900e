// Package vfstest is the acceptance suite of filesystems: every implementation
// of vfs.FS passes Run, so that what is tested on Mem holds on the real one.
//
// It tests what a process sees. What survives a power cut cannot be tested on a
// real disk from inside; the crash semantics of Mem have their own tests.
package vfstest
