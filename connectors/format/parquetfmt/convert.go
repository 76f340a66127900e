package parquetfmt

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// converter appends non-NULL values to out, which is Flat and dense, in the
// layout of out.Type; values that have no image there are appended as zero and
// noted in errs by their position in out.
type converter func(out *batch.Vec, vals []parquet.Value, errs []batch.ValueError) []batch.ValueError

func dropValues(_ *batch.Vec, _ []parquet.Value, errs []batch.ValueError) []batch.ValueError {
	return errs
}

// converterFor says how a leaf of a file is read as type t.
func converterFor(n *fileNode, t types.Type) (converter, bool) {
	phys := n.elem.Type.V
	from := n.typ.Kind
	switch {
	case t.Kind == types.Boolean && from == types.Boolean:
		return convertBool, true
	case t.IsInteger() && (n.typ.IsInteger() || n.unsigned):
		return integers(t, intSource(n), n.unsigned && phys == format.Int64), true
	case t.Kind == types.Float && from == types.Float:
		return appendTo(func(v *batch.Vec) *[]float32 { return &v.F32 }, float32Of), true
	case t.Kind == types.Double && from == types.Float:
		return appendTo(func(v *batch.Vec) *[]float64 { return &v.F64 },
			func(v *parquet.Value) float64 { return float64(v.Float()) }), true
	case t.Kind == types.Double && from == types.Double:
		return appendTo(func(v *batch.Vec) *[]float64 { return &v.F64 },
			func(v *parquet.Value) float64 { return v.Double() }), true
	case t.Kind == types.Double && n.typ.IsInteger() && phys == format.Int32:
		src := intSource(n)
		return appendTo(func(v *batch.Vec) *[]float64 { return &v.F64 },
			func(v *parquet.Value) float64 { return float64(src(v)) }), true
	case t.Kind == types.Decimal && (from == types.Decimal || n.typ.IsInteger()):
		return decimals(n, t), true
	case t.IsString() && (phys == format.ByteArray || phys == format.FixedLenByteArray) && (n.typ.IsString() || n.typ.IsBinary()):
		return convertText, true
	case t.IsBinary() && (n.typ.IsString() || n.typ.IsBinary()):
		return convertBytes, true
	case t.Kind == types.Date && from == types.Date:
		return appendTo(func(v *batch.Vec) *[]int32 { return &v.I32 },
			func(v *parquet.Value) int32 { return v.Int32() }), true
	case t.Kind == types.Time && from == types.Time:
		return times(n), true
	case t.IsTimestamp() && n.typ.IsTimestamp():
		return timestamps(n, t), true
	}
	return nil, false
}

func float32Of(v *parquet.Value) float32 { return v.Float() }

// appendTo is a converter that cannot fail.
func appendTo[T any](dst func(*batch.Vec) *[]T, src func(*parquet.Value) T) converter {
	return func(out *batch.Vec, vals []parquet.Value, errs []batch.ValueError) []batch.ValueError {
		d := dst(out)
		for i := range vals {
			*d = append(*d, src(&vals[i]))
		}
		return errs
	}
}

func convertBool(out *batch.Vec, vals []parquet.Value, errs []batch.ValueError) []batch.ValueError {
	// Bits are appended at out.Len, which counts them.
	for i := range vals {
		if out.Len>>3 == len(out.Bools) {
			out.Bools = append(out.Bools, 0)
		}
		out.Bools.Put(out.Len, vals[i].Boolean())
		out.Len++
	}
	return errs
}

func intSource(n *fileNode) func(*parquet.Value) int64 {
	switch {
	case n.elem.Type.V == format.Int64:
		return func(v *parquet.Value) int64 { return v.Int64() }
	case n.unsigned:
		return func(v *parquet.Value) int64 { return int64(uint32(v.Int32())) }
	}
	return func(v *parquet.Value) int64 { return int64(v.Int32()) }
}

