package filesystem

import (
	"context"
	"fmt"
	"io"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// columnAt is a partition column of the batch: its place and its key number.
type columnAt struct{ out, index int }

type metaAt struct {
	out int
	key string
}

// splitWork is a split still to be read.
type splitWork struct {
	split     connector.Split
	file      *dataFile
	first     int64 // first offset of the split in its file
	from, end int64
}

// reader reads splits one after the other.
type reader struct {
	source   *Source
	schema   *batch.Schema
	fields   []types.Field // physical columns that are wanted
	physical []int         // their places in the batch
	keys     []columnAt
	meta     []metaAt
	decoder  format.Decoder
	cut      format.SplitFunc
	appender format.Appender

	todo   []splitWork
	bounds map[int32]int64
	bytes  int64

	cur     splitReader
	raw     int32 // split of the last batch, -1: none
	lastRaw rawRecords
}

// splitReader reads one split.
type splitReader interface {
	// next fills the batch's physical columns and its one run; io.EOF after
	// the last row.
	next(b *batch.Batch, maxRows, maxBytes int) error
	close()
}

var (
	_ connector.Reader      = (*reader)(nil)
	_ connector.ByteCounter = (*reader)(nil)
)

// Next implements connector.Reader.
func (r *reader) Next(ctx context.Context, b *batch.Batch, maxRows, maxBytes int) error {
	r.Release()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(r.todo) == 0 {
			return io.EOF
		}
		w := &r.todo[0]
		if r.cur == nil {
			var err error
			if r.decoder == nil {
				r.cur, err = r.openParquet(w)
			} else {
				r.cur, err = r.openText(ctx, w)
			}
			if err != nil {
				return err
			}
		}
		err := r.cur.next(b, maxRows, maxBytes)
		if err == io.EOF {
			r.cur.close()
			r.cur = nil
			r.todo = r.todo[1:]
			continue
		}
		return err
	}
}

// constants fills partition and metadata columns of n rows.
func (r *reader) constants(b *batch.Batch, f *dataFile, n int) error {
	if len(r.keys) > 0 {
		for _, k := range r.keys {
			if err := constant(&b.Cols[k.out], r.schema.Fields[k.out].Type, n, f.values[k.index]); err != nil {
				return fmt.Errorf("%s: %w", f.shown(), err)
			}
		}
	}
	for _, m := range r.meta {
		v := &b.Cols[m.out]
		v.Reset(r.schema.Fields[m.out].Type, 0)
		full := f.shown()
		switch {
		case m.key == "file.path" && v.Type.IsString():
			format.AppendString(v, full)
		case m.key == "file.name" && v.Type.IsString():
			format.AppendString(v, f.at.fs.Base(full))
		case m.key == "file.size" && v.Type.Kind == types.BigInt:
			format.AppendInt64(v, f.size)
		case m.key == "file.modification-time" && v.Type.IsTimestamp():
			format.AppendInt64(v, f.modMillis*(v.Type.UnitsPerSecond()/1000))
		default:
			return fmt.Errorf("metadata %s cannot be read as %s", m.key, v.Type)
		}
		v.Enc, v.Len = batch.Const, n
	}
	return nil
}

// Raw implements connector.Reader: lines of text files; rows of Parquet files
// have no text.
func (r *reader) Raw(split int32, offset int64) (connector.RawRecord, bool) {
	if r.raw != split {
		return connector.RawRecord{}, false
	}
	line, ok := r.lastRaw.at(offset)
	return connector.RawRecord{Value: line}, ok
}

// LogEnd implements connector.Reader.
func (r *reader) LogEnd(split int32) int64 { return r.bounds[split] }

// InputBytes implements connector.ByteCounter.
func (r *reader) InputBytes() int64 { return r.bytes }

// Release implements connector.Reader.
func (r *reader) Release() { r.raw, r.lastRaw = -1, rawRecords{} }

// Close implements connector.Reader.
func (r *reader) Close() error {
	if r.cur != nil {
		r.cur.close()
		r.cur = nil
	}
	r.todo = nil
	return nil
}
