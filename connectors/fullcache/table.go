package fullcache

import (
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// TooBigError says that a table does not fit into its limit.
type TooBigError struct {
	Table string
	// Rows were read when the Bytes in memory passed Max.
	Rows       int
	Bytes, Max int64
}

func (e *TooBigError) Error() string {
	return fmt.Sprintf("table %s has more than %d rows and needs %d bytes in memory, 'lookup.full-cache.max-bytes' allows %d",
		e.Table, e.Rows, e.Bytes, e.Max)
}

// Table is rows by key. It may be read by many goroutines.
type Table struct {
	rows batch.Batch
	keys *state.Keys
	// first and rowsOf are, by key slot, its rows in the order in which they were
	// added: rowsOf[first[slot]:first[slot+1]].
	first  []int32
	rowsOf batch.Sel
	bytes  int64
}

// Len is the number of rows; those without a key are not there.
func (t *Table) Len() int { return t.rows.Len }

// Bytes is the memory held.
func (t *Table) Bytes() int64 { return t.bytes }

// Find is connector.Lookup.Find.
func (t *Table) Find(keys *connector.LookupKeys, out *connector.Found) {
	out.Reset()
	out.Rows = &t.rows
	cols := make([]*batch.Vec, len(keys.Cols))
	for i := range cols {
		cols[i] = &keys.Cols[i]
	}
	for k, hash := range keys.Hashes {
		if s := t.keys.Slot(cols, hash, k); s >= 0 {
			out.Sel = append(out.Sel, t.rowsOf[t.first[s]:t.first[s+1]]...)
		}
		out.EndKey()
	}
}

// Builder builds a Table.
type Builder struct {
	name string
	max  int64
	keys []int // columns of the rows that come
	cols []int
	t    *Table
	slot []int32 // by row of the table

	// Memory for one call.
	vecs   []*batch.Vec
	hashes []uint64
	slots  []int32
	buf    []byte
	sel    batch.Sel
}

// NewBuilder returns a builder of a table of rows of the given schema, by its columns
// keys; the table gives its columns cols, and may hold maxBytes.
func NewBuilder(table string, schema *batch.Schema, keys, cols []int, maxBytes int64) *Builder {
	b := &Builder{name: table, max: maxBytes, keys: keys, cols: cols, t: &Table{}}
	var keyTypes []types.Type
	for _, k := range keys {
		keyTypes = append(keyTypes, schema.Fields[k].Type)
	}
	b.t.keys = state.NewKeys(keyTypes)
	out := &batch.Schema{}
	for _, c := range cols {
		out.Fields = append(out.Fields, schema.Fields[c])
	}
	b.t.rows.Reset(out)
	for i := range b.t.rows.Cols {
		b.t.rows.Cols[i].Reset(out.Fields[i].Type, 0)
	}
	return b
}

// Add takes rows, which have no errors; sel nil: all. Those with NULL in a key are
// left out, for nobody can find them.
func (b *Builder) Add(rows *batch.Batch, sel batch.Sel) error {
	b.vecs = b.vecs[:0]
	for _, k := range b.keys {
		b.vecs = append(b.vecs, &rows.Cols[k])
	}
	if len(b.hashes) < rows.Len {
		b.hashes, b.slots = make([]uint64, rows.Len), make([]int32, rows.Len)
	}
	b.sel = b.sel[:0]
	add := func(row int32) {
		for _, v := range b.vecs {
			if v.IsNull(int(row)) {
				return
			}
		}
		b.hashes[row], b.buf = batch.HashKey(b.buf, b.vecs, int(row))
		b.sel = append(b.sel, row)
	}
	if sel == nil {
		for row := range rows.Len {
			add(int32(row))
		}
	} else {
		for _, row := range sel {
			add(row)
		}
	}
	if len(b.sel) == 0 {
		return nil // a nil Sel would be all rows
	}
	b.t.keys.Find(b.vecs, b.hashes, b.sel, b.slots)
	for _, row := range b.sel {
		b.slot = append(b.slot, b.slots[row])
	}
	for i, c := range b.cols {
		b.t.rows.Cols[i].AppendRows(&rows.Cols[c], b.sel)
		b.t.rows.Cols[i].PadOffsets()
	}
	b.t.rows.Len += len(b.sel)
	if n := b.bytes(); b.max > 0 && n > b.max {
		return &TooBigError{Table: b.name, Rows: b.t.rows.Len, Bytes: n, Max: b.max}
	}
	return nil
}

func (b *Builder) bytes() int64 {
	return state.BatchBytes(&b.t.rows) + b.t.keys.Bytes() + 8*int64(len(b.slot)) + 4*int64(b.t.keys.Len())
}

// Table is the table of all rows added. The builder is of no use afterwards.
func (b *Builder) Table() *Table {
	t := b.t
	t.first = make([]int32, t.keys.Len()+1)
	for _, s := range b.slot {
		t.first[s+1]++
	}
	for s := range t.keys.Len() {
		t.first[s+1] += t.first[s]
	}
	next := make([]int32, t.keys.Len())
	copy(next, t.first)
	t.rowsOf = make(batch.Sel, len(b.slot))
	for row, s := range b.slot {
		t.rowsOf[next[s]] = int32(row)
		next[s]++
	}
	t.bytes = b.bytes()
	return t
}
