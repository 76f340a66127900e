//go:build !linux

package vfs

import "os"

func renameNoReplace(_, _ string) error { return ErrNotSupported }

func fdatasync(f *os.File) error { return f.Sync() }
