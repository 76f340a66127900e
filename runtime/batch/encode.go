package batch

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace/millrace/runtime/types"
)

// The canonical value encoding (docs/format/value.md, version 1). Equal values
// have equal encodings whatever their layout, precision or encoding in memory;
// it is what hashes, keys, distinct sets and tie-breaks are made of.
const (
	tagNull      = 0x00
	tagFalse     = 0x01
	tagTrue      = 0x02
	tagInt       = 0x03 // 8 bytes big-endian two's complement
	tagFloat     = 0x04 // 4 bytes IEEE 754
	tagDouble    = 0x05 // 8 bytes IEEE 754
	tagDecimal   = 0x06 // scale, length, minimal big-endian two's complement
	tagString    = 0x07 // uvarint length, bytes
	tagBytes     = 0x08 // uvarint length, bytes
	tagDate      = 0x09 // 4 bytes days
	tagTime      = 0x0a // 4 bytes milliseconds
	tagTimestamp = 0x0b // 12 bytes: seconds (8), nanoseconds (4)
	tagInstant   = 0x0c // 12 bytes: seconds (8), nanoseconds (4)
	tagMonths    = 0x0d // 4 bytes
	tagMillis    = 0x0e // 8 bytes
	tagArray     = 0x0f // uvarint count, elements
	tagMap       = 0x10 // uvarint count, (key, value) sorted by encoded key
	tagRow       = 0x11 // uvarint count, fields
)

// AppendValue appends the canonical encoding of row i of v, of any encoding.
// An error is encoded as NULL: callers have dealt with errors before.
func AppendValue(dst []byte, v *Vec, i int) []byte { return appendValue(dst, v, i, false) }

// AppendExact is AppendValue but for FLOAT and DOUBLE, whose bits are kept as
// they are: for state that must give a value back unchanged. DecodeValue
// reads both.
func AppendExact(dst []byte, v *Vec, i int) []byte { return appendValue(dst, v, i, true) }

func appendValue(dst []byte, v *Vec, i int, exact bool) []byte {
	v, i, null := v.resolve(i)
	if null {
		return append(dst, tagNull)
	}
	switch v.Type.Kind {
	case types.Boolean:
		if v.Bools.Get(i) {
			return append(dst, tagTrue)
		}
		return append(dst, tagFalse)
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		return binary.BigEndian.AppendUint64(append(dst, tagInt), uint64(v.Int64(i)))
	case types.Float:
		if exact {
			return binary.BigEndian.AppendUint32(append(dst, tagFloat), math.Float32bits(v.F32[i]))
		}
		return binary.BigEndian.AppendUint32(append(dst, tagFloat), canonical32(v.F32[i]))
	case types.Double:
		if exact {
			return binary.BigEndian.AppendUint64(append(dst, tagDouble), math.Float64bits(v.F64[i]))
		}
		return binary.BigEndian.AppendUint64(append(dst, tagDouble), canonical64(v.F64[i]))
	case types.Decimal:
		return appendDecimalValue(dst, v.Decimal(i), v.Type.Scale)
	case types.Char, types.Varchar:
		return appendBytesValue(dst, tagString, v.Data[v.Offsets[i]:v.Offsets[i+1]])
	case types.Binary, types.Varbinary:
		return appendBytesValue(dst, tagBytes, v.Data[v.Offsets[i]:v.Offsets[i+1]])
	case types.Date:
		return binary.BigEndian.AppendUint32(append(dst, tagDate), uint32(v.I32[i]))
	case types.Time:
		return binary.BigEndian.AppendUint32(append(dst, tagTime), uint32(v.I32[i]))
	case types.Timestamp:
		return appendTimestampValue(append(dst, tagTimestamp), v.I64[i], v.Type.UnitsPerSecond())
	case types.TimestampLTZ:
		return appendTimestampValue(append(dst, tagInstant), v.I64[i], v.Type.UnitsPerSecond())
	case types.IntervalYearMonth:
		return binary.BigEndian.AppendUint32(append(dst, tagMonths), uint32(v.I32[i]))
	case types.IntervalDaySecond:
		return binary.BigEndian.AppendUint64(append(dst, tagMillis), uint64(v.I64[i]))
	case types.Array:
		from, to := v.Offsets[i], v.Offsets[i+1]
		dst = binary.AppendUvarint(append(dst, tagArray), uint64(to-from))
		for j := from; j < to; j++ {
			dst = appendValue(dst, v.Children[0], int(j), exact)
		}
		return dst
	case types.Map:
		return appendMapValue(dst, v, i, exact)
	case types.Row:
		dst = binary.AppendUvarint(append(dst, tagRow), uint64(len(v.Children)))
		for _, c := range v.Children {
			dst = appendValue(dst, c, i, exact)
		}
		return dst
	}
	return append(dst, tagNull)
}

