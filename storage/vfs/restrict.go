package vfs

import "os"

// Restrictor is implemented by filesystems that have owners.
type Restrictor interface {
	// Restrict closes a directory to everybody but its owner.
	Restrict(dir string) error
}

// Restrict closes a directory that holds secrets to everybody but its owner,
// where the filesystem knows owners.
func Restrict(fsys FS, dir string) error {
	if r, ok := fsys.(Restrictor); ok {
		return r.Restrict(dir)
	}
	return nil
}

// Restrict implements Restrictor.
func (osFS) Restrict(dir string) error { return os.Chmod(dir, 0o700) }
