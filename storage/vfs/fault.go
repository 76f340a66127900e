package vfs

import (
	"errors"
	"io/fs"
	"path"
	"sync"
	"sync/atomic"
	"syscall"
)

// Injector decides which operations fail. It is called before each operation,
// from any goroutine.
type Injector interface {
	// Inject returns nil to let the operation happen, or the error to return in
	// its place. *ShortWriteError lets a part of a write happen first.
	Inject(op Op) error
}

// InjectorFunc is a function as an Injector.
type InjectorFunc func(op Op) error

// Inject calls the function.
func (f InjectorFunc) Inject(op Op) error { return f(op) }

// ShortWriteError asks for a write of the first N bytes that then fails with
// Err.
type ShortWriteError struct {
	N   int64
	Err error
}

// Error is the text of the inner error.
func (e *ShortWriteError) Error() string { return "short write: " + e.Err.Error() }

// Unwrap returns the inner error.
func (e *ShortWriteError) Unwrap() error { return e.Err }

// Nth fails operations by their number. The zero value fails the first
// operation of any kind with EIO, once.
type Nth struct {
	// Kinds limits the operations that are counted; 0 means all.
	Kinds OpKind
	// Path limits them to paths whose base name matches this path.Match
	// pattern; empty means all.
	Path string
	// From is the 0-based number of the first operation that fails.
	From int64
	// Count is how many fail from there on; 0 means one, negative all.
	Count int64
	// Err is the error; nil means syscall.EIO.
	Err error
	// Short is the number of bytes that a failing write still writes.
	Short int64

	seen  atomic.Int64
	fired atomic.Int64
}

// Inject implements Injector.
func (n *Nth) Inject(op Op) error {
	if n.Kinds != 0 && n.Kinds&op.Kind == 0 {
		return nil
	}
	if n.Path != "" {
		ok, _ := path.Match(n.Path, path.Base(op.Path))
		if !ok {
			return nil
		}
	}
	i := n.seen.Add(1) - 1
	count := n.Count
	if count == 0 {
		count = 1
	}
	if i < n.From || (count > 0 && i >= n.From+count) {
		return nil
	}
	n.fired.Add(1)
	err := n.Err
	if err == nil {
		err = syscall.EIO
	}
	if n.Short > 0 && op.Kind == OpWrite {
		return &ShortWriteError{N: n.Short, Err: err}
	}
	return err
}

// Seen returns how many operations were counted.
func (n *Nth) Seen() int64 { return n.seen.Load() }

// Fired returns how many operations were made to fail.
func (n *Nth) Fired() int64 { return n.fired.Load() }

// FaultFS is a filesystem with an exchangeable injector.
type FaultFS struct {
	hookFS
	f *faultHook
}

type faultHook struct {
	mu  sync.RWMutex
	inj Injector
}

// NewFault wraps a filesystem. A nil injector lets everything happen.
func NewFault(fsys FS, inj Injector) *FaultFS {
	h := &faultHook{inj: inj}
	return &FaultFS{hookFS: hookFS{FS: fsys, h: h}, f: h}
}

// SetInjector exchanges the injector, also for files that are open.
func (f *FaultFS) SetInjector(inj Injector) {
	f.f.mu.Lock()
	defer f.f.mu.Unlock()
	f.f.inj = inj
}

func (h *faultHook) before(op *Op) (int64, error) {
	h.mu.RLock()
	inj := h.inj
	h.mu.RUnlock()
	if inj == nil {
		return 0, nil
	}
	err := inj.Inject(*op)
	if err == nil {
		return 0, nil
	}
	var short *ShortWriteError
	if errors.As(err, &short) {
		return short.N, &fs.PathError{Op: op.Name, Path: op.Path, Err: short.Err}
	}
	return 0, &fs.PathError{Op: op.Name, Path: op.Path, Err: err}
}

func (h *faultHook) after(*Op, error) {}
