package state

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace/millrace/runtime/types"
)

// Section is the saved state of one operator in one subtask.
type Section struct {
	// Path identifies the operator (graph.Node.Path), Kind its type.
	Path, Kind string
	// Fingerprint is of what the state depends on: types of keys, the window.
	Fingerprint uint64
	Payload     []byte
	// Body is the payload of state that is partly on disk, for NewSections; what is
	// read has none.
	Body *Payload
}

// IncompatibleError says that saved state cannot be taken over by an operator.
type IncompatibleError struct {
	Path   string
	Reason string
}

func (e *IncompatibleError) Error() string {
	return fmt.Sprintf("the saved state of %q cannot be used: %s", e.Path, e.Reason)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendSections appends the saved state of one subtask.
func AppendSections(dst []byte, sections []Section) []byte {
	from, size := len(dst), 16
	for i := range sections {
		size += len(sections[i].Payload) + len(sections[i].Path) + len(sections[i].Kind) + 32
	}
	dst = slices.Grow(dst, size)
	dst = binary.AppendUvarint(dst, uint64(len(sections)))
	for i := range sections {
		s := &sections[i]
		dst = AppendBytes(dst, s.Path)
		dst = AppendBytes(dst, s.Kind)
		dst = binary.BigEndian.AppendUint64(dst, s.Fingerprint)
		dst = AppendBytes(dst, s.Payload)
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
}

// ReadSections reads an AppendSections; payloads alias b.
func ReadSections(b []byte) ([]Section, error) {
	if len(b) < 4 {
		return nil, ErrCorrupt
	}
	body := b[:len(b)-4]
	if binary.LittleEndian.Uint32(b[len(body):]) != crc32.Checksum(body, castagnoli) {
		return nil, fmt.Errorf("%w: checksum", ErrCorrupt)
	}
	r := NewReader(body)
	out := make([]Section, r.Count())
	for i := range out {
		out[i] = Section{Path: r.String(), Kind: r.String(), Fingerprint: r.Uint64(), Payload: r.Bytes()}
	}
	if r.Rest() > 0 {
		return nil, ErrCorrupt
	}
	return out, r.Err()
}

// Fingerprint hashes types (without nullability) and whatever else state depends
// on, for Section.Fingerprint.
func Fingerprint(columns []types.Type, more ...string) uint64 {
	var b []byte
	for _, t := range columns {
		b = AppendBytes(b, t.WithNullable(true).String())
	}
	b = append(b, 0)
	for _, s := range more {
		b = AppendBytes(b, s)
	}
	return xxhash.Sum64(b)
}
