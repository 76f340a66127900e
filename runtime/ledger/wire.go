package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/offsets"
)

// kind is the type of a fact: first byte of the key, again in the value.
type kind byte

const (
	kindStart      kind = 'S'
	kindTable      kind = 'T'
	kindLane       kind = 'L'
	kindOpen       kind = 'O'
	kindCursor     kind = 'P'
	kindHour       kind = 'M'
	kindHead       kind = 'H'
	kindIntent     kind = 'I'
	kindOutcome    kind = 'C'
	kindClose      kind = 'X'
	kindPublishing kind = 'B'
	kindEmitted    kind = 'E'
	kindSwitch     kind = 'W'
	kindMoved      kind = 'V'
)

// Version is the version of the value layout.
const Version = 1

const (
	valueMagic   = "MRL"
	valueHeader  = len(valueMagic) + 2
	valueTrailer = 4
	scopeBytes   = 1 + 16 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Errors of decoding.
var (
	// ErrCorrupt is a record whose bytes do not hold.
	ErrCorrupt = errors.New("corrupt ledger record")
	// ErrVersion is a record of a later version of Millrace.
	ErrVersion = errors.New("ledger record of an unknown version")
)

// EncodeFact makes the record of a fact.
func EncodeFact(s Scope, f Fact) Record {
	key := appendScope(make([]byte, 0, 96), f.kind(), s)
	key = f.appendKey(key)
	v := append(make([]byte, 0, 128), valueMagic...)
	v = append(v, Version, byte(f.kind()))
	v = f.appendFields(v)
	return Record{Key: key, Value: appendChecksum(key, v)}
}

// appendChecksum ends a value: the checksum covers the key, so that a value
// under another key is seen.
func appendChecksum(key, v []byte) []byte {
	return binary.LittleEndian.AppendUint32(v, checksum(key, v))
}

func checksum(key, v []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, v)
}

func appendScope(b []byte, k kind, s Scope) []byte {
	b = append(b, byte(k))
	b = append(b, s.Job[:]...)
	return binary.BigEndian.AppendUint32(b, s.Generation)
}

// DecodeFact reads a record that is no tombstone.
func DecodeFact(r Record) (Scope, Fact, error) {
	var s Scope
	if len(r.Key) < scopeBytes || len(r.Value) < valueHeader+valueTrailer || string(r.Value[:3]) != valueMagic {
		return s, nil, fmt.Errorf("%w: key %x", ErrCorrupt, r.Key)
	}
	body := r.Value[:len(r.Value)-valueTrailer]
	if binary.LittleEndian.Uint32(r.Value[len(body):]) != checksum(r.Key, body) {
		return s, nil, fmt.Errorf("%w: checksum of key %x", ErrCorrupt, r.Key)
	}
	if body[3] != Version {
		return s, nil, fmt.Errorf("%w: %d", ErrVersion, body[3])
	}
	if body[4] != r.Key[0] {
		return s, nil, fmt.Errorf("%w: kind of key %x", ErrCorrupt, r.Key)
	}
	copy(s.Job[:], r.Key[1:17])
	s.Generation = binary.BigEndian.Uint32(r.Key[17:])
	d := &decoder{b: r.Key[scopeBytes:]}
	v := &decoder{b: body[valueHeader:]}
	f := decode(kind(r.Key[0]), d, v)
	if f == nil {
		return s, nil, fmt.Errorf("%w: kind %q", ErrVersion, r.Key[0])
	}
	if d.bad || v.bad || len(d.b) > 0 || len(v.b) > 0 {
		return s, nil, fmt.Errorf("%w: fields of key %x", ErrCorrupt, r.Key)
	}
	return s, f, nil
}

// decoder reads fields; after the first fault it is bad and gives zeros.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int) []byte {
	if d.bad || n < 0 || len(d.b) < n {
		d.bad = true
		return make([]byte, max(0, min(n, 32)))
	}
	x := d.b[:n]
	d.b = d.b[n:]
	return x
}

func (d *decoder) u32() uint32 { return binary.BigEndian.Uint32(d.take(4)) }
func (d *decoder) u64() uint64 { return binary.BigEndian.Uint64(d.take(8)) }
func (d *decoder) byte() byte  { return d.take(1)[0] }

func (d *decoder) uvarint() uint64 {
	x, n := binary.Uvarint(d.b)
	if d.bad || n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return x
}

func (d *decoder) varint() int64 {
	x, n := binary.Varint(d.b)
	if d.bad || n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return x
}

