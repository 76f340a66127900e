package segment

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

// golden reads a hex dump. The dumps were made from docs/format/segment.md by a
// program that shares no code with this package.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	must(t, err)
	var out []byte
	for line := range strings.Lines(string(text)) {
		if line[0] == '*' {
			continue // lines like the one before, as hexdump has it
		}
		at, err := strconv.ParseInt(line[:8], 16, 64)
		must(t, err)
		for int64(len(out)) < at {
			out = append(out, out[len(out)-16:]...)
		}
		b, err := hex.DecodeString(strings.ReplaceAll(line[9:59], " ", ""))
		must(t, err)
		out = append(out, b...)
	}
	return out
}

func single(t testing.TB, offset, ts int64, value string) []byte {
	t.Helper()
	var b record.Builder
	must(t, b.Append(ts, nil, []byte(value), nil))
	raw, err := b.Build()
	must(t, err)
	record.Assign(raw, offset, 5)
	return raw
}

func TestGolden(t *testing.T) {
	mem := vfs.NewMem()
	w, err := Create(mem, "mixed", Options{Meta: Meta{ID: 77, Kind: Mixed, CreatedMs: 1700000000000}})
	must(t, err)
	_, err = w.Append(3, append(single(t, 10, 1000, "a"), single(t, 11, 2000, "b")...), 1700000000001)
	must(t, err)
	_, err = w.Append(8, single(t, 0, 500, "c"), 1700000000001)
	must(t, err)
	_, err = w.Seal()
	must(t, err)
	must(t, w.Close())
	w, err = Create(mem, "own", Options{Meta: Meta{ID: 78, Kind: Own, Partition: 42, BaseOffset: 100, CreatedMs: 1700000000002}})
	must(t, err)
	_, err = w.Append(42, single(t, 100, 1000, "a"), 1700000000003)
	must(t, err)
	_, err = w.Seal()
	must(t, err)
	must(t, w.Close())
	for _, name := range []string{"mixed", "own"} {
		want := golden(t, name)
		if got := content(t, mem, name); !bytes.Equal(got, want) {
			t.Errorf("%s: got\n%swant\n%s", name, hex.Dump(got), hex.Dump(want))
		}
	}
}

// TestGoldenReads keeps files of this version readable for ever.
func TestGoldenReads(t *testing.T) {
	r, err := Open(replaced(t, golden(t, "mixed")), "s")
	must(t, err)
	defer r.Close()
	info, err := r.Info()
	must(t, err)
	if info.ID != 77 || info.Kind != Mixed || info.CreatedMs != 1700000000000 || info.Batches != 3 || info.MaxAppendMs != 1700000000001 || !info.Sealed {
		t.Fatalf("info %+v", info)
	}
	got, err := r.ReadAt(make([]byte, 1000), 3, 11)
	if err != nil || !bytes.Equal(got, single(t, 11, 2000, "b")) {
		t.Fatalf("%x, %v", got, err)
	}
	o, err := Open(replaced(t, golden(t, "own")), "s")
	must(t, err)
	defer o.Close()
	if info, err := o.Info(); err != nil || info.Kind != Own || info.Partition != 42 || info.BaseOffset != 100 {
		t.Fatalf("info %+v, %v", info, err)
	}
	got, err = o.ReadAt(make([]byte, 1000), 42, 0)
	if err != nil || !bytes.Equal(got, single(t, 100, 1000, "a")) {
		t.Fatalf("%x, %v", got, err)
	}
}
