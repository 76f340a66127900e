package state

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// ErrCorrupt is saved state whose bytes do not hold.
var ErrCorrupt = errors.New("corrupt saved state")

// Reader reads what the Append functions wrote. After the first fault it gives
// zeros, and Err is ErrCorrupt.
type Reader struct {
	b   []byte
	bad bool
}

// NewReader reads from b, which must not change.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Err is ErrCorrupt after a fault.
func (r *Reader) Err() error {
	if r.bad {
		return ErrCorrupt
	}
	return nil
}

// Rest is the number of bytes not read.
func (r *Reader) Rest() int { return len(r.b) }

// take never allocates what is not there.
func (r *Reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	x := r.b[:n:n]
	r.b = r.b[n:]
	return x
}

// Uvarint reads a binary.AppendUvarint.
func (r *Reader) Uvarint() uint64 {
	x, n := binary.Uvarint(r.b)
	if r.bad || n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return x
}

// Varint reads a binary.AppendVarint.
func (r *Reader) Varint() int64 {
	x, n := binary.Varint(r.b)
	if r.bad || n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return x
}

// Uint64 reads eight bytes, big-endian.
func (r *Reader) Uint64() uint64 {
	x := r.take(8)
	if x == nil {
		return 0
	}
	return binary.BigEndian.Uint64(x)
}

// Uint32 reads four bytes, big-endian.
func (r *Reader) Uint32() uint32 {
	x := r.take(4)
	if x == nil {
		return 0
	}
	return binary.BigEndian.Uint32(x)
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	x := r.take(1)
	if x == nil {
		return 0
	}
	return x[0]
}

// Count reads a number of things that take at least one byte each.
func (r *Reader) Count() int {
	n := r.Uvarint()
	if n > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	return int(n)
}

// Bytes reads an AppendBytes; the slice aliases the input.
func (r *Reader) Bytes() []byte { return r.take(r.Count()) }

// String reads an AppendBytes of text.
func (r *Reader) String() string { return string(r.Bytes()) }

// Fixed fills dst.
func (r *Reader) Fixed(dst []byte) { copy(dst, r.take(len(dst))) }

// AppendBytes appends a length and the bytes.
func AppendBytes[T ~string | ~[]byte](dst []byte, x T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(x)))
	return append(dst, x...)
}

// AppendHashes appends hashes with their number.
func AppendHashes(dst []byte, hashes []uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(hashes)))
	for _, h := range hashes {
		dst = binary.BigEndian.AppendUint64(dst, h)
	}
	return dst
}

// Hashes reads an AppendHashes.
func (r *Reader) Hashes() []uint64 {
	n := r.Uvarint()
	if n > uint64(len(r.b))/8 {
		r.bad = true
		return nil
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = r.Uint64()
	}
	return out
}

// AppendVec appends the rows of a Flat Vec without errors; its type is not
// written.
func AppendVec(dst []byte, v *batch.Vec) []byte {
	n := v.Len
	dst = binary.AppendUvarint(dst, uint64(n))
	if v.Valid == nil {
		dst = append(dst, 0)
	} else {
		dst = append(dst, 1)
		dst = append(dst, v.Valid[:batch.BitmapBytes(n)]...)
	}
	le := binary.LittleEndian
	switch v.Type.Physical() {
	case types.PhysBool:
		dst = append(dst, v.Bools[:batch.BitmapBytes(n)]...)
	case types.PhysInt8:
		for _, x := range v.I8[:n] {
			dst = append(dst, byte(x))
		}
	case types.PhysInt16:
		for _, x := range v.I16[:n] {
			dst = le.AppendUint16(dst, uint16(x))
		}
	case types.PhysInt32:
		for _, x := range v.I32[:n] {
			dst = le.AppendUint32(dst, uint32(x))
		}
	case types.PhysInt64:
		for _, x := range v.I64[:n] {
			dst = le.AppendUint64(dst, uint64(x))
		}
	case types.PhysFloat32:
		for _, x := range v.F32[:n] {
			dst = le.AppendUint32(dst, math.Float32bits(x))
		}
	case types.PhysFloat64:
		for _, x := range v.F64[:n] {
			dst = le.AppendUint64(dst, math.Float64bits(x))
		}
	case types.PhysDecimal128:
		for _, x := range v.D128[:n] {
			dst = le.AppendUint64(le.AppendUint64(dst, x.Lo), uint64(x.Hi))
		}
	case types.PhysBytes:
		dst = appendLengths(dst, v)
		dst = append(dst, v.Data[v.Offsets[0]:v.Offsets[n]]...)
	case types.PhysList, types.PhysMap:
		dst = appendLengths(dst, v)
		for _, c := range v.Children {
			dst = AppendVec(dst, c)
		}
	case types.PhysRow:
		for _, c := range v.Children {
			dst = AppendVec(dst, c)
		}
	}
	return dst
}

