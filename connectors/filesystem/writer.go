package filesystem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

const (
	// defaultMemoryBytes is a writer's budget when the attempt names none.
	defaultMemoryBytes = 64 << 20
	// maxOpenFiles bounds a writer's open files: a bad partition key must not
	// eat the process's descriptors.
	maxOpenFiles = 256
	// maxNameBytes is what a name may have, on local filesystems and on HDFS.
	maxNameBytes = 255
)

// Writer is one attempt of one lane. It belongs to one goroutine at a time.
type Writer struct {
	sink    *Sink
	attempt connector.Attempt
	dir     string // staging directory
	budget  int64
	err     error // sticky after a failed Seal
	closed  bool

	// Table partitions get ids in the order of their first row; an id stays
	// while files of it come and go.
	ids   map[string]connector.BucketID
	names []string
	open  map[connector.BucketID]*openFile
	files uint64 // names of open files

	key  []byte
	keys []*batch.Vec
	cols []batch.Vec
}

var (
	_ connector.Writer     = (*Writer)(nil)
	_ connector.RowChecker = (*Writer)(nil)
)

func newWriter(s *Sink, a connector.Attempt) *Writer {
	w := &Writer{
		sink: s, attempt: a, dir: s.fs.Join(s.laneDir(a.ID), epochName(a.ID.Epoch)), budget: a.MemoryBytes,
		ids: map[string]connector.BucketID{}, open: map[connector.BucketID]*openFile{},
	}
	if w.budget <= 0 {
		w.budget = defaultMemoryBytes
	}
	return w
}

// Check implements connector.RowChecker: a partition's directory must have a name
// that filesystems take. Its files could never be published, and all that comes
// after them would wait.
func (w *Writer) Check(b *batch.Batch, sel batch.Sel, bad []batch.ValueError) []batch.ValueError {
	from, keys := len(bad), 0
	for i, c := range w.sink.partCols {
		v := &b.Cols[c]
		if !v.Type.IsString() {
			continue
		}
		keys++
		room := maxNameBytes - len(w.sink.partNames[i]) - len("=")
		n := b.Len
		if sel != nil {
			n = len(sel)
		}
		for k := range n {
			row := k
			if sel != nil {
				row = int(sel[k])
			}
			if v.IsNull(row) {
				continue
			}
			// Escaping makes three bytes of one.
			text := v.Bytes(row)
			if 3*len(text) <= room {
				continue
			}
			w.key = escapeBytes(w.key[:0], text)
			if len(w.key) > room {
				bad = append(bad, batch.ValueError{Row: int32(row), Code: batch.CodeSinkRefused, Where: w.sink.table.Columns[w.sink.table.PartitionKeys[i]].Name,
					Message: fmt.Sprintf("%d bytes are too many for the name of a directory, which has %d at most, with the column's name: %q...", len(w.key), maxNameBytes, text[:min(32, len(text))])})
			}
		}
	}
	if keys < 2 {
		return bad
	}
	slices.SortFunc(bad[from:], func(a, b batch.ValueError) int { return int(a.Row - b.Row) })
	// A row is refused once.
	kept := slices.CompactFunc(bad[from:], func(a, b batch.ValueError) bool { return a.Row == b.Row })
	return bad[:from+len(kept)]
}

// Buckets implements connector.Writer: one bucket a table partition.
func (w *Writer) Buckets(b *batch.Batch, sel batch.Sel, out []connector.BucketID) ([]connector.BucketID, error) {
	if err := w.usable(); err != nil {
		return out, err
	}
	n := b.Len
	if sel != nil {
		n = len(sel)
	}
	w.keys = w.keys[:0]
	constant := true
	for _, c := range w.sink.partCols {
		v := &b.Cols[c]
		constant = constant && v.Enc == batch.Const
		w.keys = append(w.keys, v)
	}
	last, prev := connector.BucketID(-1), 0
	for k := range n {
		row := k
		if sel != nil {
			row = int(sel[k])
		}
		if last >= 0 && (constant || sameKey(w.keys, prev, row)) {
			prev = row
			out = append(out, last)
			continue
		}
		prev = row
		start := len(w.key)
		w.key = appendPartition(w.key, w.sink.partNames, w.keys, row, w.sink.opts.defaultName)
		if key := w.key[start:]; last < 0 || string(key) != w.names[last] {
			last = w.bucket(key)
		}
		w.key = w.key[:start]
		out = append(out, last)
	}
	return out, nil
}

