package filesystem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/millrace/millrace/runtime/batch"
)

const (
	// readBytes is the first size of a text file's buffer.
	readBytes = 256 << 10
	// maxRecordBytes bounds one record of a text file.
	maxRecordBytes = 64 << 20
)

// textSplit reads a file of lines. Offsets are those of the text, also where the file is
// compressed.
type textSplit struct {
	r          *reader
	w          *splitWork
	in         textInput
	compressed *compressedInput // in, where the file is compressed
	pos        int64            // offset of buf[0]
	buf        []byte
	used       int   // bytes of buf that records were cut from
	skip       int   // lines in front of the first record
	ended      bool  // nothing comes behind buf
	fault      error // nothing can be read behind buf
}

func (r *reader) openText(ctx context.Context, w *splitWork) (splitReader, error) {
	t := &textSplit{r: r, w: w, pos: w.from, ended: w.from >= w.end}
	if w.from == 0 {
		t.skip = r.source.opts.skipLines // a later position is behind them
	}
	c, compressed, err := codecOf(w.file.path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", w.file.shown(), err)
	}
	h, err := w.file.open()
	if err != nil {
		return nil, err
	}
	if !compressed {
		t.in = &plainInput{file: h, at: w.from, size: w.file.size}
		return t, nil
	}
	t.compressed = newCompressedInput(h, w.file.size, c)
	t.in = t.compressed
	if !t.ended {
		err = t.compressed.skip(w.from, ctx.Err)
	}
	switch {
	case errors.Is(err, io.EOF):
		t.ended = true // an earlier run ended with the last record
	case errors.Is(err, errDamaged):
		t.fault = err
	case err != nil:
		t.close()
		return nil, fmt.Errorf("reading %s: %w", w.file.shown(), err)
	}
	return t, nil
}

// more reports whether fill may read more.
func (t *textSplit) more() bool { return !t.ended && t.fault == nil }

// skipLines passes over the lines in front of the first record, all of them at once: no
// position is between two of them.
func (t *textSplit) skipLines() error {
	for t.skip > 0 {
		if i := bytes.IndexByte(t.buf[t.used:], '\n'); i >= 0 {
			t.used += i + 1
			t.skip--
			continue
		}
		if t.fault != nil {
			return t.r.source.damage(t.w, t.w.from, t.fault)
		}
		if t.ended {
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
	n, err := t.in.Read(buf[len(buf):cap(buf)])
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		t.ended = true
	case errors.Is(err, errDamaged):
		t.fault = err
	default:
		return fmt.Errorf("reading %s: %w", t.w.file.shown(), err)
	}
	t.buf = buf[:len(buf)+n]
	return nil
}

func (t *textSplit) next(b *batch.Batch, maxRows, maxBytes int) error {
	if t.pos+int64(t.used) >= t.w.end {
		return io.EOF
	}
	if len(t.buf)-t.used < min(maxBytes, readBytes)/2 && t.more() {
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
		// Of a file that ends before its time the last record may not be whole.
		advance, record := t.r.cut(t.buf[t.used:], t.ended)
		if advance == 0 {
			if !t.more() || len(raw.offsets) > 0 {
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
	t.r.bytes += end - start
	if t.compressed != nil {
		end = t.compressedEnd(end)
	}
	if end == start {
		if t.fault != nil {
			return t.r.source.damage(t.w, start, t.fault)
		}
		return fmt.Errorf("%s: no record ends after byte %d", t.w.file.shown(), start)
	}
	a.EndRun(end, t.w.file.modMillis)
	if err := t.r.constants(b, t.w.file, a.Rows()); err != nil {
		return err
	}
	a.Finish()
	t.r.raw, t.r.lastRaw = t.w.split.Number, raw
	return nil
}

// compressedEnd gives the end of a run of a compressed file: with the last record the whole
// split has been read. Until then it is estimated how far that is.
func (t *textSplit) compressedEnd(end int64) int64 {
	if t.ended && t.used == len(t.buf) {
		t.pos, t.buf, t.used = t.w.end, nil, 0
		t.r.bounds[t.w.split.Number] = t.w.end
		return t.w.end
	}
	t.r.bounds[t.w.split.Number] = t.compressed.total()
	return end
}

func (t *textSplit) close() { t.in.close() }

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
