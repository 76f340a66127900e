package kafka

import (
	"bytes"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/record"
)

// finder looks records up in portions. It stays where it found the last one, so
// that a batch full of dead letters is walked once and each compressed batch of
// it unpacked once.
type finder struct {
	decoder record.Decoder
	in      portion
	rest    []byte
	batch   record.Batch
	iter    record.Iter
	rec     record.Record
	valid   bool // batch and rec are those last looked at
}

func (f *finder) forget() {
	f.in, f.rest, f.batch, f.iter, f.valid = portion{}, nil, record.Batch{}, record.Iter{}, false
}

// Raw implements connector.Reader. A portion that is partly decoded is looked into
// as well, also beyond what was decoded of it.
func (r *reader) Raw(number int32, offset int64) (connector.RawRecord, bool) {
	f := &r.find
	if f.valid && f.in.split.number == number && offset >= f.rec.Offset && f.seek(offset) {
		return f.record(), true
	}
	for _, l := range r.held {
		if l.split.number == number && f.start(l, offset) {
			return f.record(), true
		}
	}
	if l := r.cur.portion; l.split != nil && l.split.number == number && f.start(l, offset) {
		return f.record(), true
	}
	return r.rawBatch(number, offset)
}

// rawBatch is the whole record batch of an offset that cannot be unpacked.
func (r *reader) rawBatch(number int32, offset int64) (connector.RawRecord, bool) {
	for _, l := range append(r.held[:len(r.held):len(r.held)], r.cur.portion) {
		if l.split == nil || l.split.number != number {
			continue
		}
		for data := l.data; len(data) > 0; {
			rb, rest, err := record.SplitUnverified(data)
			if err != nil {
				break
			}
			data = rest
			if offset < rb.BaseOffset || offset > rb.LastOffset() || rb.Attributes.Control() {
				continue
			}
			r.find.forget()
			bad := record.CheckRecords(rb, &r.find.decoder) != nil
			return connector.RawRecord{Value: rb.Raw, TimestampMillis: rb.MaxTimestamp}, bad
		}
	}
	return connector.RawRecord{}, false
}

// start looks for an offset from the beginning of a portion.
func (f *finder) start(l portion, offset int64) bool {
	f.forget()
	f.in, f.rest = l, l.data
	return f.seek(offset)
}

// seek goes forward to an offset.
func (f *finder) seek(offset int64) bool {
	if f.valid && f.rec.Offset == offset {
		return true
	}
	for {
		if f.valid && offset <= f.batch.LastOffset() {
			for f.iter.Next(&f.rec) {
				if f.rec.Offset >= offset {
					return f.rec.Offset == offset
				}
			}
		}
		if !f.nextBatch(offset) {
			f.forget()
			return false
		}
	}
}

// nextBatch opens the next batch that may hold the offset.
func (f *finder) nextBatch(offset int64) bool {
	for len(f.rest) > 0 {
		rb, rest, err := record.SplitUnverified(f.rest)
		if err != nil {
			return false
		}
		f.rest = rest
		if rb.LastOffset() < offset || rb.Attributes.Control() {
			continue
		}
		if rb.BaseOffset > offset {
			return false
		}
		it, err := f.decoder.Records(rb)
		if err != nil {
			return false
		}
		f.batch, f.iter, f.rec, f.valid = rb, it, record.Record{Offset: -1}, true
		return true
	}
	return false
}

// record is the record found. What was unpacked is copied, because the next
// batch is unpacked over it while the caller may still have this one.
func (f *finder) record() connector.RawRecord {
	copied := f.batch.Attributes.Codec() != record.None
	keep := func(b []byte) []byte {
		if copied {
			return bytes.Clone(b)
		}
		return b
	}
	out := connector.RawRecord{Key: keep(f.rec.Key), Value: keep(f.rec.Value), TimestampMillis: f.rec.Timestamp}
	hs := f.rec.Headers()
	var h record.RecordHeader
	for hs.Next(&h) {
		out.Headers = append(out.Headers, connector.RecordHeader{Key: string(h.Key), Value: keep(h.Value)})
	}
	return out
}
