package fn

import (
	"errors"
	"strconv"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// fromString parses; numbers and booleans may have blanks around them.
func (c *caster) fromString() Kernel {
	switch {
	case c.to.Kind == types.Boolean:
		return c.parseBool
	case c.to.IsInteger():
		return c.parseInt
	case c.to.Kind == types.Float, c.to.Kind == types.Double:
		return c.parseFloat
	case c.to.Kind == types.Decimal:
		return c.parseDecimal
	case c.to.IsBinary():
		return c.binary
	case isTemporal(c.to):
		return c.parseTemporal
	}
	return nil
}

// trim cuts the blanks that CAST allows around a value.
func trim(b []byte) []byte {
	for len(b) > 0 && blank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && blank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func (c *caster) parseBool(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		v, ok := parseBool(trim(text(args[0], i)))
		if !ok {
			c.bad(ctx, args[0], i, out, batch.CodeCast)
			continue
		}
		out.Bools.Put(int(i), v)
	}
}

// parseBool takes the words that Flink's CAST takes, in any case.
func parseBool(b []byte) (v, ok bool) {
	if len(b) > 5 {
		return false, false
	}
	var buf [5]byte
	for i, x := range b {
		if x >= 'A' && x <= 'Z' {
			x += 'a' - 'A'
		}
		buf[i] = x
	}
	switch string(buf[:len(b)]) {
	case "true", "t", "yes", "y", "1":
		return true, true
	case "false", "f", "no", "n", "0":
		return false, true
	}
	return false, false
}

func (c *caster) parseInt(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	lo, hi := intRange(c.to.Kind)
	for _, i := range sel {
		x, err := parseInt(trim(text(args[0], i)))
		switch {
		case err == types.ErrSyntax:
			c.bad(ctx, args[0], i, out, batch.CodeCast)
		case err != nil || x < lo || x > hi:
			c.bad(ctx, args[0], i, out, batch.CodeOverflow)
		default:
			out.SetInt64(int(i), x)
		}
	}
}

// parseInt reads [+-]digits[.digits]; as in Flink the fraction is dropped.
func parseInt(b []byte) (int64, error) {
	i, neg := 0, false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		neg = b[i] == '-'
		i++
	}
	var x uint64
	digits, over := 0, false
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if x > (1<<63)/10 {
			over = true
		} else {
			x = x*10 + uint64(b[i]-'0')
			over = over || x > 1<<63
		}
		digits++
	}
	if digits > 0 && i < len(b) && b[i] == '.' {
		for i++; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		}
	}
	if digits == 0 || i < len(b) {
		return 0, types.ErrSyntax
	}
	if over || !neg && x > 1<<63-1 {
		return 0, types.ErrRange
	}
	if neg {
		return int64(-x), nil
	}
	return int64(x), nil
}

func (c *caster) parseFloat(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	bits := 64
	if c.to.Kind == types.Float {
		bits = 32
	}
	for _, i := range sel {
		f, err := types.ParseFloat(string(trim(text(args[0], i))), bits)
		switch {
		case err == types.ErrRange:
			c.bad(ctx, args[0], i, out, batch.CodeOverflow)
		case err != nil:
			c.bad(ctx, args[0], i, out, batch.CodeCast)
		default:
			out.SetFloat64(int(i), f)
		}
	}
}

func (c *caster) parseDecimal(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		d, _, err := types.ParseDecimal(trim(text(args[0], i)), c.to.Precision, c.to.Scale)
		switch {
		case err == types.ErrRange:
			c.bad(ctx, args[0], i, out, batch.CodeOverflow)
		case err != nil:
			c.bad(ctx, args[0], i, out, batch.CodeCast)
		default:
			out.SetDecimal(int(i), d)
		}
	}
}

func (c *caster) parseTemporal(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		b := trim(text(args[0], i))
		var x int64
		var err error
		switch c.to.Kind {
		case types.Date:
			var d int32
			d, err = types.ParseDate(b)
			x = int64(d)
		case types.Time:
			var ms int32
			ms, err = types.ParseTime(b, c.to.Precision)
			x = int64(ms)
		default:
			var f types.Civil
			if f, err = types.ParseTimestamp(b); err == nil {
				x, err = f.Timestamp(c.to)
			}
			if c.to.Kind == types.TimestampLTZ && err == nil {
				x = ctx.Zone.ToInstant(x, c.to.UnitsPerSecond())
			}
		}
		switch {
		case errors.Is(err, types.ErrTimeRange):
			c.bad(ctx, args[0], i, out, batch.CodeTimestampRange)
		case err != nil:
			c.bad(ctx, args[0], i, out, batch.CodeCast)
		default:
			out.SetInt64(int(i), x)
		}
	}
}

// temporal converts between dates, times and timestamps.
func (c *caster) temporal() Kernel {
	f, t := c.from, c.to
	if f.Kind == types.Time && t.Kind == types.Date || f.Kind == types.Date && t.Kind == types.Time {
		return nil
	}
	return func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		a := args[0]
		for _, i := range sel {
			x, err := c.convert(ctx, a.Int64(int(i)))
			if err != nil {
				c.bad(ctx, a, i, out, batch.CodeTimestampRange)
				continue
			}
			out.SetInt64(int(i), x)
		}
	}
}

// convert goes by way of the wall clock, except between two LTZ.
func (c *caster) convert(ctx *Context, x int64) (int64, error) {
	f, t := c.from, c.to
	switch {
	case f.Kind == t.Kind && f.IsTimestamp():
		return types.ConvertTimestamp(x, f, t)
	case f.Kind == types.Time && t.Kind == types.Time:
		p := types.Pow10Int64(3 - min(t.Precision, 3))
		return x / p * p, nil
	case f.Kind == types.TimestampLTZ:
		x = ctx.Zone.ToLocal(x, f.UnitsPerSecond())
	}
	var err error
	switch {
	case t.Kind == types.Date:
		return types.FloorDiv(types.FloorDiv(x, f.UnitsPerSecond()), types.SecondsPerDay), nil
	case t.Kind == types.Time:
		ms := types.FloorDiv(x, f.UnitsPerSecond()/1000)
		p := types.Pow10Int64(3 - min(t.Precision, 3))
		return types.FloorMod(ms, types.MillisPerDay) / p * p, nil
	case f.Kind == types.Date:
		x, err = types.TimestampOf(x*types.SecondsPerDay, 0, t)
	case f.Kind == types.Time:
		x, err = types.TimestampOf(x/1000, x%1000*1_000_000, t)
	default:
		x, err = types.ConvertTimestamp(x, f, t)
	}
	if err == nil && t.Kind == types.TimestampLTZ {
		x = ctx.Zone.ToInstant(x, t.UnitsPerSecond())
	}
	return x, err
}

// quote shows a text value in a message.
func quote[T string | []byte](s T) string { return strconv.Quote(Cut(s)) }
