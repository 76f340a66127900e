package parquetfmt

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// maxPieceRows is how many rows are taken from a batch between two looks at
// page and row group sizes.
const maxPieceRows = 1024

// maxRowGroups is the largest number of row groups: their ordinal is an int16.
const maxRowGroups = math.MaxInt16

const magic = "PAR1"

// Writer writes one Parquet file. It belongs to one goroutine at a time. It
// writes to its io.Writer only when a row group ends and in Close.
type Writer struct {
	w      io.Writer
	opts   Options
	err    error // sticky
	closed bool

	schema []format.SchemaElement
	roots  []*node
	leaves []*leaf
	meta   map[string]string

	off       int64 // bytes written
	rows      int64 // rows in finished row groups
	groupRows int64
	groups    []format.RowGroup
}

// NewWriter starts a file of the given columns on w. Nothing is written before
// the first row group ends. The caller owns w and syncs and closes it after
// Close.
func NewWriter(w io.Writer, fields []types.Field, o Options) (*Writer, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("parquet options: %w", err)
	}
	o = o.withDefaults()
	schema, roots, leaves, err := buildSchema(fields, o)
	if err != nil {
		return nil, err
	}
	for _, l := range leaves {
		if o.DictionaryBytes < 0 {
			l.dictSkip = math.MaxInt
		}
		l.dictOn = l.dictSkip == 0
	}
	return &Writer{w: w, opts: o, schema: schema, roots: roots, leaves: leaves, meta: make(map[string]string)}, nil
}

// Write appends the selected rows of cols, one Vec a field in declared order;
// nil selects all rows. The Vecs are not kept. A selected row that holds an
// error value is refused with [ErrValueError] before anything of the batch is
// taken; the writer stays usable. Any other error is final.
func (w *Writer) Write(cols []batch.Vec, sel batch.Sel) error {
	if err := w.usable(); err != nil {
		return err
	}
	if len(cols) != len(w.roots) {
		return fmt.Errorf("writing %d columns into a file of %d", len(cols), len(w.roots))
	}
	rows := cols[0].Len
	for c := range cols {
		if cols[c].Len != rows {
			return fmt.Errorf("column %d has %d rows, column 0 has %d", c, cols[c].Len, rows)
		}
		if e := firstError(&cols[c], sel, rows); e != nil {
			return fmt.Errorf("%w: %s: %s", ErrValueError, e.Where, e.Message)
		}
	}
	n := rows
	if sel != nil {
		n = len(sel)
	}
	sc := w.opts.Pools.scratchFor()
	defer w.opts.Pools.putScratch(sc)
	step := w.pieceRows(cols, rows)
	for lo := 0; lo < n; lo += step {
		hi := min(lo+step, n)
		if err := w.piece(sc, cols, sel, lo, hi); err != nil {
			return w.fail(err)
		}
	}
	return nil
}

// pieceRows keeps a piece of wide rows near a few pages' size.
func (w *Writer) pieceRows(cols []batch.Vec, rows int) int {
	perRow := 0
	for c := range cols {
		perRow = max(perRow, widthOf(&cols[c], rows))
	}
	return min(maxPieceRows, max(1, 4*w.opts.PageBytes/max(perRow, 1)))
}

// widthOf is the mean number of bytes a row in the widest part of v.
func widthOf(v *batch.Vec, rows int) int {
	if v.Enc == batch.Dict {
		return widthOf(v.Dict, max(v.Dict.Len, 1))
	}
	if v.Enc == batch.Const {
		rows = 1
	}
	width := len(v.Data) / max(rows, 1)
	for _, c := range v.Children {
		// The children of a list have their own row count; their bytes still
		// spread over our rows.
		width = max(width, widthOf(c, rows))
	}
	return width
}

