package filesystem

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"

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

const (
	// readBytes is the first size of a text file's buffer.
	readBytes = 256 << 10
	// maxRecordBytes bounds one record of a text file.
	maxRecordBytes = 64 << 20
)

// textSplit reads a file of lines.
type textSplit struct {
	r    *reader
	w    *splitWork
	file vfs.File
	pos  int64 // offset of buf[0]
	read int64 // offset behind buf
	buf  []byte
	used int // bytes of buf that records were cut from
	skip int // lines in front of the first record
}

func (r *reader) openText(w *splitWork) (splitReader, error) {
	h, err := w.file.open()
	if err != nil {
		return nil, err
	}
	t := &textSplit{r: r, w: w, file: h, pos: w.from, read: w.from}
	if w.from == 0 {
		t.skip = r.source.opts.skipLines // a later position is behind them
	}
	return t, nil
}

// skipLines passes over the lines in front of the first record, all of them at once: no
// position is between two of them.
func (t *textSplit) skipLines() error {
	for t.skip > 0 {
		if i := bytes.IndexByte(t.buf[t.used:], '\n'); i >= 0 {
			t.used += i + 1
			t.skip--
			continue
		}
		if t.read >= t.w.file.size {
			t.used, t.skip = len(t.buf), 0
			return nil
		}
		if err := t.fill(2 * cap(t.buf)); err != nil {
			return err
		}
	}
	return nil
}

// fill reads more bytes behind those not used yet. It never moves bytes that a
// record of the present batch refers to: it is called between batches only, or
// when no record has been cut.
func (t *textSplit) fill(want int) error {
	rest := t.buf[t.used:]
	size := max(readBytes, want)
	if size > maxRecordBytes {
		return fmt.Errorf("%s: the record at byte %d is longer than %d bytes", t.w.file.shown(), t.pos+int64(t.used), maxRecordBytes)
	}
	// A fresh buffer: the last batch's raw records may still be asked for.
	buf := make([]byte, len(rest), max(size, len(rest)))
	copy(buf, rest)
	t.pos += int64(t.used)
	t.used = 0
	n := min(int64(cap(buf)-len(buf)), t.w.file.size-t.read)
	if n > 0 {
		part := buf[len(buf) : len(buf)+int(n)]
		got, err := t.file.ReadAt(part, t.read)
		if err == io.EOF && int64(got) == n {
			err = nil
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", t.w.file.shown(), err)
		}
		buf = buf[:len(buf)+got]
		t.read += int64(got)
	}
	t.buf = buf
	return nil
}

func (t *textSplit) next(b *batch.Batch, maxRows, maxBytes int) error {
	if t.pos+int64(t.used) >= t.w.end {
		return io.EOF
	}
	if len(t.buf)-t.used < min(maxBytes, readBytes)/2 && t.read < t.w.file.size {
		if err := t.fill(0); err != nil {
			return err
		}
	}
	a := &t.r.appender
	a.Begin(b, t.r.schema)
	start := t.pos + int64(t.used)
	if err := t.skipLines(); err != nil {
		return err
	}
	a.BeginRun(t.w.split.Number, start)
	raw := rawRecords{}
	for a.Rows() < maxRows && t.pos+int64(t.used) < t.w.end && t.pos+int64(t.used)-start < int64(max(maxBytes, 1)) {
		offset := t.pos + int64(t.used)
		advance, record := t.r.cut(t.buf[t.used:], t.read >= t.w.file.size)
		if advance == 0 {
			if t.read >= t.w.file.size {
				break
			}
			if len(raw.offsets) > 0 {
				break
			}
			if err := t.fill(2 * cap(t.buf)); err != nil {
				return err
			}
			continue
		}
		t.r.decoder.Decode(record, offset, a)
		raw.add(offset, record)
		t.used += advance
	}
	end := t.pos + int64(t.used)
	if end == start {
		return fmt.Errorf("%s: no record ends after byte %d", t.w.file.shown(), start)
	}
	a.EndRun(end, t.w.file.modMillis)
	if err := t.r.constants(b, t.w.file, a.Rows()); err != nil {
		return err
	}
	a.Finish()
	t.r.bytes += end - start
	t.r.raw, t.r.lastRaw = t.w.split.Number, raw
	return nil
}

func (t *textSplit) close() { t.file.Close() }

// rawRecords are the records of a batch by offset.
type rawRecords struct {
	offsets []int64
	lines   [][]byte
}

func (r *rawRecords) add(offset int64, line []byte) {
	r.offsets = append(r.offsets, offset)
	r.lines = append(r.lines, line)
}

func (r *rawRecords) at(offset int64) ([]byte, bool) {
	i := sort.Search(len(r.offsets), func(i int) bool { return r.offsets[i] >= offset })
	if i == len(r.offsets) || r.offsets[i] != offset {
		return nil, false
	}
	return r.lines[i], true
}