func appendBytesValue(dst []byte, tag byte, b []byte) []byte {
	dst = binary.AppendUvarint(append(dst, tag), uint64(len(b)))
	return append(dst, b...)
}

// canonical64 has one zero and one NaN.
func canonical64(f float64) uint64 {
	switch {
	case f == 0:
		return 0
	case f != f:
		return 0x7ff8000000000000
	}
	return math.Float64bits(f)
}

func canonical32(f float32) uint32 {
	switch {
	case f == 0:
		return 0
	case f != f:
		return 0x7fc00000
	}
	return math.Float32bits(f)
}

// appendDecimalValue strips trailing zeros of the fraction, so that 1.5 of
// DECIMAL(10,1) and 1.50 of DECIMAL(10,2) are equal.
func appendDecimalValue(dst []byte, d types.Decimal128, scale int) []byte {
	if x, ok := d.Int64(); ok {
		for scale > 0 && x%10 == 0 {
			x /= 10
			scale--
		}
		d = types.DecimalFromInt64(x)
	} else {
		ten := types.Decimal128{Lo: 10}
		for scale > 0 {
			q, r := d.QuoRem(ten)
			if r.Sign() != 0 {
				break
			}
			d = q
			scale--
		}
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(d.Hi))
	binary.BigEndian.PutUint64(b[8:], d.Lo)
	k := 0
	for k < 15 && (b[k] == 0 && b[k+1] < 0x80 || b[k] == 0xff && b[k+1] >= 0x80) {
		k++
	}
	dst = append(dst, tagDecimal, byte(scale), byte(16-k))
	return append(dst, b[k:]...)
}

func appendTimestampValue(dst []byte, x, units int64) []byte {
	sec := types.FloorDiv(x, units)
	nanos := (x - sec*units) * (1_000_000_000 / units)
	dst = binary.BigEndian.AppendUint64(dst, uint64(sec))
	return binary.BigEndian.AppendUint32(dst, uint32(nanos))
}

func appendMapValue(dst []byte, v *Vec, i int, exact bool) []byte {
	from, to := int(v.Offsets[i]), int(v.Offsets[i+1])
	dst = binary.AppendUvarint(append(dst, tagMap), uint64(to-from))
	if to-from == 1 {
		dst = appendValue(dst, v.Children[0], from, exact)
		return appendValue(dst, v.Children[1], from, exact)
	}
	type entry struct{ key, all []byte }
	entries := make([]entry, 0, to-from)
	for j := from; j < to; j++ {
		k := appendValue(nil, v.Children[0], j, exact)
		entries = append(entries, entry{key: k, all: appendValue(k[:len(k):len(k)], v.Children[1], j, exact)})
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	for _, e := range entries {
		dst = append(dst, e.all...)
	}
	return dst
}

// ValueEqual reports whether two rows hold the same value; NULL equals NULL.
func ValueEqual(a *Vec, i int, b *Vec, j int) bool {
	var x, y [64]byte
	return bytes.Equal(AppendValue(x[:0], a, i), AppendValue(y[:0], b, j))
}

// AppendKey appends the encoding of one row over several columns: the bytes
// that key hashes and grouping use.
func AppendKey(dst []byte, cols []*Vec, row int) []byte {
	for _, c := range cols {
		dst = AppendValue(dst, c, row)
	}
	return dst
}

// HashKey is the key hash of a row: xxh64 of AppendKey. buf is scratch that
// is returned grown.
func HashKey(buf []byte, cols []*Vec, row int) (uint64, []byte) {
	buf = AppendKey(buf[:0], cols, row)
	return xxhash.Sum64(buf), buf
}

// HashRows sets hashes[k] to the key hash of row sel[k] (nil: row k) over
// cols. hashes has the length of the selection.
func HashRows(hashes []uint64, cols []*Vec, sel Sel) {
	var buf []byte
	for k := range hashes {
		row := k
		if sel != nil {
			row = int(sel[k])
		}
		hashes[k], buf = HashKey(buf, cols, row)
	}
}

// RowHash is the order-free hash of rows: the sum modulo 2^64 of their key
// hashes over cols, which are the columns in declared order without partition
// columns.
func RowHash(cols []*Vec, rows int, sel Sel) uint64 {
	var sum, h uint64
	var buf []byte
	if sel == nil {
		for i := 0; i < rows; i++ {
			h, buf = HashKey(buf, cols, i)
			sum += h
		}
		return sum
	}
	for _, i := range sel {
		h, buf = HashKey(buf, cols, int(i))
		sum += h
	}
	return sum
}
