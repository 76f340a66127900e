package clickhouse

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/millrace/millrace/connectors/sealdir"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// defaultMemoryBytes is a writer's budget when the attempt names none.
const defaultMemoryBytes = 64 << 20

// writer is one attempt of one lane. It belongs to one goroutine at a time.
type writer struct {
	sink    *sink
	bound   *binding
	attempt connector.Attempt
	dir     string
	budget  int64
	err     error // sticky after a failed Seal
	closed  bool

	ids   map[string]connector.BucketID
	names []string
	open  map[connector.BucketID]*openBlock
	free  []*openBlock

	s     scratch
	rows  []int32
	key   []byte
	vecs  []*batch.Vec
	ints  [][]int64
	texts [][]int32
	name  []byte
}

// openBlock is a bucket's rows, a buffer a column.
type openBlock struct {
	cols []buffer
	rows int64
}

var (
	_ connector.Writer     = (*writer)(nil)
	_ connector.RowChecker = (*writer)(nil)
)

// Check implements connector.RowChecker: every value must be one that the table
// can hold exactly. Invariant 6.
func (w *writer) Check(b *batch.Batch, sel batch.Sel, bad []batch.ValueError) []batch.ValueError {
	var found map[int32]bool
	from := len(bad)
	for i, c := range w.bound.columns {
		if c == w.bound.artifact || !c.checks() {
			continue
		}
		v := &b.Cols[w.bound.source[i]]
		if c.check == nil && !v.HasNulls() {
			continue
		}
		w.rows = all(w.rows, sel, b.Len)
		rows := w.rows
		c.refuse(v, rows, &w.s, func(k int, message string) {
			row := rows[k]
			if found[row] {
				return
			}
			if found == nil {
				found = map[int32]bool{}
			}
			found[row] = true
			bad = append(bad, batch.ValueError{Row: row, Code: batch.CodeSinkRefused, Where: w.bound.names[i], Message: message})
		})
	}
	if w.err == nil && w.sink.suspect(int64(b.Len)) {
		w.err = w.try(context.Background(), b, w.untouched(b, sel, found), func(row int32, why string) {
			bad = append(bad, batch.ValueError{Row: row, Code: batch.CodeSinkRefused, Message: why})
		})
	}
	slices.SortFunc(bad[from:], func(a, b batch.ValueError) int { return int(a.Row - b.Row) })
	return bad
}

// untouched is the rows among sel that are not in found.
func (w *writer) untouched(b *batch.Batch, sel batch.Sel, found map[int32]bool) []int32 {
	rows := all(nil, sel, b.Len)
	return slices.DeleteFunc(rows, func(r int32) bool { return found[r] })
}

// Buckets implements connector.Writer: one bucket a partition of the table.
func (w *writer) Buckets(b *batch.Batch, sel batch.Sel, out []connector.BucketID) ([]connector.BucketID, error) {
	if err := w.usable(); err != nil {
		return out, err
	}
	w.rows = all(w.rows, sel, b.Len)
	if len(w.bound.keys) == 0 {
		id := w.bucket(nil, nil)
		for range w.rows {
			out = append(out, id)
		}
		return out, nil
	}
	w.gatherKeys(b)
	last := connector.BucketID(-1)
	for k := range w.rows {
		if last < 0 || !w.sameKey(k-1, k) {
			last = w.bucketOf(k)
		}
		out = append(out, last)
	}
	return out, nil
}

// gatherKeys evaluates the parts of the partition key over w.rows.
func (w *writer) gatherKeys(b *batch.Batch) {
	w.vecs = w.vecs[:0]
	for len(w.ints) < len(w.bound.keys) {
		w.ints, w.texts = append(w.ints, nil), append(w.texts, nil)
	}
	for i := range w.bound.keys {
		k := &w.bound.keys[i]
		rows := append(w.texts[i][:0], w.rows...)
		v := flatten(&b.Cols[k.source], rows)
		w.texts[i] = rows
		w.vecs = append(w.vecs, v)
		if v.Type.Physical() == types.PhysBytes {
			continue
		}
		w.ints[i] = append(w.ints[i][:0], k.values(v, rows, &w.s)...)
	}
}