// checked notes values outside lo..hi.
func checked[T int8 | int16 | int32 | int64](dst func(*batch.Vec) *[]T, t types.Type, lo, hi int64, src func(*parquet.Value) int64, unsigned64 bool) converter {
	return func(out *batch.Vec, vals []parquet.Value, errs []batch.ValueError) []batch.ValueError {
		d := dst(out)
		for i := range vals {
			v := src(&vals[i])
			if v < lo || v > hi || unsigned64 && v < 0 {
				text := fmt.Sprint(v)
				if unsigned64 {
					text = fmt.Sprint(uint64(v))
				}
				errs = append(errs, batch.ValueError{Row: int32(len(*d)), Code: batch.CodeOverflow,
					Message: fmt.Sprintf("%s does not fit %s", text, t.WithNullable(true))})
				v = 0
			}
			*d = append(*d, T(v))
		}
		return errs
	}
}

func integers(t types.Type, src func(*parquet.Value) int64, unsigned64 bool) converter {
	switch t.Kind {
	case types.TinyInt:
		return checked(func(v *batch.Vec) *[]int8 { return &v.I8 }, t, math.MinInt8, math.MaxInt8, src, unsigned64)
	case types.SmallInt:
		return checked(func(v *batch.Vec) *[]int16 { return &v.I16 }, t, math.MinInt16, math.MaxInt16, src, unsigned64)
	case types.Int:
		return checked(func(v *batch.Vec) *[]int32 { return &v.I32 }, t, math.MinInt32, math.MaxInt32, src, unsigned64)
	}
	return checked(func(v *batch.Vec) *[]int64 { return &v.I64 }, t, math.MinInt64, math.MaxInt64, src, unsigned64)
}

func convertBytes(out *batch.Vec, vals []parquet.Value, errs []batch.ValueError) []batch.ValueError {
	for i := range vals {
		out.Data = append(out.Data, vals[i].ByteArray()...)
		out.Offsets = append(out.Offsets, int32(len(out.Data)))
	}
	return errs
}

func convertText(out *batch.Vec, vals []parquet.Value, errs []batch.ValueError) []batch.ValueError {
	for i := range vals {
		b := vals[i].ByteArray()
		if !utf8.Valid(b) {
			errs = append(errs, batch.ValueError{Row: int32(len(out.Offsets) - 1), Code: batch.CodeTypeMismatch,
				Message: fmt.Sprintf("%q is not valid UTF-8", b[:min(len(b), 64)])})
			b = nil
		}
		out.Data = append(out.Data, b...)
		out.Offsets = append(out.Offsets, int32(len(out.Data)))
	}
	return errs
}

func times(n *fileNode) converter {
	perMilli := n.unit / 1000
	src := intSource(n)
	return appendTo(func(v *batch.Vec) *[]int32 { return &v.I32 },
		func(v *parquet.Value) int32 { return int32(src(v) / perMilli) })
}

// floorDiv rounds toward minus infinity, so that times before 1970 keep their
// second, day and window.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// timestamps brings a file's unit to that of t. A finer fraction than t's
// precision is cut.
func timestamps(n *fileNode, t types.Type) converter {
	to := t.UnitsPerSecond()
	grain := int64(1) // units of t in one step of its precision
	for p := t.Precision; p < 6 || p > 6 && p < 9; p++ {
		grain *= 10
	}
	return func(out *batch.Vec, vals []parquet.Value, errs []batch.ValueError) []batch.ValueError {
		for i := range vals {
			v, ok := instant(n, &vals[i], to)
			if !ok {
				errs = append(errs, batch.ValueError{Row: int32(len(out.I64)), Code: batch.CodeTimestampRange,
					Message: fmt.Sprintf("a time in the file is outside what %s can hold", t.WithNullable(true))})
				v = 0
			}
			if grain > 1 {
				v = floorDiv(v, grain) * grain
			}
			out.I64 = append(out.I64, v)
		}
		return errs
	}
}

