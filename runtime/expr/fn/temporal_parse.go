package fn

import (
	"bytes"
	"math"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// parseClock reads yyyy-M-d H:m:s with a fraction that may be left out; unlike
// in a cast, a time must be there, and its seconds.
func parseClock(s []byte) (types.Civil, error) {
	c, err := types.ParseTimestamp(s)
	if err == nil && bytes.Count(s, []byte(":")) < 2 {
		err = types.ErrTimeSyntax
	}
	return c, err
}

// timeText reads argument 0 as a time: by the pattern in argument 1 or, where there is
// none, by bare.
type timeText struct {
	pattern     *types.TimePattern // nil if it is known only row by row
	withPattern bool
	lenient     bool
	bare        func([]byte) (types.Civil, error)
}

func newTimeText(args []Arg, lenient bool, bare func([]byte) (types.Civil, error)) (timeText, error) {
	p, err := patternFor(args, 1, sqlPattern)
	return timeText{pattern: p, withPattern: len(args) > 1, lenient: lenient, bare: bare}, err
}

// read gives the time of a row; on failure the row is NULL already (or an error for a
// bad pattern).
func (t *timeText) read(ctx *Context, ps *patterns, args []*batch.Vec, i int32, out *batch.Vec) (types.Civil, bool) {
	var c types.Civil
	var err error
	if t.withPattern {
		p := ps.row(ctx, args[1], i, out)
		if p == nil {
			return c, false
		}
		c, err = p.Parse(string(text(args[0], i)), t.lenient)
	} else {
		c, err = t.bare(text(args[0], i))
	}
	if err != nil {
		parseNull(ctx, out, i)
		return c, false
	}
	return c, true
}

// parseNull makes a row NULL whose text is no time, and counts it.
func parseNull(ctx *Context, out *batch.Vec, i int32) {
	ctx.ParseNulls++
	out.NullRow(int(i))
}

// bindParse is TO_DATE and TO_TIMESTAMP: text that is none gives NULL.
func bindParse(name string, ret types.Type, lenient bool) func([]Arg) (Bound, error) {
	return func(args []Arg) (Bound, error) {
		b, err := bindFixed(name, args, ret, 1, nil, []param{pString, pString})
		if err != nil {
			return b, err
		}
		t, err := newTimeText(args, lenient, types.ParseTimestamp)
		if err != nil {
			return b, err
		}
		b.Kernel = func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
			ps := patternsOf(ctx, t.pattern)
			for _, i := range sel {
				c, ok := t.read(ctx, ps, args, i, out)
				if !ok {
					continue
				}
				if ret.Kind == types.Date {
					out.I32[i] = int32(types.DaysFromCivil(c.Year, c.Month, c.Day))
				} else if x, err := c.Timestamp(ret); err == nil {
					out.I64[i] = x
				} else {
					parseNull(ctx, out, i)
				}
			}
		}
		return b, nil
	}
}

func bindToLTZ(args []Arg) (Bound, error) {
	const name = "TO_TIMESTAMP_LTZ"
	if err := count(name, args, 1, 3); err != nil {
		return Bound{}, err
	}
	ret := types.NewTimestampLTZ(3)
	if args[0].Type.IsString() {
		return bindTextToLTZ(args, ret)
	}
	if err := want(name, args, 0, "a number or a string", isNumeric); err != nil {
		return Bound{}, err
	}
	precision := int64(3)
	params := []types.Type{numericParam(args[0].Type)}
	if len(args) > 1 {
		n, ok := args[1].Int()
		if null := args[1].Const != nil && args[1].Const.IsNull(0) && (isInteger(args[1].Type) || args[1].Type.Kind == types.Null); null && len(args) == 2 {
			// Of no precision there is no value; the kernel sees no row.
			return Bound{Params: append(params, tInt), Return: ret, Kernel: func(*Context, []*batch.Vec, batch.Sel, *batch.Vec) {}}, nil
		}
		if !ok || n < 0 || n > 9 || len(args) > 2 {
			return Bound{}, argErrf(1, "the precision of %s must be a constant from 0 (seconds) to 9 (nanoseconds)", name)
		}
		precision = n
		params = append(params, args[1].Type)
	}
	ret = types.NewTimestampLTZ(max(3, int(precision)))
	perUnit := ret.UnitsPerSecond()
	for range precision {
		perUnit /= 10
	}
	t := params[0]
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			x, ok := epochUnits(args[0], i, t, perUnit)
			if !ok {
				ctx.Fail(out, i, batch.CodeTimestampRange, "%s is out of range of %s", args[0].Text(int(i)), ret)
				continue
			}
			out.I64[i] = types.TruncateFraction(x, ret.Precision, ret.UnitsPerSecond())
		}
	}
	return Bound{Params: params, Return: ret.WithNullable(anyNullable(args[:1])), Kernel: k}, nil
}

func numericParam(t types.Type) types.Type {
	switch {
	case t.IsInteger() || t.Kind == types.Null:
		return tBigInt
	case t.Kind == types.Float:
		return tDouble
	}
	return t
}

// epochUnits scales a number since 1970 by perUnit.
func epochUnits(a *batch.Vec, i int32, t types.Type, perUnit int64) (int64, bool) {
	switch t.Kind {
	case types.Double:
		f := math.Floor(a.Float64(int(i)) * float64(perUnit))
		return int64(f), f > -math.MaxInt64 && f < math.MaxInt64
	case types.Decimal:
		d, ok := a.Decimal(int(i)).Mul(types.DecimalFromInt64(perUnit))
		if !ok {
			return 0, false
		}
		return d.Truncate(t.Scale, 0).Int64()
	}
	return mulInt(a.Int64(int(i)), perUnit)
}

func bindTextToLTZ(args []Arg, ret types.Type) (Bound, error) {
	b, err := bindFixed("TO_TIMESTAMP_LTZ", args, ret, 2, nil, []param{pString, pString, pString})
	if err != nil {
		return b, err
	}
	t, err := newTimeText(args, false, types.ParseTimestamp)
	if err != nil {
		return b, err
	}
	if len(args) > 2 {
		if z, ok := args[2].Text(); ok {
			if _, err := types.LoadZone(z); err != nil {
				return b, argErrf(2, "%s", err)
			}
		}
	}
	b.Kernel = func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		ps := patternsOf(ctx, t.pattern)
		zones := zoneCache{}
		for _, i := range sel {
			zone := "UTC"
			if len(args) > 2 {
				zone = string(text(args[2], i))
			}
			z := zones.of(zone)
			if z == nil {
				ctx.Fail(out, i, batch.CodeArgument, "unknown time zone %s", quote(zone))
				continue
			}
			c, ok := t.read(ctx, ps, args, i, out)
			if !ok {
				continue
			}
			x, err := c.Timestamp(ret)
			if err != nil {
				parseNull(ctx, out, i)
				continue
			}
			out.I64[i] = z.ToInstant(x, 1_000_000)
		}
	}
	return b, nil
}
