package clickhouse

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/millrace/millrace/storage/vfs"
)

// sealedMagic starts a sealed block, whose format is docs/format/sealed-block.md.
const (
	sealedMagic = "mrchblk"
	// A block of a table that has an identity has version 2, with it.
	sealedVersion    = 1
	sealedIdentified = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealedHead is what a sealed block says about itself.
type sealedHead struct {
	// id is the artefact id, which is also the token and the query id.
	id   string
	rows int64
	// shape is the hash of the table's definition that the block was made for.
	shape uint64
	// partsBefore and sealedAt are a block number and a time, in s since 1970 by
	// the server's clock, of before the block could be sent first.
	partsBefore, sealedAt int64
	// identity is the table's, as it was then; "" where the server gives none.
	identity string
	columns  []sealedColumn
}

// sealedColumn is a column of a block: its values are bytes bytes.
type sealedColumn struct {
	name, typ string
	bytes     int64
}

// blockWriter writes a file and keeps count, sum and the first error. Without a
// file it only counts.
type blockWriter struct {
	w   io.Writer
	n   int64
	sum uint32
	err error
}

func (w *blockWriter) write(b []byte) {
	if w.err != nil || len(b) == 0 {
		return
	}
	if w.w == nil {
		w.n += int64(len(b))
		return
	}
	w.sum = crc32.Update(w.sum, castagnoli, b)
	n, err := w.w.Write(b)
	w.n += int64(n)
	w.err = err
}

func (h *sealedHead) encode() []byte {
	version := byte(sealedVersion)
	if h.identity != "" {
		version = sealedIdentified
	}
	b := append([]byte(sealedMagic), version)
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	text(h.id)
	b = binary.AppendUvarint(b, uint64(h.rows))
	b = binary.LittleEndian.AppendUint64(b, h.shape)
	b = binary.AppendVarint(b, h.partsBefore)
	b = binary.AppendVarint(b, h.sealedAt)
	if h.identity != "" {
		text(h.identity)
	}
	b = binary.AppendUvarint(b, uint64(len(h.columns)))
	for _, c := range h.columns {
		text(c.name)
		text(c.typ)
		b = binary.AppendUvarint(b, uint64(c.bytes))
	}
	return b
}

var errSealed = errors.New("it is no sealed block of a version that this program knows")

// decodeSealed takes a file apart: its head, and each column's bytes, which
// alias it.
func decodeSealed(file []byte) (h sealedHead, columns [][]byte, err error) {
	if len(file) < len(sealedMagic)+1+4 || string(file[:len(sealedMagic)]) != sealedMagic ||
		file[len(sealedMagic)] != sealedVersion && file[len(sealedMagic)] != sealedIdentified {
		return h, nil, errSealed
	}
	body, sum := file[:len(file)-4], binary.LittleEndian.Uint32(file[len(file)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return h, nil, errors.New("a sealed block is damaged: its checksum differs")
	}
	r := sealedReader{b: body[len(sealedMagic)+1:]}
	h.id = r.text()
	h.rows = int64(r.uvarint())
	h.shape = r.fixed()
	h.partsBefore, h.sealedAt = r.varint(), r.varint()
	if file[len(sealedMagic)] == sealedIdentified {
		h.identity = r.text()
	}
	n := r.uvarint()
	for i := uint64(0); i < n && !r.bad; i++ {
		h.columns = append(h.columns, sealedColumn{name: r.text(), typ: r.text(), bytes: int64(r.uvarint())})
	}
	for _, c := range h.columns {
		columns = append(columns, r.take(uint64(c.bytes)))
	}
	if r.bad || len(r.b) > 0 {
		return h, nil, errors.New("a sealed block has another length than it says")
	}
	return h, columns, nil
}

// sealedReader reads a head; bad is set once something is missing.
type sealedReader struct {
	b   []byte
	bad bool
}

func (r *sealedReader) uvarint() uint64 {
	x, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return x
}

func (r *sealedReader) varint() int64 {
	x, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return x
}

func (r *sealedReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *sealedReader) text() string { return string(r.take(r.uvarint())) }

func (r *sealedReader) fixed() uint64 {
	b := r.take(8)
	if r.bad {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// writeSealed writes a block into a new file and makes it durable. It gives the
// file's size in bytes.
func writeSealed(fsys vfs.FS, name string, h *sealedHead, cols []*column, bufs []buffer) (int64, error) {
	// Sizes stand in the head: the columns are measured first.
	h.columns = h.columns[:len(cols)]
	for i, c := range cols {
		var m blockWriter
		m.write(c.prefix(nil))
		c.emit(&bufs[i], &m)
		h.columns[i].bytes = m.n
	}
	f, err := fsys.CreateNew(name)
	if err != nil {
		return 0, err
	}
	w := blockWriter{w: f}
	w.write(h.encode())
	for i, c := range cols {
		w.write(c.prefix(nil))
		c.emit(&bufs[i], &w)
	}
	w.write(binary.LittleEndian.AppendUint32(nil, w.sum))
	if err = w.err; err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		// On a full disk each attempt would leave as much as fits.
		_ = fsys.Remove(name)
		return 0, fmt.Errorf("writing %s: %w", name, err)
	}
	return w.n, nil
}
