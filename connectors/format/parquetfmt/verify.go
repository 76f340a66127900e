package parquetfmt

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/xitongsys/parquet-go/layout"
	xparquet "github.com/xitongsys/parquet-go/parquet"
	xreader "github.com/xitongsys/parquet-go/reader"
	"github.com/xitongsys/parquet-go/source"
)

// Verify decodes every value of a file with a reader that shares no code with
// the writer (xitongsys/parquet-go) and compares footer, row counts, page
// checksums, NULL counts and bounds with what it finds. What is wrong with the
// file stands in the Report; the error is for reads that failed.
func Verify(r io.ReaderAt, size int64) (*Report, error) {
	v := &verifier{r: &errorReaderAt{r: r}, size: size, report: &Report{Bytes: size}}
	v.file()
	if err := v.r.err; err != nil {
		return v.report, fmt.Errorf("reading file: %w", err)
	}
	return v.report, nil
}

// errorReaderAt remembers read errors other than the end of the file, which a
// decoder may swallow.
type errorReaderAt struct {
	r   io.ReaderAt
	err error
}

func (e *errorReaderAt) ReadAt(b []byte, off int64) (int, error) {
	n, err := e.r.ReadAt(b, off)
	if err != nil && err != io.EOF && e.err == nil {
		e.err = err
	}
	return n, err
}

type verifier struct {
	r      *errorReaderAt
	size   int64
	report *Report
	meta   *format.FileMetaData
	second *xreader.ParquetReader
}

func (v *verifier) problem(where, text string, args ...any) {
	v.report.problem(where, fmt.Sprintf(text, args...))
}

// guard runs a step that decodes untrusted bytes.
func (v *verifier) guard(where string, step func() error) bool {
	err := func() (err error) {
		defer recoverCorrupt(&err)
		return step()
	}()
	if err != nil {
		v.problem(where, "%v", err)
	}
	return err == nil
}

func (v *verifier) file() {
	var head [4]byte
	if _, err := v.r.ReadAt(head[:], 0); err != nil || string(head[:]) != magic {
		v.problem("file", "no PAR1 at the start")
	}
	ok := v.guard("footer", func() (err error) {
		v.meta, err = readFooter(v.r, v.size)
		return err
	})
	if !ok {
		return
	}
	ok = v.guard("footer", func() (err error) {
		v.second, err = xreader.NewParquetColumnReader(&readerFile{SectionReader: io.NewSectionReader(v.r, 0, v.size)}, 1)
		return err
	})
	if !ok {
		return
	}
	v.report.describe(v.meta)
	var roots []*fileNode
	if !v.guard("schema", func() (err error) { roots, err = readSchema(v.meta.Schema); return err }) {
		return
	}
	leaves := leavesOf(roots, nil)
	rows := int64(0)
	for g := range v.meta.RowGroups {
		rows += v.meta.RowGroups[g].NumRows
		v.group(g, leaves)
	}
	if rows != v.meta.NumRows {
		v.problem("footer", "says %d rows, its row groups %d", v.meta.NumRows, rows)
	}
	if v.second.Footer.NumRows != v.meta.NumRows {
		v.problem("footer", "the two readers disagree on the number of rows: %d and %d", v.meta.NumRows, v.second.Footer.NumRows)
	}
}

func leavesOf(nodes []*fileNode, leaves []*fileNode) []*fileNode {
	for _, n := range nodes {
		if n.shape == shapeLeaf {
			leaves = append(leaves, n)
		}
		leaves = leavesOf(n.children, leaves)
	}
	return leaves
}

func (v *verifier) group(g int, leaves []*fileNode) {
	group := &v.meta.RowGroups[g]
	second := v.second.Footer.RowGroups
	if g >= len(second) || len(second[g].Columns) != len(group.Columns) || len(group.Columns) != len(leaves) {
		v.problem(fmt.Sprintf("row group %d", g), "has %d columns, the schema %d", len(group.Columns), len(leaves))
		return
	}
	v.report.RowGroups = append(v.report.RowGroups, RowGroupReport{Rows: group.NumRows})
	for c := range group.Columns {
		where := fmt.Sprintf("row group %d, column %s", g, joinPath(group.Columns[c].MetaData.PathInSchema))
		v.guard(where, func() error {
			return v.chunk(where, g, c, leaves[c])
		})
	}
}

func (v *verifier) chunk(where string, g, c int, leaf *fileNode) error {
	m := &v.meta.RowGroups[g].Columns[c].MetaData
	start := m.DataPageOffset
	if m.DictionaryPageOffset > 0 && m.DictionaryPageOffset < start {
		start = m.DictionaryPageOffset
	}
	if start < 4 || m.TotalCompressedSize < 0 || start+m.TotalCompressedSize > v.size {
		return fmt.Errorf("its pages (%d bytes at %d) lie outside the file", m.TotalCompressedSize, start)
	}
	pages, err := v.pages(start, m)
	if err != nil {
		return err
	}
	v.report.RowGroups[g].Bytes += m.TotalCompressedSize
	f := &readerFile{SectionReader: io.NewSectionReader(v.r, 0, v.size)}
	in := source.ConvertToThriftReader(f, start, min(m.TotalCompressedSize+1, 1<<20))
	col := v.second.Footer.RowGroups[g].Columns[c].MetaData
	t := newTally(leaf)
	var dict *layout.Page
	for n := range pages {
		p, _, _, err := layout.ReadPage(in, v.second.SchemaHandler, col)
		if err != nil {
			return fmt.Errorf("page %d: %w", n, err)
		}
		if p.Header.GetType() == xparquet.PageType_DICTIONARY_PAGE {
			dict = p
			continue
		}
		p.Decode(dict)
		if err := t.add(p.DataTable.Values, p.DataTable.RepetitionLevels); err != nil {
			return fmt.Errorf("page %d: %w", n, err)
		}
	}
	if t.slots != m.NumValues {
		v.problem(where, "has %d values, its metadata says %d", t.slots, m.NumValues)
	}
	if rows := v.meta.RowGroups[g].NumRows; t.rows != rows {
		v.problem(where, "has %d rows, the row group %d", t.rows, rows)
	}
	for _, text := range t.compare(&m.Statistics) {
		v.problem(where, "%s", text)
	}
	// Only the second reader tells "no NULLs" from "not said".
	if s := col.Statistics; s != nil && s.NullCount != nil && *s.NullCount != t.nulls {
		v.problem(where, "statistics say %d NULLs, there are %d", *s.NullCount, t.nulls)
	}
	v.report.column(c, m, t, pages)
	return nil
}

