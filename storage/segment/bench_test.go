package segment

import (
	"testing"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

// benchRaw is about 4 MiB of batches of 64 records of 1 kB.
func benchRaw(b *testing.B) []byte {
	b.Helper()
	var raw []byte
	var w record.Builder
	value := make([]byte, 1000)
	for offset := int64(0); len(raw) < 4<<20; offset += 64 {
		w.Reset()
		for range 64 {
			must(b, w.Append(0, nil, value, nil))
		}
		one, err := w.Build()
		must(b, err)
		record.Assign(one, offset, 0)
		raw = append(raw, one...)
	}
	return raw
}

// BenchmarkAppend measures the processor's part: parsing, checksums and copies
// into a file in memory.
func BenchmarkAppend(b *testing.B) {
	raw := benchRaw(b)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		mem := vfs.NewMem()
		w, err := Create(mem, "s", Options{Meta: Meta{ID: 1, Kind: Own}})
		must(b, err)
		_, err = w.Append(0, raw, 0)
		must(b, err)
		must(b, w.Close())
	}
}

// BenchmarkReadAt reads with all checks from the page cache.
func BenchmarkReadAt(b *testing.B) {
	raw := benchRaw(b)
	path := b.TempDir() + "/s"
	w, err := Create(vfs.NewOS(), path, Options{Meta: Meta{ID: 1, Kind: Own}})
	must(b, err)
	_, err = w.Append(0, raw, 0)
	must(b, err)
	defer w.Close()
	r := w.Reader()
	buf := make([]byte, 1<<20)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for at := int64(0); n < len(raw); {
			got, err := r.ReadAt(buf, 0, at)
			must(b, err)
			n += len(got)
			for len(got) > 0 {
				h, err := record.ParseHeader(got)
				must(b, err)
				at, got = h.LastOffset()+1, got[h.Size():]
			}
		}
	}
}

// BenchmarkSealThirtyThousandPartitions writes a mixed segment with one small
// batch of each.
func BenchmarkSealThirtyThousandPartitions(b *testing.B) {
	one := batchAt(b, 0, 0, 1, 700)
	b.SetBytes(30000 * int64(len(one)))
	for b.Loop() {
		w, err := Create(vfs.NewMem(), "s", Options{Meta: Meta{ID: 1, Kind: Mixed}})
		must(b, err)
		for p := range uint64(30000) {
			_, err := w.Append(p, one, 0)
			must(b, err)
		}
		_, err = w.Seal()
		must(b, err)
		must(b, w.Close())
	}
}