// keyText is part i of the key of row k, nil for a number.
func (w *writer) keyText(i, k int) []byte {
	v, r := w.vecs[i], w.texts[i][k]
	if v.Type.Physical() != types.PhysBytes {
		return nil
	}
	if r < 0 {
		return []byte{}
	}
	return v.Data[v.Offsets[r]:v.Offsets[r+1]:v.Offsets[r+1]]
}

// sameKey reports that two rows lie in one partition: rows of an hour come
// together, so this spares most of them their key.
func (w *writer) sameKey(a, b int) bool {
	for i, v := range w.vecs {
		if (w.texts[i][a] < 0) != (w.texts[i][b] < 0) {
			return false
		}
		if v.Type.Physical() == types.PhysBytes {
			if !bytes.Equal(w.keyText(i, a), w.keyText(i, b)) {
				return false
			}
		} else if w.ints[i][a] != w.ints[i][b] {
			return false
		}
	}
	return true
}

func (w *writer) bucketOf(k int) connector.BucketID {
	w.key, w.name = w.key[:0], w.name[:0]
	for i := range w.bound.keys {
		text, x := w.keyText(i, k), int64(0)
		if i > 0 {
			w.name = append(w.name, '/')
		}
		null := w.texts[i][k] < 0
		if null {
			w.key = append(w.key, 1)
			w.name = append(append(w.name, w.bound.keys[i].text...), "=NULL"...)
			continue
		}
		w.key = append(w.key, 0)
		if text != nil {
			w.key = appendText(w.key, text)
		} else {
			x = w.ints[i][k]
			w.key = binary.LittleEndian.AppendUint64(w.key, uint64(x))
		}
		w.name = w.bound.keys[i].appendName(w.name, text, x)
	}
	return w.bucket(w.key, w.name)
}

func (w *writer) bucket(key, name []byte) connector.BucketID {
	id, ok := w.ids[string(key)]
	if !ok {
		id = connector.BucketID(len(w.names))
		w.names = append(w.names, string(name))
		w.ids[string(key)] = id
	}
	return id
}

// Write implements connector.Writer.
func (w *writer) Write(b *batch.Batch, sel batch.Sel, bucket connector.BucketID) error {
	if err := w.usable(); err != nil {
		return err
	}
	if int(bucket) < 0 || int(bucket) >= len(w.names) {
		return fmt.Errorf("bucket %d is not of this writer", bucket)
	}
	if b.Kinds != nil {
		return errors.New("a clickhouse table takes inserts only")
	}
	if w.HeldBytes() >= w.budget && len(w.open) > 0 {
		return connector.ErrFull
	}
	w.rows = all(w.rows, sel, b.Len)
	if len(w.rows) == 0 {
		return nil
	}
	o := w.open[bucket]
	if o == nil {
		o = w.newBlock()
		w.open[bucket] = o
	}
	for i, c := range w.bound.columns {
		if c != w.bound.artifact {
			c.append(&o.cols[i], &b.Cols[w.bound.source[i]], w.rows, &w.s)
		}
	}
	o.rows += int64(len(w.rows))
	return nil
}

func (w *writer) newBlock() *openBlock {
	if n := len(w.free); n > 0 {
		o := w.free[n-1]
		w.free = w.free[:n-1]
		return o
	}
	return &openBlock{cols: make([]buffer, len(w.bound.columns))}
}

// maxFreeBlocks bounds the emptied blocks whose memory is kept for the next ones.
const maxFreeBlocks = 2

func (w *writer) release(o *openBlock) {
	if len(w.free) >= maxFreeBlocks || o.bytes() > w.budget {
		return
	}
	o.rows = 0
	for i := range o.cols {
		o.cols[i].reset()
	}
	w.free = append(w.free, o)
}

func (b *buffer) reset() {
	b.rows, b.nulls, b.data, b.ends, b.codes = 0, b.nulls[:0], b.data[:0], b.ends[:0], b.codes[:0]
	clear(b.keys)
	for i := range b.kids {
		b.kids[i].reset()
	}
}

func (o *openBlock) bytes() int64 {
	n := int64(0)
	for i := range o.cols {
		n += o.cols[i].bytes()
	}
	return n
}

func (o *openBlock) size() int64 {
	n := int64(0)
	for i := range o.cols {
		n += o.cols[i].size()
	}
	return n
}

