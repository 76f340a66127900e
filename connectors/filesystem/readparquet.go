package filesystem

import (
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/connectors/format/parquetfmt"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/storage/vfs"
)

// parquetSplit reads one row group.
type parquetSplit struct {
	r     *reader
	w     *splitWork
	file  vfs.File
	group *parquetfmt.RowGroupReader
	cols  []batch.Vec
	// perRow is the stored bytes of a row, for the batch size and the count.
	perRow float64
}

func (r *reader) openParquet(w *splitWork) (splitReader, error) {
	h, err := w.file.open()
	if err != nil {
		return nil, err
	}
	p := &parquetSplit{r: r, w: w, file: h, cols: make([]batch.Vec, len(r.fields))}
	f, err := parquetfmt.OpenFile(h, w.file.size)
	if err == nil {
		g := int(w.split.From.Partition.ID)
		if groups := f.RowGroups(); groups[g].Rows > 0 {
			p.perRow = float64(groups[g].Bytes) / float64(groups[g].Rows)
		}
		if p.group, err = f.ReadRowGroup(g, r.fields); err == nil {
			err = p.group.Skip(w.from - w.first)
		}
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("reading %s: %w", w.file.shown(), err)
	}
	return p, nil
}

func (p *parquetSplit) next(b *batch.Batch, maxRows, maxBytes int) error {
	at := p.w.first + p.group.Position()
	if at >= p.w.end {
		return io.EOF
	}
	rows := min(int64(max(maxRows, 1)), p.w.end-at)
	if p.perRow > 0 {
		rows = min(rows, max(1, int64(float64(maxBytes)/p.perRow)))
	}
	b.Reset(p.r.schema)
	// The columns are swapped into the batch and back, so that their memory
	// is re-used.
	for i, out := range p.r.physical {
		p.cols[i] = b.Cols[out]
	}
	n, err := p.group.Read(p.cols, int(rows))
	for i, out := range p.r.physical {
		b.Cols[out] = p.cols[i]
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		return fmt.Errorf("reading %s: %w", p.w.file.shown(), err)
	}
	if err := p.r.constants(b, p.w.file, n); err != nil {
		return err
	}
	b.Len = n
	b.Runs = append(b.Runs[:0], batch.Run{Partition: p.w.split.Number, Rows: int32(n), BaseOffset: at, EndOffset: at + int64(n), LogTime: p.w.file.modMillis})
	p.r.bytes += int64(float64(n) * p.perRow)
	return nil
}

func (p *parquetSplit) close() {
	if p.group != nil {
		p.group.Close()
	}
	p.file.Close()
}