func (w *Writer) piece(sc *scratch, cols []batch.Vec, sel batch.Sel, lo, hi int) error {
	for c, n := range w.roots {
		if n.leaf != nil {
			if err := n.leaf.appendFlat(sc, &cols[c], sel, lo, hi); err != nil {
				return err
			}
			continue
		}
		s := sc.level(0)
		s.reset()
		for i := lo; i < hi; i++ {
			row := int32(i)
			if sel != nil {
				row = sel[i]
			}
			s.push(0, 0, row)
		}
		if err := n.shred(sc, 0, &cols[c]); err != nil {
			return fmt.Errorf("column %d: %w", c, err)
		}
	}
	w.groupRows += int64(hi - lo)
	raw := int64(0)
	for _, l := range w.leaves {
		if len(l.plain) >= w.opts.PageBytes || l.slots >= maxPageValues {
			if err := l.cut(w, sc); err != nil {
				return err
			}
		}
		raw += l.rawBytes + int64(l.rawSize())
	}
	if raw >= int64(w.opts.RowGroupBytes) {
		return w.endGroup(sc)
	}
	return nil
}

// Flush ends the current row group, if it has rows, and writes it.
func (w *Writer) Flush() error {
	if err := w.usable(); err != nil {
		return err
	}
	sc := w.opts.Pools.scratchFor()
	defer w.opts.Pools.putScratch(sc)
	if err := w.endGroup(sc); err != nil {
		return w.fail(err)
	}
	return nil
}

// SetMetadata sets a key of the footer's key-value metadata; allowed until
// Close.
func (w *Writer) SetMetadata(key, value string) { w.meta[key] = value }

// Rows is the number of rows written so far.
func (w *Writer) Rows() int64 { return w.rows + w.groupRows }

// BufferedBytes is the memory that the open file holds: raw pages, dictionaries
// and the compressed pages of the current row group.
func (w *Writer) BufferedBytes() int {
	n := 0
	for _, l := range w.leaves {
		n += l.memory()
	}
	return n
}

// EstimatedBytes is the size the file would have if it were closed now:
// written and compressed bytes are exact, raw pages count half.
func (w *Writer) EstimatedBytes() int64 {
	n := w.off
	for _, l := range w.leaves {
		n += l.storedBytes + int64(l.rawSize()/2)
	}
	return n
}

// Close ends the last row group and writes the footer. A file without rows is
// valid: a schema and no row group. The returned Stats describe exactly the
// bytes given to the io.Writer.
func (w *Writer) Close() (Stats, error) {
	if err := w.usable(); err != nil {
		return Stats{}, err
	}
	sc := w.opts.Pools.scratchFor()
	defer w.opts.Pools.putScratch(sc)
	if err := w.endGroup(sc); err != nil {
		return Stats{}, w.fail(err)
	}
	if err := w.footer(); err != nil {
		return Stats{}, w.fail(err)
	}
	w.closed = true
	return w.stats(), nil
}

// Abort gives the buffers back without finishing the file.
func (w *Writer) Abort() {
	for _, l := range w.leaves {
		w.opts.Pools.putBlocks(l.blocks)
		l.blocks, l.plain, l.def, l.rep, l.dict = nil, nil, nil, nil, dictionary{}
	}
	w.closed = true
}

func (w *Writer) usable() error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return ErrClosed
	}
	return nil
}

func (w *Writer) fail(err error) error {
	w.err = fmt.Errorf("writing parquet: %w", err)
	return w.err
}

// write gives bytes to the underlying writer and accepts nothing less than all
// of them.
func (w *Writer) write(b []byte) error {
	n, err := w.w.Write(b)
	w.off += int64(n)
	if err == nil && n != len(b) {
		err = io.ErrShortWrite
	}
	return err
}

func (w *Writer) start() error {
	if w.off > 0 {
		return nil
	}
	return w.write([]byte(magic))
}

// endGroup writes the current row group, column after column.
func (w *Writer) endGroup(sc *scratch) error {
	if w.groupRows == 0 {
		return nil
	}
	if len(w.groups) == maxRowGroups {
		return fmt.Errorf("more than %d row groups", maxRowGroups)
	}
	if err := w.start(); err != nil {
		return err
	}
	g := format.RowGroup{NumRows: w.groupRows, FileOffset: w.off, Ordinal: int16(len(w.groups))}
	for _, l := range w.leaves {
		if err := l.cut(w, sc); err != nil {
			return err
		}
		chunk, err := w.chunk(sc, l)
		if err != nil {
			return err
		}
		g.TotalByteSize += chunk.MetaData.TotalUncompressedSize
		g.TotalCompressedSize += chunk.MetaData.TotalCompressedSize
		g.Columns = append(g.Columns, chunk)
		l.endChunk(w.opts.Pools)
	}
	w.groups = append(w.groups, g)
	w.rows += w.groupRows
	w.groupRows = 0
	return nil
}

