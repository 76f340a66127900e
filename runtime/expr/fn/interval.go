package fn

import (
	"math"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// bindInterval types date, time or timestamp plus or minus an interval, and
// sums of intervals.
func bindInterval(op byte, args []Arg) (Bound, bool) {
	a, b := args[0].Type, args[1].Type
	iv := func(t types.Type) bool {
		return t.Kind == types.IntervalDaySecond || t.Kind == types.IntervalYearMonth
	}
	swap := op == '+' && iv(a) && isTemporal(b)
	if swap {
		a, b = b, a
	}
	params := []types.Type{args[0].Type, args[1].Type}
	ret := a.WithNullable(anyNullable(args))
	switch {
	case (op == '+' || op == '-') && isTemporal(a) && iv(b):
		return Bound{Params: params, Return: ret, Kernel: addInterval(a, b, op == '-', swap)}, true
	case (op == '+' || op == '-') && iv(a) && a.Kind == b.Kind:
		if a.Kind == types.IntervalYearMonth {
			return Bound{Params: params, Return: ret, Kernel: intArith[int32](op)}, true
		}
		return Bound{Params: params, Return: ret, Kernel: intArith[int64](op)}, true
	case op == '*' && iv(a) && b.Kind == types.Null, op == '*' && a.Kind == types.Null && iv(b):
		// NULL is an integer here.
		at := 1
		if iv(b) {
			at, ret = 0, b.WithNullable(true)
		}
		params[at] = tInt
		return Bound{Params: params, Return: ret.WithNullable(true), Kernel: scaleInterval}, true
	case op == '*' && iv(a) && isInteger(b), op == '*' && isInteger(a) && iv(b):
		if iv(b) {
			ret = b.WithNullable(ret.Nullable)
		}
		return Bound{Params: params, Return: ret, Kernel: scaleInterval}, true
	}
	return Bound{}, false
}

// notOfIntervals says what * and / do with intervals; nil where there are none.
func notOfIntervals(op byte, args []Arg) error {
	for i := range args {
		if k := args[i].Type.Kind; k != types.IntervalDaySecond && k != types.IntervalYearMonth {
			continue
		}
		switch op {
		case '*':
			return argErrf(1-i, "an interval is multiplied by an integer, not by %s", args[1-i].Type.WithNullable(true))
		case '/':
			return argErrf(i, "an interval is not divided, and divides nothing; write a shorter one, such as INTERVAL '6' HOUR")
		}
	}
	return nil
}

// scaleInterval multiplies an interval, which is either argument, by an integer.
func scaleInterval(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	lo, hi := intRange(physicalInt(out.Type))
	for _, i := range sel {
		x, y := args[0].Int64(int(i)), args[1].Int64(int(i))
		z, ok := mulInt(x, y)
		if !ok || z < lo || z > hi {
			ctx.Fail(out, i, batch.CodeOverflow, "%s * %s is out of range of %s", args[0].Text(int(i)), args[1].Text(int(i)), out.Type.WithNullable(true))
			continue
		}
		out.SetInt64(int(i), z)
	}
}

// addInterval moves a date, time or timestamp. Months count on the wall clock
// (of the session zone for an LTZ), the day capped at the month's end; days
// and less are exact spans of time.
func addInterval(t, iv types.Type, minus, swapped bool) Kernel {
	return func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		a, b := args[0], args[1]
		if swapped {
			a, b = b, a
		}
		for _, i := range sel {
			d := b.Int64(int(i))
			if minus {
				d = -d
			}
			x, ok := shiftTime(ctx, t, a.Int64(int(i)), iv.Kind == types.IntervalYearMonth, d)
			if !ok {
				ctx.Fail(out, i, batch.CodeTimestampRange, "%s moved by %s is out of range of %s", a.Text(int(i)), b.Text(int(i)), t.WithNullable(true))
				continue
			}
			out.SetInt64(int(i), x)
		}
	}
}

// shiftTime adds months or milliseconds to a value of a temporal type.
func shiftTime(ctx *Context, t types.Type, x int64, months bool, d int64) (int64, bool) {
	switch t.Kind {
	case types.Date:
		if months {
			x = types.AddMonths(x, d)
		} else {
			x += types.FloorDiv(d, types.MillisPerDay)
		}
		return x, x == int64(int32(x))
	case types.Time:
		if months {
			return x, true
		}
		return types.FloorMod(x+d%types.MillisPerDay, types.MillisPerDay), true
	}
	u := t.UnitsPerSecond()
	if !months {
		step, ok := mulInt(d, u/1000)
		z := x + step
		return z, ok && (x^z)&(step^z) >= 0
	}
	if t.Kind == types.TimestampLTZ {
		x = ctx.Zone.ToLocal(x, u)
	}
	day := types.FloorDiv(x, u*types.SecondsPerDay)
	rest := x - day*u*types.SecondsPerDay
	z, ok := mulInt(types.AddMonths(day, d), u*types.SecondsPerDay)
	if !ok || z > math.MaxInt64-rest {
		return 0, false
	}
	z += rest
	if t.Kind == types.TimestampLTZ {
		z = ctx.Zone.ToInstant(z, u)
	}
	return z, true
}
