package fn

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// ImplicitlyCasts reports whether SQL converts from one type to another
// without being asked: widening only. A bare NULL goes anywhere; TIMESTAMP
// and TIMESTAMP_LTZ convert by the session zone.
func ImplicitlyCasts(from, to types.Type) bool {
	if from.Kind == types.Null || from.EqualIgnoringNull(to) {
		return true
	}
	switch {
	case from.IsInteger() && to.IsInteger():
		return from.Kind < to.Kind
	case from.IsInteger() && to.Kind == types.Decimal:
		d, _ := types.AsDecimal(from)
		return to.Precision-to.Scale >= d.Precision
	case from.IsNumeric() && to.Kind == types.Double:
		return true
	case from.IsInteger() && to.Kind == types.Float:
		return true
	case from.Kind == types.Decimal && to.Kind == types.Decimal:
		// A scale that shrinks comes from the result rules for 38 digits.
		return to.Precision-to.Scale >= from.Precision-from.Scale || to.Precision == types.MaxPrecision
	case from.IsString() && to.IsString():
		return to.Length >= from.Length
	case from.IsBinary() && to.IsBinary():
		return to.Length >= from.Length
	case from.IsTimestamp() && to.IsTimestamp():
		return to.Precision >= from.Precision
	case from.Kind == types.Date && to.IsTimestamp():
		return true
	case from.Kind == types.Time && to.Kind == types.Time:
		return to.Precision >= from.Precision
	case from.Kind == types.Array && to.Kind == types.Array:
		return ImplicitlyCasts(*from.Elem, *to.Elem)
	case from.Kind == types.Map && to.Kind == types.Map:
		return ImplicitlyCasts(*from.Key, *to.Key) && ImplicitlyCasts(*from.Elem, *to.Elem)
	case from.Kind == types.Row && to.Kind == types.Row && len(from.Fields) == len(to.Fields):
		for i := range from.Fields {
			if !ImplicitlyCasts(from.Fields[i].Type, to.Fields[i].Type) {
				return false
			}
		}
		return true
	}
	return false
}

// Relabels reports whether every value of from is, bit for bit, a value of to,
// so that a cast has nothing to compute.
func Relabels(from, to types.Type) bool {
	switch {
	case from.IsString() && to.IsString(), from.Kind == to.Kind && to.Kind == types.Varbinary:
		return to.Length >= from.Length
	case from.Kind != to.Kind:
		return false
	case to.IsTimestamp():
		return to.Precision >= from.Precision && to.UnitsPerSecond() == from.UnitsPerSecond()
	case to.Kind == types.Time:
		return to.Precision >= from.Precision
	case to.Kind == types.Decimal:
		return to.Scale == from.Scale && to.Precision >= from.Precision && to.Physical() == from.Physical()
	}
	return false
}

// caster is one cast between two types.
type caster struct {
	from, to types.Type
	try      bool
}

// CastKernel is the kernel of CAST(from AS to), or of TRY_CAST; an error where
// SQL has no such cast. It is NULL-strict.
func CastKernel(from, to types.Type, try bool) (Kernel, error) {
	c := &caster{from: from, to: to, try: try}
	if k := c.kernel(); k != nil {
		return k, nil
	}
	if from.IsNumeric() && to.IsTimestamp() {
		return nil, fmt.Errorf("%s is not cast to %s; use TO_TIMESTAMP_LTZ(n, 0) for seconds or (n, 3) for milliseconds",
			from.WithNullable(true), to.WithNullable(true))
	}
	if from.IsTimestamp() && to.IsNumeric() {
		return nil, fmt.Errorf("%s is not cast to %s; use UNIX_TIMESTAMP", from.WithNullable(true), to.WithNullable(true))
	}
	return nil, fmt.Errorf("%s is not cast to %s", from.WithNullable(true), to.WithNullable(true))
}

