//go:build !linux

package vfs

import "os"

// directFile is not supported here.
type directFile struct{}

func isDirect([]byte, int64) bool { return false }

func (*directFile) writeAt(*os.File, []byte, int64) (int, error) { return 0, nil }

func (*directFile) readAt(*os.File, []byte, int64) (int, error) { return 0, nil }

func (*directFile) close() {}

func renameNoReplace(_, _ string) error { return ErrNotSupported }

func exchange(_, _ string) error { return ErrNotSupported }

func fdatasync(f *os.File) error { return f.Sync() }

func preadDontCache(*os.File, []byte, int64) (int, error) { return 0, ErrNotSupported }

func pwriteDontCache(*os.File, []byte, int64) (int, error) { return 0, ErrNotSupported }

func useHugePages([]byte) {}