func appendLengths(dst []byte, v *batch.Vec) []byte {
	for i := range v.Len {
		dst = binary.AppendUvarint(dst, uint64(v.Offsets[i+1]-v.Offsets[i]))
	}
	return dst
}

// Vec reads an AppendVec of the given type.
func (r *Reader) Vec(t types.Type) *batch.Vec {
	v := new(batch.Vec)
	r.vec(t, v)
	return v
}

// minBits is how many bits a row takes at least, which bounds allocations.
func minBits(t types.Type) uint64 {
	switch t.Physical() {
	case types.PhysBool:
		return 1
	case types.PhysInt16:
		return 16
	case types.PhysInt32, types.PhysFloat32:
		return 32
	case types.PhysInt64, types.PhysFloat64:
		return 64
	case types.PhysDecimal128:
		return 128
	case types.PhysRow:
		n := uint64(0)
		for _, f := range t.Fields {
			n += minBits(f.Type)
		}
		return n
	}
	return 8
}

func (r *Reader) vec(t types.Type, v *batch.Vec) {
	rows := r.Uvarint()
	if least := max(minBits(t), 1); rows > uint64(len(r.b))*8/least {
		r.bad = true
	}
	if r.bad {
		v.Reset(t, 0)
		return
	}
	n := int(rows)
	v.Reset(t, n)
	switch r.Byte() {
	case 0:
	case 1:
		v.Valid = append(batch.Bitmap(nil), r.take(batch.BitmapBytes(n))...)
	default:
		r.bad = true
	}
	r.values(t, v, n)
	if r.bad {
		v.Reset(t, 0)
	}
}

func (r *Reader) values(t types.Type, v *batch.Vec, n int) {
	le := binary.LittleEndian
	width := int(minBits(t) / 8)
	var x []byte
	switch p := t.Physical(); p {
	case types.PhysBool:
		copy(v.Bools, r.take(batch.BitmapBytes(n)))
		return
	case types.PhysBytes, types.PhysList, types.PhysMap, types.PhysRow:
		r.nested(t, v, n)
		return
	default:
		if x = r.take(n * width); x == nil {
			return
		}
	}
	for i := range n {
		b := x[i*width:]
		switch t.Physical() {
		case types.PhysInt8:
			v.I8[i] = int8(b[0])
		case types.PhysInt16:
			v.I16[i] = int16(le.Uint16(b))
		case types.PhysInt32:
			v.I32[i] = int32(le.Uint32(b))
		case types.PhysInt64:
			v.I64[i] = int64(le.Uint64(b))
		case types.PhysFloat32:
			v.F32[i] = math.Float32frombits(le.Uint32(b))
		case types.PhysFloat64:
			v.F64[i] = math.Float64frombits(le.Uint64(b))
		case types.PhysDecimal128:
			v.D128[i] = types.Decimal128{Lo: le.Uint64(b), Hi: int64(le.Uint64(b[8:]))}
		}
	}
}

func (r *Reader) nested(t types.Type, v *batch.Vec, n int) {
	if t.Physical() == types.PhysRow {
		for i := range t.Fields {
			r.child(t.Fields[i].Type, v.Children[i], n)
		}
		return
	}
	end := uint64(0)
	for range n {
		if end += r.Uvarint(); end > math.MaxInt32 {
			r.bad = true
			return
		}
		v.Offsets = append(v.Offsets, int32(end))
	}
	switch t.Physical() {
	case types.PhysBytes:
		v.Data = append(v.Data, r.take(int(end))...)
	case types.PhysList:
		r.child(*t.Elem, v.Children[0], int(end))
	case types.PhysMap:
		r.child(*t.Key, v.Children[0], int(end))
		r.child(*t.Elem, v.Children[1], int(end))
	}
}

func (r *Reader) child(t types.Type, v *batch.Vec, n int) {
	if r.vec(t, v); v.Len != n {
		r.bad = true
	}
}
