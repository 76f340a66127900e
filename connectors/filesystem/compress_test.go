package filesystem

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// bzip2Lines is {"id":1}, {"id":2}, {"id":3} as the program bzip2 1.0.8 compresses them.
const bzip2Lines = "425a68393141592653592716eca700000ad9800010100038100420000a2000223d44c8dea8400c13c2698249d1d7e2ee48a70a1204e2dd94e0"

func gzipped(t testing.TB, parts ...string) string {
	t.Helper()
	var out bytes.Buffer
	for _, p := range parts {
		w := gzip.NewWriter(&out)
		if _, err := w.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
	return out.String()
}

func zstded(t testing.TB, text string) string {
	t.Helper()
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	return string(e.EncodeAll([]byte(text), nil))
}

func idTable(c *Connector, format string) *connector.Table {
	return tableOf(c, []connector.Column{column("id", types.NewBigInt())}, nil, map[string]string{"path": "/t", "format": format})
}

// TestCompressedFiles: each ending that Flink knows, but for xz, is read, a file of several
// members as one text, and rows have their offsets in the text.
func TestCompressedFiles(t *testing.T) {
	mem := vfs.NewMem()
	c := newConnector(mem)
	lines := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "{\"id\":%d}\n", i)
		}
		return b.String()
	}
	var deflated bytes.Buffer
	z := zlib.NewWriter(&deflated)
	if _, err := z.Write([]byte(lines(4, 6))); err != nil {
		t.Fatal(err)
	}
	z.Close()
	b, err := hex.DecodeString(bzip2Lines)
	if err != nil {
		t.Fatal(err)
	}
	putFile(t, mem, "/t/a.json.bz2", string(b))
	putFile(t, mem, "/t/b.json.DEFLATE", deflated.String())
	putFile(t, mem, "/t/c.json.gz", gzipped(t, lines(6, 90_000), "{\"id\":90000}"))
	putFile(t, mem, "/t/d.gzip", gzipped(t, ""))
	putFile(t, mem, "/t/e.zst", zstded(t, lines(90_001, 90_100))+zstded(t, lines(90_100, 90_110)))
	putFile(t, mem, "/t/f.json", lines(90_110, 90_112))
	var got []int64
	for _, b := range readTable(t, c, idTable(c, "json"), nil) {
		if len(b.Notes) > 0 {
			t.Fatal(b.Notes)
		}
		got = append(got, b.Cols[0].I64[:b.Len]...)
	}
	if len(got) != 90_111 {
		t.Fatalf("%d rows", len(got))
	}
	for i, id := range got {
		if id != int64(i+1) {
			t.Fatalf("row %d is %d", i, id)
		}
	}
	putFile(t, mem, "/t/g.json.xz", "\xfd7zXZ\x00 and more")
	s, err := c.OpenSource(context.Background(), idTable(c, "json"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Partitions(context.Background()); err == nil || !strings.Contains(err.Error(), "/t/g.json.xz") || !strings.Contains(err.Error(), ".bz2") {
		t.Errorf("xz: %v", err)
	}
}

// TestCompressedPositions: reading goes on from every position, with a new reader after each
// batch, as after a crash; bad rows have their offset and text.
func TestCompressedPositions(t *testing.T) {
	mem := vfs.NewMem()
	c := newConnector(mem)
	var text strings.Builder
	var want []int64
	for i := range int64(40) {
		fmt.Fprintf(&text, "%d\n", i)
		want = append(want, i)
	}
	bad := int64(len("a head\n") + text.Len())
	text.WriteString("1,2,3\n")
	putFile(t, mem, "/t/rows.csv.gz", gzipped(t, "a head\n"+text.String()+"40"))
	want = append(want, 40)
	table := tableOf(c, []connector.Column{column("id", types.NewBigInt())}, nil, map[string]string{"path": "/t", "format": "csv", keySkipLines: "1"})
	ctx := context.Background()
	s, _, from, ends := openTable(t, c, table)
	defer s.Close()
	var got []int64
	notes := 0
	for at := from[0]; at.Offset < ends[0]; {
		if e, err := s.Check(ctx, []connector.Position{at}); err != nil || e[0] != nil {
			t.Fatal(e, err)
		}
		r, err := s.Open(ctx, []connector.Split{{From: at, End: ends[0]}}, nil, func() {})
		if err != nil {
			t.Fatal(err)
		}
		b := new(batch.Batch)
		if err := r.Next(ctx, b, 7, 1<<20); err != nil {
			t.Fatal(err)
		}
		if len(b.Runs) == 0 || b.Runs[0].BaseOffset != at.Offset {
			t.Fatalf("at %d: runs %+v", at.Offset, b.Runs)
		}
		for _, n := range b.Notes {
			raw, ok := r.Raw(0, n.Offset)
			if n.Offset != bad || !ok || string(raw.Value) != "1,2,3" {
				t.Errorf("note %+v of %q", n, raw.Value)
			}
			notes++
		}
		if end := r.LogEnd(0); end < b.Runs[0].EndOffset {
			t.Errorf("the end is estimated as %d at %d", end, b.Runs[0].EndOffset)
		}
		got = append(got, b.Cols[0].I64[:b.Len]...)
		at.Offset = b.Runs[len(b.Runs)-1].EndOffset
		r.Close()
	}
	if !slices.Equal(got, want) || notes != 1 {
		t.Errorf("rows %v, %d notes", got, notes)
	}
}

// TestDamagedFile: of a file that was cut or changed anywhere, rows come up to the damage,
// and none that is not of the file; then the error names file and place, and after the
// user's consent reading goes on behind it. The other file of the table is read.
func TestDamagedFile(t *testing.T) {
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "{\"id\":%d}\n", i)
	}
	whole := text.String()
	for name, compressed := range map[string]string{
		"a.json.gz":  gzipped(t, whole[:len(whole)/2], whole[len(whole)/2:]),
		"a.json.zst": zstded(t, whole[:len(whole)/2]) + zstded(t, whole[len(whole)/2:]),
	} {
		half := len(compressed) / 2
		for what, bytes := range map[string]string{
			"cut in the head": compressed[:5], "cut": compressed[:half+half/2], "cut before its last byte": compressed[:len(compressed)-1],
			"no compressed file": whole[:2000], "checksum": compressed[:len(compressed)-1] + string(compressed[len(compressed)-1]^1),
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				mem := vfs.NewMem()
				putFile(t, mem, "/t/"+name, bytes)
				putFile(t, mem, "/t/b.json", "{\"id\":-1}\n")
				damagedTable(t, newConnector(mem), name)
			})
		}
	}
}

