//go:build !faults

package main

import "github.com/millrace/millrace/storage/vfs"

// filesystem is where data directories and local tables lie; done is called
// before the process ends.
func filesystem() (fsys vfs.FS, done func(), err error) { return vfs.NewOS(), func() {}, nil }