func (c *caster) kernel() Kernel {
	f, t := c.from, c.to
	switch {
	case f.Kind == types.Null:
		return c.allNull
	case t.IsString():
		return c.toString
	case f.IsString():
		return c.fromString()
	case f.IsNumeric() && t.IsNumeric():
		return c.numeric()
	case f.Kind == types.Boolean && t.IsNumeric():
		return c.fromBool
	case f.IsNumeric() && t.Kind == types.Boolean:
		return c.toBool
	case f.IsBinary() && t.IsBinary():
		return c.binary
	case isTemporal(f) && isTemporal(t):
		return c.temporal()
	case f.Kind == t.Kind && f.IsNested():
		return c.nested()
	case f.Kind == t.Kind:
		return c.copy
	}
	return nil
}

// bad gives a row that cannot be cast its error, or NULL with TRY_CAST.
func (c *caster) bad(ctx *Context, a *batch.Vec, i int32, out *batch.Vec, code batch.Code) {
	if c.try {
		out.NullRow(int(i))
		ctx.ParseNulls++
		return
	}
	v := Cut(a.Text(int(i)))
	if a.Type.IsString() {
		v = `"` + v + `"`
	}
	to := c.to.WithNullable(true)
	switch code {
	case batch.CodeCast:
		ctx.Fail(out, i, code, "%s is not %s", v, to)
	default:
		ctx.Fail(out, i, code, "%s is out of range of %s", v, to)
	}
}

func (c *caster) allNull(_ *Context, _ []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		out.NullRow(int(i))
	}
}

func (c *caster) copy(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		out.Put(int(i), args[0], int(i))
	}
}

// cutRunes is the prefix of at most n code points.
func cutRunes(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	k := 0
	for ; n > 0 && k < len(b); n-- {
		_, w := utf8.DecodeRune(b[k:])
		k += w
	}
	return b[:k]
}

func (c *caster) toString(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	a := args[0]
	isText, isBytes := c.from.IsString(), c.from.IsBinary()
	for _, i := range sel {
		switch {
		case isText:
			out.PutBytes(int(i), cutRunes(text(a, i), c.to.Length))
		case isBytes:
			b := text(a, i)
			if !utf8.Valid(b) {
				c.bad(ctx, a, i, out, batch.CodeCast)
				continue
			}
			out.PutBytes(int(i), cutRunes(b, c.to.Length))
		default:
			out.BeginBytes(int(i))
			n := len(out.Data)
			out.Data = batch.AppendText(out.Data, a, int(i), ctx.Zone)
			// The text of a value has ASCII only, but for nested strings.
			if len(out.Data)-n > c.to.Length {
				out.Data = out.Data[:n+len(cutRunes(out.Data[n:], c.to.Length))]
			}
			out.EndBytes()
		}
	}
}

func (c *caster) binary(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		c.putBinary(out, i, text(args[0], i))
	}
}

// putBinary cuts to the length; BINARY(n) is filled up with zero bytes.
func (c *caster) putBinary(out *batch.Vec, i int32, b []byte) {
	out.BeginBytes(int(i))
	if len(b) > c.to.Length {
		b = b[:c.to.Length]
	}
	out.Data = append(out.Data, b...)
	if c.to.Kind == types.Binary {
		for n := len(b); n < c.to.Length; n++ {
			out.Data = append(out.Data, 0)
		}
	}
	out.EndBytes()
}

