package topiclog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/millrace/millrace/storage/segment"
	"github.com/millrace/millrace/storage/vfs"
	"github.com/millrace/millrace/storage/wal"
)

// refBytes is the size of a reference.
const refBytes = 32

// reference says where in an own segment the batches of a journal entry are. It
// describes them so well that neither the file's headers nor its index are needed
// to prove every byte.
type reference struct {
	segment         uint64
	position        int64 // of the extent in the file
	length, batches uint32
	checksum        uint32 // of the batch table
}

func (r *reference) encode(b []byte) {
	binary.BigEndian.PutUint64(b, r.segment)
	binary.BigEndian.PutUint64(b[8:], uint64(r.position))
	binary.BigEndian.PutUint32(b[16:], r.length)
	binary.BigEndian.PutUint32(b[20:], r.batches)
	binary.BigEndian.PutUint32(b[24:], r.checksum)
	clear(b[28:refBytes])
}

func decodeReference(b []byte) (r reference, ok bool) {
	if len(b) != refBytes {
		return r, false
	}
	return reference{
		segment: binary.BigEndian.Uint64(b), position: int64(binary.BigEndian.Uint64(b[8:])),
		length: binary.BigEndian.Uint32(b[16:]), batches: binary.BigEndian.Uint32(b[20:]), checksum: binary.BigEndian.Uint32(b[24:]),
	}, true
}

// resolve makes an entry that names batches one that has them. What it names and
// cannot be proven is like a payload with a wrong checksum.
func (r *replayer) resolve(e *wal.Entry) error {
	e.Kind = wal.KindBatch
	if p := r.s.part(PartitionID(e.Partition)); e.State != wal.Valid || p == nil || e.Last < p.next {
		return nil // damaged, deleted, or in a segment by now
	}
	ref, ok := decodeReference(e.Payload)
	if !ok {
		return fmt.Errorf("%w: journal entry with a reference of %d bytes", ErrFormat, len(e.Payload))
	}
	payload, err := r.readOwn(&ref, segment.Extent{Partition: uint64(e.Partition), BaseOffset: e.Base, LastOffset: e.Last,
		Position: ref.position, Length: ref.length, Batches: ref.batches, Checksum: ref.checksum})
	var rot *segment.RotError
	switch {
	case err == nil:
		// The file goes when all of it is in segments that the manifest names.
		e.Payload, r.rebuild = payload, true
	case errors.As(err, &rot):
		r.s.opts.Logger.Warn("what the journal names is not there", "error", rot)
		e.State, e.Payload, e.Note = wal.Bad, nil, nil
	default:
		return fmt.Errorf("reading what the journal names: %w", err)
	}
	return nil
}

func (r *replayer) readOwn(ref *reference, e segment.Extent) ([]byte, error) {
	path := r.s.segmentPath(ref.segment)
	f, known := r.own[ref.segment]
	if !known {
		var err error
		f, err = r.s.segFS.Open(path)
		if err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return nil, err
		}
		if err != nil {
			f = nil
		}
		r.own[ref.segment] = f
	}
	if f == nil {
		return nil, &segment.RotError{Path: path, Partition: e.Partition, From: e.BaseOffset, To: e.LastOffset, Err: vfs.ErrNotExist}
	}
	return segment.ReadExtent(f, path, e)
}

// closeOwn closes the files, which were only read.
func (r *replayer) closeOwn() {
	for _, f := range r.own {
		if f != nil {
			_ = f.Close()
		}
	}
}
