package record

import "fmt"

// Record is one record of a batch. Key, Value and the headers are views, valid
// as long as the batch's bytes and, for a compressed batch, until the Decoder
// is used again. nil means null, an empty slice means empty.
type Record struct {
	Offset      int64
	Timestamp   int64 // milliseconds since 1970 UTC, create or log-append time
	Key         []byte
	Value       []byte
	HeaderCount int

	headers []byte
}

// RecordHeader is one header of a record. The key may repeat within a record;
// a nil value means null.
type RecordHeader struct {
	Key, Value []byte
}

// Headers iterates the headers in the order they were written.
func (r *Record) Headers() HeaderIter { return HeaderIter{buf: r.headers, left: r.HeaderCount} }

// HeaderIter walks the headers of one record. Its bytes were checked by Iter.
type HeaderIter struct {
	buf  []byte
	pos  int
	left int
}

// Next stores the next header in h and reports whether there was one.
func (it *HeaderIter) Next(h *RecordHeader) bool {
	if it.left == 0 {
		return false
	}
	it.left--
	var ok bool
	if h.Key, it.pos, ok = bytesAt(it.buf, it.pos); !ok {
		return false
	}
	h.Value, it.pos, ok = bytesAt(it.buf, it.pos)
	return ok
}

// Iter walks the records of one batch; get one from Decoder.Records. Loop
// `for it.Next(&r)` and then check Err.
type Iter struct {
	buf       []byte
	pos       int
	left      int32
	nextDelta int32 // smallest offset delta that may come next
	lastDelta int32
	base      int64
	baseTime  int64
	appended  bool  // log-append time
	maxTime   int64 // the timestamp of every record if appended
	err       error
}

// Next stores the next record in r and reports whether there was one. It
// allocates nothing.
func (it *Iter) Next(r *Record) bool {
	if it.err != nil {
		return false
	}
	if it.left == 0 {
		if it.pos != len(it.buf) {
			it.fail("bytes after the last record")
		}
		return false
	}
	size, pos := varint(it.buf, it.pos)
	if pos < 0 || size < 0 || int(size) > len(it.buf)-pos {
		return it.fail("record length")
	}
	end := pos + int(size)
	body := it.buf[:end]
	if pos == end {
		return it.fail("empty record")
	}
	pos++ // record attributes, unused by the format
	timeDelta, pos := varlong(body, pos)
	if pos < 0 {
		return it.fail("timestamp delta")
	}
	delta, pos := varint(body, pos)
	if pos < 0 || delta < it.nextDelta || delta > it.lastDelta {
		return it.fail("offset delta")
	}
	var ok bool
	if r.Key, pos, ok = bytesAt(body, pos); !ok {
		return it.fail("key")
	}
	if r.Value, pos, ok = bytesAt(body, pos); !ok {
		return it.fail("value")
	}
	headers, pos := varint(body, pos)
	if pos < 0 || headers < 0 || !headersFill(body[pos:], int(headers)) {
		return it.fail("headers")
	}
	r.HeaderCount = int(headers)
	r.headers = body[pos:]
	r.Offset = it.base + int64(delta)
	r.Timestamp = it.baseTime + timeDelta
	if it.appended {
		r.Timestamp = it.maxTime
	}
	it.pos = end
	it.left--
	it.nextDelta = delta + 1
	return true
}

// Err is what stopped the iteration, nil at the regular end. It wraps
// ErrCorrupt and names the base offset and the field.
func (it *Iter) Err() error { return it.err }

func (it *Iter) fail(field string) bool {
	it.err = fmt.Errorf("%w: %s at byte %d of the records at base offset %d", ErrCorrupt, field, it.pos, it.base)
	return false
}

// headersFill checks that exactly n headers fill b.
func headersFill(b []byte, n int) bool {
	pos := 0
	for ; n > 0; n-- {
		key, next, ok := bytesAt(b, pos)
		if !ok || key == nil {
			return false
		}
		if _, pos, ok = bytesAt(b, next); !ok {
			return false
		}
	}
	return pos == len(b)
}

// bytesAt reads a length and that many bytes. Length -1 gives nil.
func bytesAt(b []byte, pos int) (v []byte, next int, ok bool) {
	n, pos := varint(b, pos)
	if pos < 0 || n < -1 || int(n) > len(b)-pos {
		return nil, 0, false
	}
	if n < 0 {
		return nil, pos, true
	}
	end := pos + int(n)
	return b[pos:end:end], end, true
}