func (c *caster) fromBool(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	a := args[0]
	one := types.Decimal128{Lo: 1}
	if c.to.Kind == types.Decimal {
		one = types.Pow10(c.to.Scale)
	}
	for _, i := range sel {
		b := a.Bool(int(i))
		switch {
		case c.to.Kind == types.Decimal && b:
			out.SetDecimal(int(i), one)
		case c.to.Kind == types.Decimal:
			out.SetDecimal(int(i), types.Decimal128{})
		case c.to.Kind == types.Float || c.to.Kind == types.Double:
			out.SetFloat64(int(i), float64(b2i(b)))
		default:
			out.SetInt64(int(i), b2i(b))
		}
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (c *caster) toBool(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	a := args[0]
	for _, i := range sel {
		var t bool
		switch c.from.Kind {
		case types.Decimal:
			t = a.Decimal(int(i)).Sign() != 0
		case types.Float, types.Double:
			t = a.Float64(int(i)) != 0
		default:
			t = a.Int64(int(i)) != 0
		}
		out.Bools.Put(int(i), t)
	}
}

// intRange is the range of an integer type.
func intRange(k types.Kind) (lo, hi int64) {
	switch k {
	case types.TinyInt:
		return math.MinInt8, math.MaxInt8
	case types.SmallInt:
		return math.MinInt16, math.MaxInt16
	case types.Int:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

func (c *caster) numeric() Kernel {
	f, t := c.from, c.to
	isInt := t.IsInteger()
	isApprox := t.Kind == types.Float || t.Kind == types.Double
	switch {
	case f.IsInteger() && isInt:
		return c.intToInt
	case f.IsInteger() && isApprox:
		return c.intToFloat
	case f.IsInteger():
		return c.intToDecimal
	case f.Kind == types.Decimal && isInt:
		return c.decimalToInt
	case f.Kind == types.Decimal && isApprox:
		return c.decimalToFloat
	case f.Kind == types.Decimal:
		return c.decimalToDecimal
	case isInt:
		return c.floatToInt
	case isApprox:
		return c.floatToFloat
	}
	return c.floatToDecimal
}

func (c *caster) intToInt(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	a := args[0]
	lo, hi := intRange(c.to.Kind)
	if c.from.Kind == types.Int && c.to.Kind == types.BigInt {
		src, m := a.I32, mask(a)
		for _, i := range sel {
			out.I64[i] = int64(src[i&m])
		}
		return
	}
	for _, i := range sel {
		x := a.Int64(int(i))
		if x < lo || x > hi {
			c.bad(ctx, a, i, out, batch.CodeOverflow)
			continue
		}
		out.SetInt64(int(i), x)
	}
}

func (c *caster) intToFloat(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		x := args[0].Int64(int(i))
		if c.to.Kind == types.Float {
			// Directly: by way of a double it would be rounded twice.
			out.F32[i] = float32(x)
		} else {
			out.F64[i] = float64(x)
		}
	}
}

func (c *caster) intToDecimal(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	p := types.Pow10(c.to.Scale)
	for _, i := range sel {
		d, ok := types.DecimalFromInt64(args[0].Int64(int(i))).Mul(p)
		if !ok || !d.FitsPrecision(c.to.Precision) {
			c.bad(ctx, args[0], i, out, batch.CodeOverflow)
			continue
		}
		out.SetDecimal(int(i), d)
	}
}

func (c *caster) decimalToInt(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	lo, hi := intRange(c.to.Kind)
	for _, i := range sel {
		// As Java: the fraction is dropped.
		x, ok := args[0].Decimal(int(i)).Truncate(c.from.Scale, 0).Int64()
		if !ok || x < lo || x > hi {
			c.bad(ctx, args[0], i, out, batch.CodeOverflow)
			continue
		}
		out.SetInt64(int(i), x)
	}
}

func (c *caster) decimalToFloat(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		out.SetFloat64(int(i), args[0].Decimal(int(i)).Float64(c.from.Scale))
	}
}

func (c *caster) decimalToDecimal(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		d, ok := args[0].Decimal(int(i)).Rescale(c.from.Scale, c.to.Scale)
		if !ok || !d.FitsPrecision(c.to.Precision) {
			c.bad(ctx, args[0], i, out, batch.CodeOverflow)
			continue
		}
		out.SetDecimal(int(i), d)
	}
}

func (c *caster) floatToInt(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	lo, hi := intRange(c.to.Kind)
	for _, i := range sel {
		f := math.Trunc(args[0].Float64(int(i)))
		// -lo is a power of two, so both bounds are exact doubles.
		if !(f >= float64(lo) && f < -float64(lo)) || int64(f) > hi {
			c.bad(ctx, args[0], i, out, batch.CodeOverflow)
			continue
		}
		out.SetInt64(int(i), int64(f))
	}
}

func (c *caster) floatToFloat(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		f := args[0].Float64(int(i))
		if c.to.Kind == types.Float && math.IsInf(float64(float32(f)), 0) && !math.IsInf(f, 0) {
			c.bad(ctx, args[0], i, out, batch.CodeOverflow)
			continue
		}
		out.SetFloat64(int(i), f)
	}
}