func damagedTable(t *testing.T, c *Connector, name string) {
	ctx := context.Background()
	s, parts, from, ends := openTable(t, c, idTable(c, "json"))
	defer s.Close()
	if len(parts) != 2 {
		t.Fatal(parts)
	}
	read := func(i int, at connector.Position) (ids []int64, next int64, err error) {
		r, err := s.Open(ctx, []connector.Split{{From: at, End: ends[i]}}, nil, func() {})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		next = at.Offset
		for {
			b := new(batch.Batch)
			if err := r.Next(ctx, b, 100, 1<<20); err != nil {
				return ids, next, err
			}
			if len(b.Notes) > 0 {
				t.Fatal(b.Notes)
			}
			ids, next = append(ids, b.Cols[0].I64[:b.Len]...), b.Runs[len(b.Runs)-1].EndOffset
		}
	}
	ids, next, err := read(0, from[0])
	var m *connector.MismatchError
	if !errors.As(err, &m) || !m.Damaged || m.Position.Offset != next || m.Earliest != ends[0] {
		t.Fatalf("after %d rows, at %d: %v", len(ids), next, err)
	}
	if text := err.Error(); !strings.Contains(text, "/t/"+name) || !strings.Contains(text, "torn or damaged at byte ") || !strings.Contains(text, fmt.Sprintf("from byte %d ", next)) {
		t.Error(text)
	}
	for i, id := range ids {
		if id != int64(i) {
			t.Fatalf("row %d is %d", i, id)
		}
	}
	// Again, and behind it.
	at := m.Position
	if more, _, err := read(0, at); len(more) > 0 || !errors.As(err, &m) {
		t.Errorf("read again: %d rows, %v", len(more), err)
	}
	checks, err := s.Check(ctx, []connector.Position{at})
	if err != nil || !errors.As(checks[0], &m) || m.Earliest != ends[0] {
		t.Fatal(checks, err)
	}
	at.Offset = m.Earliest
	if checks, err := s.Check(ctx, []connector.Position{at}); err != nil || checks[0] != nil {
		t.Error(checks, err)
	}
	if more, _, err := read(0, at); len(more) > 0 || err != io.EOF {
		t.Errorf("behind it: %d rows, %v", len(more), err)
	}
	if other, _, err := read(1, from[1]); !slices.Equal(other, []int64{-1}) || err != io.EOF {
		t.Errorf("the other file: %v, %v", other, err)
	}
}

