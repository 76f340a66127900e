package filesystem

import (
	"fmt"
	"sort"
	"strconv"

	"github.com/millrace/millrace/connectors/format/parquetfmt"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// openFile is a bucket's file.
type openFile struct {
	spool      *spool
	parquet    *parquetfmt.Writer // nil: text
	compressed *compressedFile    // nil: it is not compressed
	rows       int64
}

// create starts a file; nothing touches the disk before there is something to
// write.
func (w *Writer) create() (*openFile, error) {
	f := &openFile{spool: newSpool(w.sink, w.sink.fs.Join(w.dir, openPrefix+strconv.FormatUint(w.files, 10)))}
	w.files++
	if w.sink.encode != nil {
		if w.sink.opts.compressedEnding() != "" {
			f.compressed = newCompressedFile(w.sink, f.spool, w.budget)
		}
		return f, nil
	}
	o := w.sink.parquet
	o.RowGroupBytes = min(o.RowGroupBytes, int(max(w.budget/4, 64<<10)))
	p, err := parquetfmt.NewWriter(f.spool, w.sink.fields, o)
	f.parquet = p
	return f, err
}

// makeRoom keeps the writer within its budget before more is taken: row groups
// of the files that hold most are ended, which hands their memory to the disk.
// If that is not enough now, the caller has to seal or wait.
func (w *Writer) makeRoom(another bool) error {
	if another && len(w.open) >= maxOpenFiles {
		return connector.ErrFull
	}
	held := w.HeldBytes()
	if held < w.budget/2 {
		return nil
	}
	files := make([]*openFile, 0, len(w.open))
	for _, f := range w.open {
		if f.parquet != nil {
			files = append(files, f)
		}
	}
	sort.Slice(files, func(i, j int) bool { return files[i].parquet.BufferedBytes() > files[j].parquet.BufferedBytes() })
	for _, f := range files {
		if held < w.budget/4 || int64(f.parquet.BufferedBytes()) < w.budget/64 {
			break
		}
		before := f.held()
		if err := f.parquet.Flush(); err != nil {
			w.err = err
			return err
		}
		held -= before - f.held()
	}
	if w.HeldBytes() >= w.budget && len(w.open) > 0 {
		return connector.ErrFull
	}
	return nil
}

// held is the memory of one file.
func (f *openFile) held() int64 {
	n := f.spool.held()
	if f.parquet != nil {
		n += int64(f.parquet.BufferedBytes())
	}
	if f.compressed != nil {
		n += f.compressed.held()
	}
	return n
}

func (f *openFile) bytes() int64 {
	if f.parquet != nil {
		return f.parquet.EstimatedBytes()
	}
	if f.compressed != nil {
		return f.compressed.bytes()
	}
	return f.spool.total
}

func (f *openFile) abort() {
	if f.parquet != nil {
		f.parquet.Abort()
	}
	f.spool.abort()
}

// writeText writes rows as lines, compressed or not.
func (w *Writer) writeText(f *openFile, b *batch.Batch, sel batch.Sel, n int) error {
	for k := range n {
		row := k
		if sel != nil {
			row = int(sel[k])
		}
		start := len(w.key)
		line, err := w.sink.encode.AppendRow(w.key, b, row)
		if err != nil {
			return fmt.Errorf("encoding row: %w", err)
		}
		line = append(line, '\n')
		if f.compressed != nil {
			_, err = f.compressed.Write(line[start:])
		} else {
			_, err = f.spool.Write(line[start:])
		}
		w.key = line[:start]
		if err != nil {
			return err
		}
	}
	return nil
}
