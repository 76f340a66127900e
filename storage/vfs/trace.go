package vfs

import (
	"fmt"
	"io"
	"sync"
)

// TraceFS is a filesystem that writes down what is done to it.
type TraceFS struct {
	hookFS
	t *traceHook
}

type traceHook struct {
	mu    sync.Mutex
	w     io.Writer
	kinds OpKind
}

// NewTrace wraps a filesystem. Each finished operation of the given kinds (0:
// the mutating ones) becomes one line in w, such as
//
//	write-at data/journal-0.mrj offset=4096 size=8192
//	rename a b: file does not exist
//
// in the order in which the operations ended. w needs no lock of its own as
// long as others write to it with Printf.
func NewTrace(fsys FS, w io.Writer, kinds OpKind) *TraceFS {
	if kinds == 0 {
		kinds = OpsMutating
	}
	h := &traceHook{w: w, kinds: kinds}
	return &TraceFS{hookFS: hookFS{FS: fsys, h: h}, t: h}
}

// Printf adds a line of the caller's own to the trace, so that a test can see
// what happened between which operations.
func (t *TraceFS) Printf(format string, args ...any) {
	t.t.mu.Lock()
	defer t.t.mu.Unlock()
	fmt.Fprintf(t.t.w, format+"\n", args...)
}

func (h *traceHook) before(*Op) (int64, error) { return 0, nil }

func (h *traceHook) after(op *Op, err error) {
	if h.kinds&op.Kind == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	line := op.Name + " " + op.Path
	if op.NewPath != "" {
		line += " " + op.NewPath
	}
	switch op.Name {
	case "read-at", "write-at", "preallocate":
		line += fmt.Sprintf(" offset=%d size=%d", op.Offset, op.Size)
	case "read", "write":
		line += fmt.Sprintf(" size=%d", op.Size)
	case "truncate":
		line += fmt.Sprintf(" size=%d", op.Offset)
	}
	if err != nil {
		line += ": " + err.Error()
	}
	fmt.Fprintln(h.w, line)
}
