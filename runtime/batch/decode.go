package batch

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/millrace/millrace/runtime/types"
)

// ErrEncoding is returned for bytes that are no value of the wanted type.
var ErrEncoding = errors.New("not an encoded value of the type")

// DecodeValue reads one value, as AppendValue or AppendExact wrote it, into
// row i of v, a Flat Vec of the value's type; rows come ascending, PadOffsets
// after the last. It returns the bytes that follow.
func DecodeValue(v *Vec, i int, b []byte) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, ErrEncoding
	}
	tag, b := b[0], b[1:]
	if tag == tagNull {
		v.nullRow(i)
		return b, nil
	}
	if v.Valid != nil {
		v.Valid.Set(i)
	}
	if want := tagOf(v.Type.Kind); tag != want && !(want == tagFalse && tag == tagTrue) {
		return nil, ErrEncoding
	}
	switch tag {
	case tagFalse, tagTrue:
		v.Bools.Put(i, tag == tagTrue)
		return b, nil
	case tagInt, tagMillis:
		if len(b) < 8 {
			return nil, ErrEncoding
		}
		v.SetInt64(i, int64(binary.BigEndian.Uint64(b)))
		return b[8:], nil
	case tagDouble:
		if len(b) < 8 {
			return nil, ErrEncoding
		}
		v.F64[i] = math.Float64frombits(binary.BigEndian.Uint64(b))
		return b[8:], nil
	case tagFloat, tagDate, tagTime, tagMonths:
		if len(b) < 4 {
			return nil, ErrEncoding
		}
		x := binary.BigEndian.Uint32(b)
		if tag == tagFloat {
			v.F32[i] = math.Float32frombits(x)
		} else {
			v.I32[i] = int32(x)
		}
		return b[4:], nil
	case tagDecimal:
		return decodeDecimal(v, i, b)
	case tagString, tagBytes:
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return nil, ErrEncoding
		}
		v.PutBytes(i, b[k:k+int(n)])
		return b[k+int(n):], nil
	case tagTimestamp, tagInstant:
		if len(b) < 12 {
			return nil, ErrEncoding
		}
		units := v.Type.UnitsPerSecond()
		v.I64[i] = int64(binary.BigEndian.Uint64(b))*units + int64(binary.BigEndian.Uint32(b[8:]))/(1_000_000_000/units)
		return b[12:], nil
	}
	return decodeNested(v, i, b)
}

func tagOf(k types.Kind) byte {
	switch k {
	case types.Boolean, types.Null:
		return tagFalse
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		return tagInt
	case types.Float:
		return tagFloat
	case types.Double:
		return tagDouble
	case types.Decimal:
		return tagDecimal
	case types.Char, types.Varchar:
		return tagString
	case types.Binary, types.Varbinary:
		return tagBytes
	case types.Date:
		return tagDate
	case types.Time:
		return tagTime
	case types.Timestamp:
		return tagTimestamp
	case types.TimestampLTZ:
		return tagInstant
	case types.IntervalYearMonth:
		return tagMonths
	case types.IntervalDaySecond:
		return tagMillis
	case types.Array:
		return tagArray
	case types.Map:
		return tagMap
	}
	return tagRow
}

func decodeDecimal(v *Vec, i int, b []byte) ([]byte, error) {
	if len(b) < 2 || b[1] == 0 || b[1] > 16 || len(b) < 2+int(b[1]) || int(b[0]) > v.Type.Scale {
		return nil, ErrEncoding
	}
	scale, n := int(b[0]), int(b[1])
	var w [16]byte
	if b[2] >= 0x80 {
		for k := range w {
			w[k] = 0xff
		}
	}
	copy(w[16-n:], b[2:2+n])
	d := types.Decimal128{Hi: int64(binary.BigEndian.Uint64(w[:8])), Lo: binary.BigEndian.Uint64(w[8:])}
	d, ok := d.Rescale(scale, v.Type.Scale)
	if !ok || !d.FitsPrecision(v.Type.Precision) {
		return nil, ErrEncoding
	}
	v.SetDecimal(i, d)
	return b[2+n:], nil
}

func decodeNested(v *Vec, i int, b []byte) ([]byte, error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)) {
		return nil, ErrEncoding
	}
	b = b[k:]
	var err error
	if v.Type.Kind == types.Row {
		if n != uint64(len(v.Children)) {
			return nil, ErrEncoding
		}
		for _, c := range v.Children {
			if b, err = DecodeValue(c, i, b); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
	v.BeginList(i)
	for ; n > 0; n-- {
		for _, c := range v.Children {
			c.Grow(1)
			if b, err = DecodeValue(c, c.Len-1, b); err != nil {
				return nil, err
			}
		}
	}
	for _, c := range v.Children {
		c.PadOffsets()
	}
	v.EndList()
	return b, nil
}
