package segment

import (
	"bytes"
	"errors"
	"testing"

	"github.com/millrace/millrace/storage/vfs"
)

// A run ends with its partition, with what was asked for, with the buffer, and has
// one extent at least.
func TestReadRunBounds(t *testing.T) {
	mem := vfs.NewMem()
	mixed(t, mem, "s", 1)
	r, err := Open(mem, "s")
	must(t, err)
	defer r.Close()
	x, err := r.Index()
	must(t, err)
	extents := x.Partition(8)
	if len(extents) < 4 {
		t.Fatalf("%d extents, want some", len(extents))
	}
	size := 0
	for _, e := range extents[:3] {
		size += int(e.Length)
	}
	last := extents[len(extents)-1]
	for _, c := range []struct {
		what           string
		room, maxBytes int
		pieces         int
		next           int64
	}{
		{"a byte", 1 << 20, 1, 1, extents[0].LastOffset + 1},
		{"a byte less than three extents", 1 << 20, size - 1, 2, extents[1].LastOffset + 1},
		{"three extents", 1 << 20, size, 3, extents[2].LastOffset + 1},
		{"everything", 1 << 20, 1 << 20, len(extents), last.LastOffset + 1},
	} {
		buf := make([]byte, c.room)
		pieces, next, err := r.ReadRun(buf, 8, extents[0].BaseOffset, c.maxBytes)
		must(t, err)
		if len(pieces) != c.pieces || next != c.next {
			t.Errorf("%s: %d pieces up to %d, want %d up to %d", c.what, len(pieces), next, c.pieces, c.next)
		}
	}
	var short *ShortBufferError
	if _, _, err := r.ReadRun(make([]byte, vfs.DirectAlign-1), 8, 0, 1); !errors.As(err, &short) || short.Need < vfs.DirectAlign {
		t.Errorf("a buffer without a block: %v", err)
	}
	if _, _, err := r.ReadRun(make([]byte, 1<<20), 8, last.LastOffset+1, 1); !errors.Is(err, ErrOffset) {
		t.Errorf("behind the end: %v", err)
	}
	// A buffer of the size for so many bytes has room for them.
	pieces, _, err := r.ReadRun(make([]byte, RunBuffer(64<<10)), 8, 0, 64<<10)
	must(t, err)
	if got := len(bytes.Join(pieces, nil)); got < size {
		t.Errorf("%d bytes in a buffer for 64 KiB", got)
	}
}

// What cannot be read costs nothing that lies before it, and says so when asked for.
func TestReadRunBeforeABadPlace(t *testing.T) {
	mem := vfs.NewMem()
	mixed(t, mem, "s", 1)
	fsys := vfs.NewFault(mem, nil)
	r, err := Open(fsys, "s")
	must(t, err)
	defer r.Close()
	x, err := r.Index()
	must(t, err)
	e := x.Partition(8)[0]
	broken := errors.New("broken")
	reads := 0
	fsys.SetInjector(vfs.InjectorFunc(func(op vfs.Op) error {
		if reads++; op.Kind&vfs.OpRead != 0 && reads == 1 {
			return broken
		}
		return nil
	}))
	pieces, next, err := r.ReadRun(make([]byte, 1<<20), 8, e.BaseOffset, 1<<20)
	must(t, err)
	if len(pieces) != 1 || next != e.LastOffset+1 || reads != 2 {
		t.Errorf("%d pieces up to %d by %d reads, want the first extent by the second", len(pieces), next, reads)
	}
	fsys.SetInjector(vfs.InjectorFunc(func(vfs.Op) error { return broken }))
	if _, _, err := r.ReadRun(make([]byte, 1<<20), 8, e.BaseOffset, 1<<20); !errors.Is(err, broken) {
		t.Errorf("nothing can be read: %v", err)
	}
}