// TestCompressedBomb: what unpacks to far more than text does is refused.
func TestCompressedBomb(t *testing.T) {
	var out bytes.Buffer
	e, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("\n", 1<<20))
	for range 130 {
		if _, err := e.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	e.Close()
	mem := vfs.NewMem()
	putFile(t, mem, "/a.zst", out.String())
	f, err := mem.Open("/a.zst")
	if err != nil {
		t.Fatal(err)
	}
	in := newCompressedInput(f, int64(out.Len()), codecs()[1])
	defer in.close()
	in.limit = 100 << 20
	if err := in.skip(1<<20, func() error { return context.Canceled }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := in.skip(130<<20, func() error { return nil }); !errors.Is(err, errDamaged) {
		t.Error(err)
	}
}

// TestWrittenCompressed: text is written in the form its name ends with, as the standard
// library reads it, and a file's size counts compressed bytes.
func TestWrittenCompressed(t *testing.T) {
	for _, with := range []string{compressionGzip, compressionZstd} {
		t.Run(with, func(t *testing.T) {
			mem := vfs.NewMem()
			c := newConnector(mem)
			cols := []connector.Column{column("v", types.NewString())}
			table := tableOf(c, cols, nil, map[string]string{"path": "/t", "format": "csv", keyCompression: with})
			var rows [][]string
			var want strings.Builder
			for i := range 30_000 {
				rows = append(rows, []string{fmt.Sprintf("row %d of many", i)})
				want.WriteString(rows[i][0] + "\n")
			}
			as := publishBatch(t, c, table, textBatch(cols, rows...), 1)
			if len(as) != 1 || !strings.HasSuffix(as[0].Location, ".csv"+map[string]string{compressionGzip: ".gz", compressionZstd: ".zst"}[with]) {
				t.Fatalf("artefacts %+v", as)
			}
			b, err := vfs.ReadFile(mem, as[0].Location)
			if err != nil || int64(len(b)) != as[0].Bytes || len(b) > want.Len()/4 {
				t.Fatalf("%d bytes of %d, artefact %d: %v", len(b), want.Len(), as[0].Bytes, err)
			}
			var in io.Reader
			if with == compressionGzip {
				in, err = gzip.NewReader(bytes.NewReader(b))
			} else {
				in, err = zstd.NewReader(bytes.NewReader(b))
			}
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(in); err != nil || string(text) != want.String() {
				t.Errorf("%d bytes of text, want %d: %v", len(text), want.Len(), err)
			}
			n := 0
			for _, b := range readTable(t, c, table, nil) {
				n += b.Len
			}
			if n != len(rows) {
				t.Errorf("%d rows are read back", n)
			}
		})
	}
}

// TestCompressedSize: an open file counts as what it will have on the disk.
func TestCompressedSize(t *testing.T) {
	c := newConnector(vfs.NewMem())
	cols := []connector.Column{column("v", types.NewString())}
	ctx := context.Background()
	s, err := c.OpenSink(ctx, tableOf(c, cols, nil, map[string]string{"path": "/t", "format": "csv", keyCompression: compressionGzip}), conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w, err := s.OpenWriter(ctx, connector.Attempt{ID: connector.ArtifactID{Job: conntest.UUID(1), Epoch: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var rows [][]string
	for range 20_000 {
		rows = append(rows, []string{"always the same row"})
	}
	b := textBatch(cols, rows...)
	ids, err := w.Buckets(b, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(b, nil, ids[0]); err != nil {
		t.Fatal(err)
	}
	if n := w.Open()[0].Bytes; n < 100 || n > 20_000 {
		t.Errorf("400,000 bytes of the same row count as %d", n)
	}
}

func TestCompressionOptions(t *testing.T) {
	c := newConnector(vfs.NewMem())
	for _, v := range []map[string]string{
		{"format": "parquet", keyCompression: "gzip"}, {"format": "json", keyCompression: "xz"}, {"format": "json", "sink.compresion": "gzip"},
	} {
		v["connector"], v["path"] = "filesystem", "/t"
		if _, errs := c.Spec().Resolve(v); len(errs) != 1 {
			t.Errorf("%v: %v", v, errs)
		}
	}
	if _, errs := c.Spec().Resolve(map[string]string{"connector": "filesystem", "path": "/t", "format": "parquet", keyCompression: "gzip"}); len(errs) == 1 && !strings.Contains(errs[0].Hint, "parquet.compression") {
		t.Errorf("hint %q", errs[0].Hint)
	}
}
