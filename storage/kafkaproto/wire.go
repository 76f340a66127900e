package kafkaproto

import (
	"encoding/binary"
	"errors"
	"net"
)

// errMalformed says that a request does not follow its layout.
var errMalformed = errors.New("malformed request")

// reader decodes a request. The first violation makes it bad; from then on every
// read returns zero. flexible selects the compact encodings and tags.
type reader struct {
	b        []byte
	bad      bool
	flexible bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) int8() int8 {
	if b := r.take(1); b != nil {
		return int8(b[0])
	}
	return 0
}

func (r *reader) int16() int16 {
	if b := r.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *reader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) uuid() (id [16]byte) {
	copy(id[:], r.take(16))
	return id
}

// length reads a length of either encoding; -1 is null.
func (r *reader) length(wide bool) int {
	if !r.flexible {
		if wide {
			return int(r.int32())
		}
		return int(r.int16())
	}
	n, w := binary.Uvarint(r.b)
	if w <= 0 || n > 1<<31 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[w:]
	return int(n) - 1
}

// nullableString returns nil for null. The bytes are a view.
func (r *reader) nullableString() []byte { return r.nullable(r.length(false)) }

// nullableBytes returns nil for null. The bytes are a view.
func (r *reader) nullableBytes() []byte { return r.nullable(r.length(true)) }

func (r *reader) nullable(n int) []byte {
	if n == -1 {
		return nil
	}
	return r.take(n)
}

func (r *reader) string() string { return string(r.nullableString()) }

// arrayLen reads how many elements follow, each at least min bytes long, so that
// a length is never believed beyond what the request holds. Null counts as 0.
func (r *reader) arrayLen(min int) int {
	n := r.length(true)
	if n < -1 || n > len(r.b)/min {
		r.bad, r.b = true, nil
		return 0
	}
	return max(n, 0)
}

// tags skips the tagged fields that end a structure.
func (r *reader) tags() {
	if !r.flexible {
		return
	}
	n, w := binary.Uvarint(r.b)
	if w <= 0 || n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return
	}
	r.b = r.b[w:]
	for ; n > 0 && !r.bad; n-- {
		_, w := binary.Uvarint(r.b)
		if w <= 0 {
			r.bad, r.b = true, nil
			return
		}
		r.b = r.b[w:]
		size, w := binary.Uvarint(r.b)
		if w <= 0 || size > uint64(len(r.b)-w) {
			r.bad, r.b = true, nil
			return
		}
		r.b = r.b[w+int(size):]
	}
}

// end reports whether the whole request was read and nothing was wrong.
func (r *reader) end() error {
	if r.bad || len(r.b) != 0 {
		return errMalformed
	}
	return nil
}

// writer encodes a response as a row of pieces for one vectored write: what it
// encodes itself, and raw bytes that it does not copy.
type writer struct {
	flexible bool
	cur      []byte
	from     int // start of what is not yet in pieces
	pieces   net.Buffers
	size     int // of the raw bytes
}

func (w *writer) int16(v int16) { w.cur = binary.BigEndian.AppendUint16(w.cur, uint16(v)) }
func (w *writer) int32(v int32) { w.cur = binary.BigEndian.AppendUint32(w.cur, uint32(v)) }
func (w *writer) int64(v int64) { w.cur = binary.BigEndian.AppendUint64(w.cur, uint64(v)) }

// length writes a length of either encoding; -1 is null.
func (w *writer) length(n int, wide bool) {
	switch {
	case w.flexible:
		w.cur = binary.AppendUvarint(w.cur, uint64(n+1))
	case wide:
		w.int32(int32(n))
	default:
		w.int16(int16(n))
	}
}

func (w *writer) arrayLen(n int) { w.length(n, true) }

func (w *writer) string(s string) {
	w.length(len(s), false)
	w.cur = append(w.cur, s...)
}

func (w *writer) nullableString(s *string) {
	if s == nil {
		w.length(-1, false)
		return
	}
	w.string(*s)
}

// tags ends a structure that has no tagged fields.
func (w *writer) tags() {
	if w.flexible {
		w.cur = append(w.cur, 0)
	}
}

// raw adds bytes that must not change until the response was sent.
func (w *writer) raw(b []byte) {
	if w.from < len(w.cur) {
		w.pieces = append(w.pieces, w.cur[w.from:len(w.cur):len(w.cur)])
		w.from = len(w.cur)
	}
	w.pieces = append(w.pieces, b)
	w.size += len(b)
}

// frame ends the response and writes its length into its first four bytes.
func (w *writer) frame() net.Buffers {
	if w.from < len(w.cur) {
		w.pieces = append(w.pieces, w.cur[w.from:])
	}
	binary.BigEndian.PutUint32(w.pieces[0], uint32(len(w.cur)+w.size-4))
	return w.pieces
}

// newWriter starts a response: room for the length, correlation id, tags.
func newWriter(correlation int32, flexible, headerTags bool) *writer {
	w := &writer{flexible: flexible, cur: make([]byte, 0, 256)}
	w.begin(correlation, headerTags)
	return w
}

// begin writes the header of a response, with room for its length.
func (w *writer) begin(correlation int32, tags bool) {
	w.int32(0)
	w.int32(correlation)
	if tags {
		w.cur = append(w.cur, 0)
	}
}
