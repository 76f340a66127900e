package parquetfmt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
)

// TestManyOpenFiles: a thousand open files with few rows each cost what they
// hold and little more, with one set of compressors for all.
func TestManyOpenFiles(t *testing.T) {
	const files, rows = 1000, 100
	data := events(1, rows)[0]
	fields := eventFields()
	pools := NewPools(0)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	ws := make([]*Writer, files)
	for i := range ws {
		w, err := NewWriter(io.Discard, fields, Options{Compression: Zstd, Pools: pools})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(data, nil); err != nil {
			t.Fatal(err)
		}
		ws[i] = w
	}
	held := int64(0)
	for _, w := range ws {
		held += int64(w.BufferedBytes())
	}
	grown := heap() - before
	t.Logf("%d files of %d rows: %d bytes a file, of which %d are counted", files, rows, grown/files, held/files)
	if grown > held+files*16<<10 || held > files*64<<10 {
		t.Errorf("%d bytes a file in use, %d counted", grown/files, held/files)
	}
	for _, w := range ws {
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := pools.BlockBytes(); n != 0 {
		t.Errorf("%d bytes of blocks are still handed out", n)
	}
	runtime.KeepAlive(ws)
}

// TestBoundedMemory: a file of many row groups never holds more than one row
// group's compressed pages and a raw page a column.
func TestBoundedMemory(t *testing.T) {
	fields := eventFields()
	data := events(20, 4096)
	const group = 2 << 20
	w, err := NewWriter(io.Discard, fields, Options{RowGroupBytes: group})
	if err != nil {
		t.Fatal(err)
	}
	highest := 0
	for range 3 {
		for _, cols := range data {
			if err := w.Write(cols, nil); err != nil {
				t.Fatal(err)
			}
			highest = max(highest, w.BufferedBytes())
		}
	}
	// A page is 128 KiB, its buffer may have grown to twice that.
	if limit := group + len(fields)*(2*128+64+2*16)<<10; highest > limit {
		t.Errorf("held up to %d bytes, want at most %d", highest, limit)
	}
	st, err := w.Close()
	if err != nil || st.RowGroups < 5 {
		t.Fatal(st.RowGroups, err)
	}
	t.Logf("held up to %d bytes for %d row groups", highest, st.RowGroups)
}

// TestWideValues: rows of a megabyte go through small pages and row groups.
func TestWideValues(t *testing.T) {
	fields := eventFields()[1:2]
	var v batch.Vec
	v.Reset(fields[0].Type, 20)
	for i := range 20 {
		v.Data = append(v.Data, bytes.Repeat([]byte{'a' + byte(i)}, 1<<20)...)
		v.Offsets = append(v.Offsets, int32(len(v.Data)))
	}
	data := writeFile(t, Options{RowGroupBytes: 4 << 20}, fields, v)
	rep := mustVerify(t, data)
	if len(rep.RowGroups) < 4 {
		t.Errorf("%d row groups", len(rep.RowGroups))
	}
	for i, row := range readBack(t, data, fields, 3) {
		if row[0] != string(v.Bytes(i)) {
			t.Fatalf("row %d differs", i)
		}
	}
}

// TestReaderSurvivesDamage: a flipped bit or a cut gives an error or the same
// number of rows, never a panic.
func TestReaderSurvivesDamage(t *testing.T) {
	cols := events(1, 60)[0]
	fields := eventFields()
	data := writeFile(t, Options{}, fields, cols...)
	read := func(b []byte) (rows int, err error) {
		f, err := OpenFile(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return 0, err
		}
		for g := range f.RowGroups() {
			r, err := f.ReadRowGroup(g, fields)
			if err != nil {
				return rows, err
			}
			defer r.Close()
			out := make([]batch.Vec, len(fields))
			for {
				n, err := r.Read(out, 17)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					return rows, err
				}
				rows += n
			}
		}
		return rows, nil
	}
	if n, err := read(data); n != 60 || err != nil {
		t.Fatal(n, err)
	}
	silent := 0
	for at := range data {
		bad := bytes.Clone(data)
		bad[at] ^= 1 << (at * 5 % 8)
		n, err := read(bad)
		if err == nil && n != 60 {
			t.Errorf("a flipped bit in byte %d gives %d rows without an error", at, n)
		}
		if err == nil {
			silent++
		}
	}
	for n := range data {
		if _, err := read(data[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are a file", n, len(data))
		}
	}
	t.Log(fmt.Sprintf("%d of %d flips change nothing that is read", silent, len(data)))
}

// TestSharedPools: files of several goroutines share pools.
func TestSharedPools(t *testing.T) {
	pools := NewPools(64 << 10)
	fields := eventFields()
	data := events(3, 500)
	want := new(bytes.Buffer)
	if err := writeOurs(want, fields, data, Zstd, nil); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() {
			var out bytes.Buffer
			err := writeOurs(&out, fields, data, Zstd, pools)
			if err == nil && !bytes.Equal(out.Bytes(), want.Bytes()) {
				err = errors.New("the file differs from one written alone")
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
