package segment

import (
	"fmt"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

// span is what is known of one batch of an extent after a check.
type span struct {
	start, end int   // in the extent's payload, bytes
	from, to   int64 // offsets; of a bad batch, those its neighbors leave free
	err        error // nil if every byte is proven
}

// proven reports whether the payload is exactly what was appended: it computes
// the batch table anew, compares it with the extent's checksum, and verifies
// each batch. It allocates nothing per batch.
func proven(e *Extent, payload []byte) bool {
	sum, n := uint32(0), uint32(0)
	var entry [tableEntrySize]byte
	for rest := payload; len(rest) > 0; n++ {
		b, after, err := record.Split(rest)
		if err != nil {
			return false
		}
		sum = record.UpdateChecksum(sum, appendTableEntry(entry[:0], b.Raw))
		rest = after
	}
	return n == e.Batches && sum == e.Checksum
}

// examine finds out which batches of a payload that is not proven are good,
// with the help of the stored table. It returns a span for each batch.
func examine(f vfs.File, e *Extent, payload []byte, fileSize int64) ([]span, error) {
	table := make([]byte, tableEntrySize*int(e.Batches))
	if err := readFull(f, table, e.table(), fileSize); err != nil {
		return nil, err
	}
	if record.Checksum(table) != e.Checksum {
		return []span{{end: len(payload), from: e.BaseOffset, to: e.LastOffset,
			err: fmt.Errorf("%w: batch and batch table both damaged", record.ErrChecksum)}}, nil
	}
	return spans(e, payload, table), nil
}

// spans checks each batch against a proven table.
func spans(e *Extent, payload, table []byte) []span {
	out := make([]span, e.Batches)
	at := 0
	for i := range out {
		s := &out[i]
		size, sum := tableEntry(table, i)
		s.start, s.end = at, min(at+size, len(payload))
		s.from, s.to = -1, -1
		b := payload[s.start:s.end]
		at = s.end
		if len(b) < record.PrefixSize || record.Checksum(b[:record.PrefixSize]) != sum {
			s.err = fmt.Errorf("%w: first %d bytes of the batch", record.ErrChecksum, record.PrefixSize)
			continue
		}
		// The prefix is proven, with it the base offset and the checksum of the
		// rest. If the rest is not good, neither is the last offset.
		batch, _, err := record.Split(b)
		if err != nil {
			s.err = err
			continue
		}
		s.from, s.to = batch.BaseOffset, batch.LastOffset()
	}
	boundBad(e, out)
	return out
}

// boundBad gives bad batches the offsets that their neighbors leave free.
func boundBad(e *Extent, spans []span) {
	next := e.BaseOffset
	for i := range spans {
		if spans[i].err != nil {
			spans[i].from = next
		} else {
			next = spans[i].to + 1
		}
	}
	prev := e.LastOffset
	for i := len(spans) - 1; i >= 0; i-- {
		if spans[i].err != nil {
			spans[i].to = prev
		} else {
			prev = spans[i].from - 1
		}
	}
}

// rot turns a bad span into the error that names it.
func (s *span) rot(path string, e *Extent) *RotError {
	return &RotError{Path: path, Partition: e.Partition, From: s.from, To: s.to,
		Position: e.payload() + int64(s.start), Length: int64(s.end - s.start), Err: s.err}
}