// Open implements connector.Writer.
func (w *writer) Open() []connector.Bucket {
	out := make([]connector.Bucket, 0, len(w.open))
	for id, o := range w.open {
		out = append(out, connector.Bucket{ID: id, TablePartition: w.names[id], Rows: o.rows, Bytes: o.size()})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// HeldBytes implements connector.Writer. What is kept for later blocks is not
// held: it is there in either case.
func (w *writer) HeldBytes() int64 {
	n := int64(0)
	for _, o := range w.open {
		n += o.size()
	}
	return n
}

// Seal implements connector.Writer.
func (w *writer) Seal(ctx context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	if err := w.usable(); err != nil {
		return nil, err
	}
	out := make([]connector.Artifact, 0, len(req))
	for _, r := range req {
		a, err := w.seal(ctx, r)
		if err != nil {
			w.err = fmt.Errorf("sealing %s: %w", r.Header.ID, err)
			return nil, w.err
		}
		out = append(out, a)
	}
	// The names of sealed blocks must survive before an intent names them.
	if err := w.sink.fs.SyncDir(w.dir); err != nil {
		w.err = fmt.Errorf("syncing staging directory: %w", w.gone(err))
		return nil, w.err
	}
	return out, nil
}

func (w *writer) seal(ctx context.Context, r connector.SealRequest) (connector.Artifact, error) {
	var none connector.Artifact
	if err := ctx.Err(); err != nil {
		return none, err
	}
	o := w.open[r.Bucket]
	if o == nil {
		return none, fmt.Errorf("bucket %d holds no rows", r.Bucket)
	}
	if part := w.names[r.Bucket]; r.Header.TablePartition != part {
		return none, fmt.Errorf("the header says table partition %q, the bucket is %q", r.Header.TablePartition, part)
	}
	if r.Header.Rows != o.rows {
		// Invariant 6: a count that does not add up is found here, not later.
		return none, fmt.Errorf("the header says %d rows, the block has %d", r.Header.Rows, o.rows)
	}
	id := r.Header.ID.String()
	if w.bound.artifact != nil {
		w.stamp(&o.cols[len(o.cols)-1], id, int(o.rows))
	}
	h := sealedHead{id: id, rows: o.rows, shape: w.bound.def.shape()}
	h.partsBefore, h.sealedAt, h.identity = w.sink.mark()
	for i := range w.bound.columns {
		h.columns = append(h.columns, sealedColumn{name: w.bound.names[i], typ: w.bound.def.column(w.bound.names[i]).typ})
		if o.cols[i].rows != int(o.rows) {
			return none, fmt.Errorf("BUG: column %s has %d rows of %d", w.bound.names[i], o.cols[i].rows, o.rows)
		}
	}
	delete(w.open, r.Bucket)
	n, err := writeSealed(w.sink.fs, w.sink.fs.Join(w.dir, id+sealdir.Sealed), &h, w.bound.columns, o.cols)
	if err != nil {
		return none, w.gone(err)
	}
	w.release(o)
	p := payload{rows: r.Header.Rows, bytes: n, shard: w.sink.shard, replace: w.attempt.Replace}
	location := w.sink.location()
	if r.Header.TablePartition != "" {
		location += " " + r.Header.TablePartition
	}
	return connector.Artifact{Header: r.Header, Bytes: n, Location: location + " block " + id, Payload: p.encode()}, nil
}

// stamp fills the artefact's own column.
func (w *writer) stamp(b *buffer, id string, n int) {
	var v batch.Vec
	v.Reset(types.NewString().NotNull(), 1)
	v.PutString(0, id)
	v.Enc, v.Len = batch.Const, n
	w.rows = all(w.rows, nil, n)
	w.bound.artifact.append(b, &v, w.rows, &w.s)
}

// gone turns "no such file" in the attempt's directory into ErrFenced.
func (w *writer) gone(err error) error {
	if errors.Is(err, vfs.ErrNotExist) {
		return fmt.Errorf("%w: %s: %w", connector.ErrFenced, w.dir, err)
	}
	return err
}

// Close implements connector.Writer.
func (w *writer) Close() error {
	clear(w.open)
	w.free, w.closed = nil, true
	return nil
}

var errClosed = errors.New("writer is closed")

func (w *writer) usable() error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return errClosed
	}
	return nil
}