func (c *caster) floatToDecimal(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	bits := 64
	if c.from.Kind == types.Float {
		bits = 32
	}
	for _, i := range sel {
		d, ok := types.DecimalFromFloat(args[0].Float64(int(i)), bits, c.to.Precision, c.to.Scale)
		if !ok {
			c.bad(ctx, args[0], i, out, batch.CodeOverflow)
			continue
		}
		out.SetDecimal(int(i), d)
	}
}

// nested casts the children. A child that fails is an error of its element;
// with TRY_CAST it is NULL there.
func (c *caster) nested() Kernel {
	f, t := c.from, c.to
	var kids []Kernel
	add := func(from, to types.Type) bool {
		if from.EqualIgnoringNull(to) {
			kids = append(kids, nil)
			return true
		}
		k, err := CastKernel(from, to, c.try)
		kids = append(kids, k)
		return err == nil
	}
	switch f.Kind {
	case types.Array:
		if !add(*f.Elem, *t.Elem) {
			return nil
		}
	case types.Map:
		if !add(*f.Key, *t.Key) || !add(*f.Elem, *t.Elem) {
			return nil
		}
	case types.Row:
		if len(f.Fields) != len(t.Fields) {
			return nil
		}
		for i := range f.Fields {
			if !add(f.Fields[i].Type, t.Fields[i].Type) {
				return nil
			}
		}
	}
	return func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		// The rows as they are, then each child converted whole.
		var rows batch.Vec
		rows.Reset(f, out.Len)
		for _, i := range sel {
			rows.Put(int(i), args[0], int(i))
		}
		rows.PadOffsets()
		for k, kernel := range kids {
			child := rows.Children[k]
			dst := out.Children[k]
			if kernel == nil {
				*dst = *child
				dst.Type = childType(t, k)
				continue
			}
			castChild(ctx, kernel, child, dst, childType(t, k), sel, f.Kind == types.Row)
		}
		out.Offsets, out.Valid = rows.Offsets, rows.Valid
	}
}

func childType(t types.Type, k int) types.Type {
	switch {
	case t.Kind == types.Row:
		return t.Fields[k].Type
	case t.Kind == types.Map && k == 0:
		return *t.Key
	}
	return *t.Elem
}

func castChild(ctx *Context, k Kernel, src, dst *batch.Vec, t types.Type, rows batch.Sel, isRow bool) {
	dst.Reset(t, src.Len)
	all := rows
	if !isRow {
		all = make(batch.Sel, src.Len)
		for i := range all {
			all[i] = int32(i)
		}
	}
	var good, bad batch.Sel
	for _, i := range all {
		if src.IsNull(int(i)) {
			bad = append(bad, i)
		} else {
			good = append(good, i)
		}
	}
	if len(good) > 0 {
		k(ctx, []*batch.Vec{src}, good, dst)
	}
	dst.PadOffsets()
	for _, i := range bad {
		dst.NullRow(int(i))
		if e := src.Err(int(i)); e != nil {
			c := *e
			c.Row = i
			dst.Errs = append(dst.Errs, c)
		}
	}
	slices.SortFunc(dst.Errs, func(a, b batch.ValueError) int { return int(a.Row - b.Row) })
}