// pages walks the page headers of a chunk, checks sizes and checksums and
// returns their number, so that the second reader sees sane headers only.
func (v *verifier) pages(start int64, m *format.ColumnMetaData) (int, error) {
	count, values := 0, int64(0)
	at, end := start, start+m.TotalCompressedSize
	var body []byte
	for at < end {
		in := &countReader{r: bufio.NewReaderSize(io.NewSectionReader(v.r, at, end-at), 512)}
		var h format.PageHeader
		if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(in)).Decode(&h); err != nil {
			return 0, fmt.Errorf("page %d: header: %w", count, err)
		}
		n := int64(h.CompressedPageSize)
		if n < 0 || at+in.n+n > end || h.UncompressedPageSize < 0 {
			return 0, fmt.Errorf("page %d: its size %d does not fit the column's pages", count, n)
		}
		switch {
		case h.DataPageHeader.Valid:
			values += int64(h.DataPageHeader.V.NumValues)
		case h.DataPageHeaderV2.Valid:
			values += int64(h.DataPageHeaderV2.V.NumValues)
		}
		if h.CRC != 0 {
			if int64(cap(body)) < n {
				body = make([]byte, n)
			}
			body = body[:n]
			if err := readFull(v.r, body, at+in.n); err != nil {
				return 0, fmt.Errorf("page %d: %w", count, err)
			}
			if crc32.ChecksumIEEE(body) != uint32(h.CRC) {
				return 0, fmt.Errorf("page %d: checksum mismatch", count)
			}
		}
		at += in.n + n
		count++
	}
	if values != m.NumValues {
		return 0, fmt.Errorf("its pages hold %d values, its metadata says %d", values, m.NumValues)
	}
	return count, nil
}

type countReader struct {
	r *bufio.Reader
	n int64
}

func (c *countReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

func (c *countReader) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// readerFile is the second reader's idea of a file.
type readerFile struct{ *io.SectionReader }

var errReadOnly = errors.New("file is read-only")

func (f *readerFile) Write([]byte) (int, error) { return 0, errReadOnly }
func (f *readerFile) Close() error              { return nil }

func (f *readerFile) Open(string) (source.ParquetFile, error) {
	return &readerFile{SectionReader: io.NewSectionReader(f.SectionReader, 0, f.Size())}, nil
}

func (f *readerFile) Create(string) (source.ParquetFile, error) { return nil, errReadOnly }

// tally is what the values of one column chunk are found to be.
type tally struct {
	leaf               *fileNode
	order              func(a, b any) int // nil: no order
	slots, rows, nulls int64
	min, max           any
}

func newTally(leaf *fileNode) *tally {
	return &tally{leaf: leaf, order: orderOf(leaf)}
}

func (t *tally) add(values []any, reps []int32) error {
	text := t.leaf.typ.IsString()
	for i, v := range values {
		t.slots++
		if reps[i] == 0 {
			t.rows++
		}
		if v == nil {
			t.nulls++
			continue
		}
		if s, ok := v.(string); ok && text && !utf8.ValidString(s) {
			return fmt.Errorf("value %d is text that is not valid UTF-8", t.slots-1)
		}
		if t.order == nil || isNaN(v) {
			continue
		}
		if t.min == nil || t.order(v, t.min) < 0 {
			t.min = v
		}
		if t.max == nil || t.order(v, t.max) > 0 {
			t.max = v
		}
	}
	return nil
}

func isNaN(v any) bool {
	switch x := v.(type) {
	case float32:
		return x != x
	case float64:
		return math.IsNaN(x)
	}
	return false
}

// compare checks a chunk's statistics against the values. Bounds may be wider
// than the values, never narrower.
func (t *tally) compare(s *format.Statistics) (problems []string) {
	lo, hi := s.MinValue, s.MaxValue
	if t.order == nil || t.min == nil {
		return problems
	}
	if len(lo) > 0 {
		if b, err := boundOf(t.leaf, lo); err != nil {
			problems = append(problems, "minimum: "+err.Error())
		} else if t.order(t.min, b) < 0 {
			problems = append(problems, fmt.Sprintf("statistics say the minimum is %s, a value is %s", show(t.leaf, b), show(t.leaf, t.min)))
		}
	}
	if len(hi) > 0 {
		if b, err := boundOf(t.leaf, hi); err != nil {
			problems = append(problems, "maximum: "+err.Error())
		} else if t.order(t.max, b) > 0 {
			problems = append(problems, fmt.Sprintf("statistics say the maximum is %s, a value is %s", show(t.leaf, b), show(t.leaf, t.max)))
		}
	}
	return problems
}
