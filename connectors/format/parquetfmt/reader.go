package parquetfmt

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// File is an open Parquet file, ours or foreign. It is safe for concurrent use.
type File struct {
	file  *parquet.File
	meta  *format.FileMetaData
	roots []*fileNode
}

// RowGroup is a split of a file.
type RowGroup struct {
	// FirstRow is the ordinal in the file of the group's first row.
	FirstRow, Rows int64
	// Bytes are the stored bytes of all columns.
	Bytes int64
}

// OpenFile reads the footer. r stays the caller's and must outlive the File.
func OpenFile(r io.ReaderAt, size int64) (f *File, err error) {
	defer recoverCorrupt(&err)
	meta, err := readFooter(r, size)
	if err != nil {
		return nil, err
	}
	roots, err := readSchema(meta.Schema)
	if err != nil {
		return nil, err
	}
	if err := checkGroups(meta, leavesOf(roots, nil)); err != nil {
		return nil, err
	}
	pf, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return &File{file: pf, meta: meta, roots: roots}, nil
}

// checkGroups compares counts that the footer holds more than once, and
// refuses codecs that we do not read.
func checkGroups(meta *format.FileMetaData, leaves []*fileNode) error {
	rows := int64(0)
	for i, g := range meta.RowGroups {
		if g.NumRows < 0 || len(g.Columns) != len(leaves) {
			return fmt.Errorf("%w: row group %d has %d rows and %d columns, the schema %d", ErrCorrupt, i, g.NumRows, len(g.Columns), len(leaves))
		}
		rows += g.NumRows
		for c := range g.Columns {
			m := &g.Columns[c].MetaData
			if leaves[c].maxRep == 0 && m.NumValues != g.NumRows {
				return fmt.Errorf("%w: row group %d has %d rows, its column %s %d values", ErrCorrupt, i, g.NumRows, joinPath(m.PathInSchema), m.NumValues)
			}
			switch m.Codec {
			case format.Uncompressed, format.Snappy, format.Gzip, format.Zstd:
			default:
				return fmt.Errorf("%w: reading pages compressed with %s", ErrNotYet, m.Codec)
			}
		}
	}
	if rows != meta.NumRows {
		return fmt.Errorf("%w: the footer says %d rows, its row groups %d", ErrCorrupt, meta.NumRows, rows)
	}
	return nil
}

// recoverCorrupt turns a panic of the page decoder on hostile bytes into an
// error: such a file must not stop the process.
func recoverCorrupt(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: decoding: %v", ErrCorrupt, p)
	}
}

// Rows is the number of rows in the file.
func (f *File) Rows() int64 { return f.meta.NumRows }

// Fields are the file's columns. A column whose type Millrace does not have is
// there with an invalid type; reading it is an error.
func (f *File) Fields() []types.Field {
	fields := make([]types.Field, len(f.roots))
	for i, n := range f.roots {
		fields[i] = types.Field{Name: n.name, Type: n.typ}
	}
	return fields
}

// Metadata is the footer's key-value metadata.
func (f *File) Metadata() map[string]string {
	m := make(map[string]string, len(f.meta.KeyValueMetadata))
	for _, kv := range f.meta.KeyValueMetadata {
		m[kv.Key] = kv.Value
	}
	return m
}

// RowGroups are the file's splits in order.
func (f *File) RowGroups() []RowGroup {
	groups := make([]RowGroup, len(f.meta.RowGroups))
	first := int64(0)
	for i, g := range f.meta.RowGroups {
		groups[i] = RowGroup{FirstRow: first, Rows: g.NumRows}
		for _, c := range g.Columns {
			groups[i].Bytes += c.MetaData.TotalCompressedSize
		}
		first += g.NumRows
	}
	return groups
}

// RowGroupReader reads the rows of one row group into columns.
type RowGroupReader struct {
	rows, pos int64
	cols      []*columnReader
	err       error
}

// ReadRowGroup starts reading a row group. Columns are matched by name, first
// exactly, then ignoring case; a column (or a ROW's field) that the file does
// not have is NULL; a narrower type is widened; a value that the declared type
// cannot hold is an error value of its row. A type that cannot be converted at
// all is an error here. TIMESTAMP and TIMESTAMP_LTZ read each other's files
// unchanged; a fraction finer than the declared precision is cut, not rounded.
func (f *File) ReadRowGroup(group int, fields []types.Field) (r *RowGroupReader, err error) {
	defer recoverCorrupt(&err)
	if group < 0 || group >= len(f.meta.RowGroups) {
		return nil, fmt.Errorf("row group %d of %d", group, len(f.meta.RowGroups))
	}
	r = &RowGroupReader{rows: f.meta.RowGroups[group].NumRows}
	chunks := f.file.RowGroups()[group].ColumnChunks()
	for _, fd := range fields {
		c, err := newColumnReader(byName(f.roots, fd.Name), fd.Name, fd.Type, chunks)
		if err != nil {
			r.Close()
			return nil, err
		}
		r.cols = append(r.cols, c)
	}
	return r, nil
}

// Position is the ordinal within the row group of the next row.
func (r *RowGroupReader) Position() int64 { return r.pos }

// Skip moves to the given ordinal within the row group, which must not lie
// behind the position.
func (r *RowGroupReader) Skip(to int64) (err error) {
	if r.err != nil {
		return r.err
	}
	defer func() { r.err = err }()
	defer recoverCorrupt(&err)
	if to < r.pos || to > r.rows {
		return fmt.Errorf("skipping from row %d to row %d of %d", r.pos, to, r.rows)
	}
	for _, c := range r.cols {
		if err := c.skip(to - r.pos); err != nil {
			return err
		}
	}
	r.pos = to
	return nil
}

// Read fills cols, one Vec a field, with at most limit rows and returns how
// many; io.EOF after the last row. The Vecs' memory is re-used.
func (r *RowGroupReader) Read(cols []batch.Vec, limit int) (n int, err error) {
	if r.err != nil {
		return 0, r.err
	}
	if len(cols) != len(r.cols) {
		return 0, fmt.Errorf("reading %d columns into %d", len(r.cols), len(cols))
	}
	if r.pos == r.rows {
		return 0, io.EOF
	}
	defer func() { r.err = err }()
	defer recoverCorrupt(&err)
	n = int(min(int64(limit), r.rows-r.pos))
	for i, c := range r.cols {
		if err := c.read(&cols[i], n); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = fmt.Errorf("%w: column %s ends before its row count", ErrCorrupt, c.name)
			}
			return 0, err
		}
	}
	r.pos += int64(n)
	return n, nil
}

// Close releases the reader's pages.
func (r *RowGroupReader) Close() {
	for _, c := range r.cols {
		c.close()
	}
	if r.err == nil {
		r.err = ErrClosed
	}
}