// sameKey reports for certain that two rows lie in one table partition: rows of
// an hour come together, so this spares most of them their path.
func sameKey(keys []*batch.Vec, a, b int) bool {
	for _, v := range keys {
		switch {
		case v.Enc == batch.Const:
		case v.Enc != batch.Flat || v.Valid != nil && (!v.Valid.Get(a) || !v.Valid.Get(b)):
			return false
		case v.Offsets != nil && v.Type.IsString():
			if string(v.Data[v.Offsets[a]:v.Offsets[a+1]]) != string(v.Data[v.Offsets[b]:v.Offsets[b+1]]) {
				return false
			}
		case v.Type.Kind == types.Int || v.Type.Kind == types.Date:
			if v.I32[a] != v.I32[b] {
				return false
			}
		case v.Type.Kind == types.BigInt:
			if v.I64[a] != v.I64[b] {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func (w *Writer) bucket(key []byte) connector.BucketID {
	id, ok := w.ids[string(key)]
	if !ok {
		id = connector.BucketID(len(w.names))
		w.names = append(w.names, string(key))
		w.ids[w.names[id]] = id
	}
	return id
}

// Write implements connector.Writer.
func (w *Writer) Write(b *batch.Batch, sel batch.Sel, bucket connector.BucketID) error {
	if err := w.usable(); err != nil {
		return err
	}
	if int(bucket) < 0 || int(bucket) >= len(w.names) {
		return fmt.Errorf("bucket %d is not of this writer", bucket)
	}
	if b.Kinds != nil {
		return errors.New("a filesystem table takes inserts only")
	}
	f := w.open[bucket]
	if err := w.makeRoom(f == nil); err != nil {
		return err
	}
	if f == nil {
		var err error
		if f, err = w.create(); err != nil {
			return err
		}
	}
	n := b.Len
	if sel != nil {
		n = len(sel)
	}
	var err error
	if f.parquet != nil {
		w.cols = w.cols[:0]
		for _, c := range w.sink.columns {
			w.cols = append(w.cols, b.Cols[c])
		}
		err = f.parquet.Write(w.cols, sel)
	} else {
		err = w.writeText(f, b, sel, n)
	}
	if err != nil {
		// Part of the batch may be in the file; it must never be sealed.
		w.err = err
		f.abort()
		return err
	}
	f.rows += int64(n)
	if w.open[bucket] == nil && n > 0 {
		w.open[bucket] = f
	}
	return nil
}

// Open implements connector.Writer.
func (w *Writer) Open() []connector.Bucket {
	out := make([]connector.Bucket, 0, len(w.open))
	for id, f := range w.open {
		out = append(out, connector.Bucket{ID: id, TablePartition: w.names[id], Rows: f.rows, Bytes: f.bytes()})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// HeldBytes implements connector.Writer.
func (w *Writer) HeldBytes() int64 {
	n := int64(0)
	for _, f := range w.open {
		n += f.held()
	}
	return n
}

// Seal implements connector.Writer.
func (w *Writer) Seal(ctx context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
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
	// The names of sealed files must survive before an intent names them.
	if err := w.sink.fs.SyncDir(w.dir); err != nil {
		w.err = fmt.Errorf("syncing staging directory: %w", w.gone(err))
		return nil, w.err
	}
	return out, nil
}

func (w *Writer) seal(ctx context.Context, r connector.SealRequest) (connector.Artifact, error) {
	var none connector.Artifact
	if err := ctx.Err(); err != nil {
		return none, err
	}
	f := w.open[r.Bucket]
	if f == nil {
		return none, fmt.Errorf("bucket %d holds no rows", r.Bucket)
	}
	part := w.names[r.Bucket]
	if r.Header.TablePartition != part {
		return none, fmt.Errorf("the header says table partition %q, the bucket is %q", r.Header.TablePartition, part)
	}
	if r.Header.Rows != f.rows {
		// Invariant 6: a count that does not add up is found here, not later.
		return none, fmt.Errorf("the header says %d rows, the file has %d", r.Header.Rows, f.rows)
	}
	delete(w.open, r.Bucket)
	if f.parquet != nil {
		setFooter(f.parquet, r.Header)
		if _, err := f.parquet.Close(); err != nil {
			f.abort()
			return none, err
		}
	}
	if f.compressed != nil {
		if err := f.compressed.flush(); err != nil {
			f.abort()
			return none, err
		}
	}
	if err := f.spool.finish(ctx); err != nil {
		f.abort()
		return none, err
	}
	base := partPrefix + r.Header.ID.String() + "." + w.sink.ext
	if err := w.sink.fs.RenameNoReplace(f.spool.name, w.sink.fs.Join(w.dir, base)); err != nil {
		return none, w.gone(err)
	}
	p := payload{bytes: f.spool.total}
	p.staged = strings.Join([]string{stagingDir, r.Header.ID.Job.String(), laneName(r.Header.ID), epochName(r.Header.ID.Epoch), base}, "/")
	p.final = base
	if part != "" {
		p.final = part + "/" + base
	}
	return connector.Artifact{Header: r.Header, Bytes: p.bytes, Location: w.sink.prefix + w.sink.path(p.final), Payload: p.encode()}, nil
}

// gone turns "no such file" in the attempt's directory into ErrFenced.
func (w *Writer) gone(err error) error {
	if errors.Is(err, vfs.ErrNotExist) {
		return fmt.Errorf("%w: %s: %w", connector.ErrFenced, w.dir, err)
	}
	return err
}

// Close implements connector.Writer.
func (w *Writer) Close() error {
	for _, f := range w.open {
		f.abort()
	}
	clear(w.open)
	w.closed = true
	return nil
}

var errClosed = errors.New("writer is closed")

func (w *Writer) usable() error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return errClosed
	}
	return nil
}