func (d *decoder) int64() int64 {
	x := d.uvarint()
	if x > math.MaxInt64 {
		d.bad = true
	}
	return int64(x)
}

// count reads the length of a list whose elements take at least one byte,
// which bounds the allocation.
func (d *decoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.bad = true
		return 0
	}
	return int(n)
}

func (d *decoder) string() string { return string(d.take(d.count())) }

func (d *decoder) bytes() []byte {
	n := d.count()
	if n == 0 {
		return nil
	}
	return append([]byte(nil), d.take(n)...)
}

func (d *decoder) uuid() (u connector.UUID) {
	copy(u[:], d.take(16))
	return u
}

func (d *decoder) set() offsets.Set {
	if d.bad {
		return offsets.Set{}
	}
	s, rest, err := offsets.Decode(d.b)
	if err != nil {
		d.bad = true
		return offsets.Set{}
	}
	d.b = rest
	return s
}

func (d *decoder) rest() string { return string(d.take(len(d.b))) }

func (d *decoder) lane() connector.LaneID {
	return connector.LaneID{Topic: d.uuid(), Set: d.u32()}
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendLane(b []byte, l connector.LaneID) []byte {
	b = append(b, l.Topic[:]...)
	return binary.BigEndian.AppendUint32(b, l.Set)
}

func appendU32(b []byte, x uint32) []byte     { return binary.BigEndian.AppendUint32(b, x) }
func appendU64(b []byte, x uint64) []byte     { return binary.BigEndian.AppendUint64(b, x) }
func appendUvarint(b []byte, x uint64) []byte { return binary.AppendUvarint(b, x) }
func appendVarint(b []byte, x int64) []byte   { return binary.AppendVarint(b, x) }
func appendInt(b []byte, x int64) []byte      { return binary.AppendUvarint(b, uint64(x)) }

// appendID appends an artefact id without job and generation, which the scope
// has: table, form (0 lane, 1 keyed), then fixed-width numbers.
func appendID(b []byte, a connector.ArtifactID) []byte {
	b = append(b, a.Table[:]...)
	if a.Keyed {
		b = append(b, 1)
		b = appendU32(b, a.Subtask)
		b = appendU64(b, a.Epoch)
		b = appendU64(b, a.Manifest)
	} else {
		b = append(b, 0)
		b = appendLane(b, a.Lane)
		b = appendU64(b, a.Epoch)
	}
	return appendU64(b, a.Sequence)
}

// id reads an artefact id; Job and Generation are filled in by the Book.
func (d *decoder) id() (a connector.ArtifactID) {
	a.Table = d.uuid()
	switch d.byte() {
	case 0:
		a.Lane = d.lane()
		a.Epoch = d.u64()
	case 1:
		a.Keyed = true
		a.Subtask = d.u32()
		a.Epoch = d.u64()
		a.Manifest = d.u64()
	default:
		d.bad = true
	}
	a.Sequence = d.u64()
	return a
}

func appendWriter(b []byte, w Writer) []byte {
	if w.Keyed {
		b = append(b, 1)
	} else {
		b = append(b, 0)
		b = appendLane(b, w.Lane)
	}
	return appendU64(b, w.Epoch)
}

func (d *decoder) writer() (w Writer) {
	switch d.byte() {
	case 0:
		w.Lane = d.lane()
	case 1:
		w.Keyed = true
	default:
		d.bad = true
	}
	w.Epoch = d.u64()
	return w
}

func appendTallies(b []byte, t Tallies) []byte {
	b = appendUvarint(b, uint64(len(t)))
	for i := range t {
		b = appendString(b, t[i].Code)
		b = appendString(b, t[i].Column)
		b = appendInt(b, t[i].Rows)
	}
	return b
}

func (d *decoder) tallies() Tallies {
	n := d.count()
	if n == 0 {
		return nil
	}
	t := make(Tallies, 0, n)
	for range n {
		t = append(t, Tally{Reason{d.string(), d.string()}, d.int64()})
	}
	return t
}

func appendCounts(b []byte, c *Counts) []byte {
	for _, x := range [...]int64{c.Records, c.Lost, c.Read, c.Written, c.Folded, c.Late, c.Expanded} {
		b = appendInt(b, x)
	}
	b = appendTallies(b, c.Filtered)
	return appendTallies(b, c.Dead)
}

func (d *decoder) counts() (c Counts) {
	for _, x := range [...]*int64{&c.Records, &c.Lost, &c.Read, &c.Written, &c.Folded, &c.Late, &c.Expanded} {
		*x = d.int64()
	}
	c.Filtered = d.tallies()
	c.Dead = d.tallies()
	return c
}