// chunk writes a leaf's dictionary page and data pages.
func (w *Writer) chunk(sc *scratch, l *leaf) (format.ColumnChunk, error) {
	m := format.ColumnMetaData{
		Type: l.phys, PathInSchema: l.path, Codec: w.opts.Compression.codec(), NumValues: l.chunkSlots,
	}
	start := w.off
	if l.dictPages > 0 {
		comp, err := sc.compress(w.opts.Compression, l.dict.plain)
		if err != nil {
			return format.ColumnChunk{}, err
		}
		var hb [64]byte
		head := pageHeader{dictionary: true, values: l.dict.n, encoding: format.Plain}.append(hb[:0], len(l.dict.plain), comp)
		l.rawBytes += int64(len(head) + len(l.dict.plain))
		l.storedBytes += int64(len(head) + len(comp))
		m.DictionaryPageOffset = w.off
		if err := w.write(head); err != nil {
			return format.ColumnChunk{}, err
		}
		if err := w.write(comp); err != nil {
			return format.ColumnChunk{}, err
		}
		m.Encoding = append(m.Encoding, format.RLEDictionary)
		m.EncodingStats = append(m.EncodingStats,
			format.PageEncodingStats{PageType: format.DictionaryPage, Encoding: format.Plain, Count: 1},
			format.PageEncodingStats{PageType: format.DataPage, Encoding: format.RLEDictionary, Count: l.dictPages})
	}
	if l.plains > 0 {
		m.EncodingStats = append(m.EncodingStats,
			format.PageEncodingStats{PageType: format.DataPage, Encoding: format.Plain, Count: l.plains})
	}
	m.Encoding = append(m.Encoding, format.Plain, format.RLE)
	m.DataPageOffset = w.off
	for _, b := range l.blocks {
		if err := w.write(b); err != nil {
			return format.ColumnChunk{}, err
		}
	}
	m.TotalUncompressedSize, m.TotalCompressedSize = l.rawBytes, l.storedBytes
	m.Statistics.NullCount = l.chunkSlots - l.chunkVals
	m.Statistics.MinValue, m.Statistics.MaxValue = cloneBounds(l.bounds.encode(l))
	return format.ColumnChunk{FileOffset: start, MetaData: m}, nil
}

func cloneBounds(lo, hi []byte) ([]byte, []byte) {
	// An empty bound cannot be told from an absent one in the footer.
	if len(lo) == 0 || len(hi) == 0 {
		return nil, nil
	}
	return slices.Clone(lo), slices.Clone(hi)
}

func (w *Writer) footer() error {
	if err := w.start(); err != nil {
		return err
	}
	m := format.FileMetaData{
		Version: 1, Schema: w.schema, NumRows: w.rows, RowGroups: w.groups, CreatedBy: w.opts.CreatedBy,
	}
	for _, k := range slices.Sorted(maps.Keys(w.meta)) {
		m.KeyValueMetadata = append(m.KeyValueMetadata, format.KeyValue{Key: k, Value: w.meta[k]})
	}
	for range w.leaves {
		m.ColumnOrders = append(m.ColumnOrders, format.ColumnOrder{Value: new(format.TypeDefinedOrder)})
	}
	b, err := thrift.Marshal(new(thrift.CompactProtocol), &m)
	if err != nil {
		return fmt.Errorf("encoding footer: %w", err)
	}
	if len(b) > maxFooterBytes {
		return fmt.Errorf("a footer of %d bytes is too large", len(b))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(b)))
	return w.write(append(b, magic...))
}

func (w *Writer) stats() Stats {
	s := Stats{Rows: w.rows, Bytes: w.off, RowGroups: len(w.groups)}
	for _, l := range w.leaves {
		c := ColumnStats{Path: joinPath(l.path), Values: l.totalSlots, Nulls: l.totalSlots - l.totalVals,
			RawBytes: l.totalRaw, StoredBytes: l.totalStored}
		c.Min, c.Max = cloneBounds(l.fileBounds.encode(l))
		s.Columns = append(s.Columns, c)
	}
	return s
}
