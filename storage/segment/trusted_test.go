package segment

import (
	"bytes"
	"errors"
	"testing"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

// TestTrustedBatches: batches of a Writer that trusts them are written as by any
// other, one that was damaged in memory before is found when it is read and costs
// nothing else, and what does not parse is refused all the same.
func TestTrustedBatches(t *testing.T) {
	buf := vfs.NewBuffer(MixedBuffer)
	write := func(path string, trusted bool, raw []byte) *vfs.MemFS {
		t.Helper()
		for i := range buf {
			buf[i] = 0xdb // the Writer before left something
		}
		fsys := vfs.NewMem()
		o := Options{Meta: Meta{ID: 77, Kind: Mixed}}
		if trusted {
			o.Trusted, o.Buffer = true, buf
		}
		w, err := Create(fsys, path, o)
		must(t, err)
		defer w.Close()
		_, err = w.Append(3, raw, 1)
		must(t, err)
		_, err = w.Seal()
		must(t, err)
		return fsys
	}
	good, _ := run(t, 3, 0, 2000, 5, 300, 400, 30)
	if a, b := content(t, write("/a", false, good), "/a"), content(t, write("/a", true, good), "/a"); !bytes.Equal(a, b) {
		t.Error("a trusting Writer wrote other bytes")
	}

	bad, _ := run(t, 3, 0, 10, 5, 7, 8)
	first := len(batchAt(t, 3, 0, 5, 10))
	bad[first+record.HeaderSize+20] ^= 4
	r, err := Open(write("/b", true, bad), "/b")
	must(t, err)
	defer r.Close()
	offsets, rots := readAll(t, r, 3, 0)
	if len(offsets) != 13 || len(rots) != 1 || rots[0].From != 5 || rots[0].To != 11 {
		t.Errorf("read %v, damage %v, want 13 offsets and 5 to 11 damaged", offsets, rots)
	}

	w, err := Create(vfs.NewMem(), "/c", Options{Meta: Meta{ID: 77, Kind: Mixed}, Trusted: true})
	must(t, err)
	defer w.Close()
	if _, err := w.Append(3, bad[:first-1], 1); !errors.Is(err, record.ErrTruncated) {
		t.Errorf("half a batch: %v", err)
	}
	if _, err := w.AppendPieces(3, [][]byte{good, bad}, 1); !errors.Is(err, ErrOrder) {
		t.Errorf("offsets that fall: %v", err)
	}
}