func instant(n *fileNode, v *parquet.Value, to int64) (int64, bool) {
	if n.elem.Type.V == format.Int96 {
		x := v.Int96()
		nanos := int64(uint64(x[0]) | uint64(x[1])<<32)
		day := int64(int32(x[2])) - julianUnixDay
		rest := floorDiv(nanos, nanosPerSecond/to)
		perDay := to * secondsPerDay
		if day < 0 {
			// Count from the day's end, so that the product stays in range
			// wherever the sum does.
			day, rest = day+1, rest-perDay
		}
		if day > math.MaxInt64/perDay || day < math.MinInt64/perDay {
			return 0, false
		}
		sum := day*perDay + rest
		return sum, (rest >= 0) == (sum >= day*perDay)
	}
	x := v.Int64()
	if n.unit >= to {
		return floorDiv(x, n.unit/to), true
	}
	f := to / n.unit
	if x > math.MaxInt64/f || x < math.MinInt64/f {
		return 0, false
	}
	return x * f, true
}

// decimals reads any DECIMAL or integer as DECIMAL(p, s): exactly, or as an
// error value.
func decimals(n *fileNode, t types.Type) converter {
	scale := 0
	if n.typ.Kind == types.Decimal {
		scale = n.typ.Scale
	}
	if n.unsigned {
		scale = 0
	}
	up := t.Scale - scale
	// The common case needs no big numbers: same scale, and the declared
	// precision covers the file's.
	direct := up == 0 && n.typ.Kind == types.Decimal && n.typ.Precision <= t.Precision
	factor := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(up, -up))), nil)
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Precision)), nil)
	narrow := t.Physical() == types.PhysInt64
	return func(out *batch.Vec, vals []parquet.Value, errs []batch.ValueError) []batch.ValueError {
		for i := range vals {
			row := len(out.I64)
			if !narrow {
				row = len(out.D128)
			}
			d, ok := unscaled(n, &vals[i])
			if ok && !direct {
				d, ok = rescale(d, up, factor, limit)
			}
			if !ok {
				errs = append(errs, batch.ValueError{Row: int32(row), Code: batch.CodeOverflow,
					Message: fmt.Sprintf("a decimal in the file does not fit %s", t.WithNullable(true))})
				d = types.Decimal128{}
			}
			if narrow {
				out.I64 = append(out.I64, int64(d.Lo))
			} else {
				out.D128 = append(out.D128, d)
			}
		}
		return errs
	}
}

// unscaled reads the integer behind a decimal; false when it needs more than
// 128 bits.
func unscaled(n *fileNode, v *parquet.Value) (types.Decimal128, bool) {
	switch n.elem.Type.V {
	case format.Int32:
		x := int64(v.Int32())
		if n.unsigned {
			x = int64(uint32(v.Int32()))
		}
		return types.Decimal128{Lo: uint64(x), Hi: x >> 63}, true
	case format.Int64:
		x := v.Int64()
		if n.unsigned {
			return types.Decimal128{Lo: uint64(x)}, true
		}
		return types.Decimal128{Lo: uint64(x), Hi: x >> 63}, true
	}
	b := v.ByteArray()
	if len(b) == 0 {
		return types.Decimal128{}, true
	}
	sign := byte(int8(b[0]) >> 7)
	for len(b) > 16 {
		if b[0] != sign || b[1]>>7 != sign>>7 {
			return types.Decimal128{}, false
		}
		b = b[1:]
	}
	var full [16]byte
	for i := range full[:16-len(b)] {
		full[i] = sign
	}
	copy(full[16-len(b):], b)
	return types.Decimal128{Hi: int64(binary.BigEndian.Uint64(full[:8])), Lo: binary.BigEndian.Uint64(full[8:])}, true
}

// rescale multiplies or divides by a power of ten, exactly.
func rescale(d types.Decimal128, up int, factor, limit *big.Int) (types.Decimal128, bool) {
	x := new(big.Int).SetInt64(d.Hi)
	x.Lsh(x, 64)
	x.Or(x, new(big.Int).SetUint64(d.Lo))
	switch {
	case up > 0:
		x.Mul(x, factor)
	case up < 0:
		rest := new(big.Int)
		x.QuoRem(x, factor, rest)
		if rest.Sign() != 0 {
			return types.Decimal128{}, false
		}
	}
	if x.CmpAbs(limit) >= 0 {
		return types.Decimal128{}, false
	}
	lo := new(big.Int).And(x, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	return types.Decimal128{Lo: lo, Hi: x.Rsh(x, 64).Int64()}, true
}
