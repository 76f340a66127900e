package fn

import (
	"math"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func bindExtract(args []Arg) (Bound, error) {
	if err := count("EXTRACT", args, 2, 2); err != nil {
		return Bound{}, err
	}
	u, err := unitArg("EXTRACT", args, 0, unitNanosecond, unitIsoYear)
	if err != nil {
		return Bound{}, err
	}
	return bindField("EXTRACT", args, 1, u)
}

// bindField takes a field of argument at.
func bindField(name string, args []Arg, at int, u unit) (Bound, error) {
	t := args[at].Type
	if name == "EXTRACT" && (t.Kind == types.IntervalDaySecond || t.Kind == types.IntervalYearMonth) {
		return bindIntervalField(args, at, u)
	}
	if err := want(name, args, at, "a date, time or timestamp", isTemporal); err != nil {
		return Bound{}, err
	}
	if t.Kind == types.Null {
		t = tTimestamp3
	}
	if t.Kind == types.Time && u > unitHour {
		return Bound{}, argErrf(at, "a TIME has no such field")
	}
	if t.Kind == types.Date && u < unitSecond {
		return Bound{}, argErrf(at, "a DATE has no such field")
	}
	params := make([]types.Type, len(args))
	for i := range args {
		params[i] = args[i].Type
	}
	params[at] = t
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		a := args[at]
		for _, i := range sel {
			x := a.Int64(int(i))
			if u < unitSecond {
				out.I64[i] = fractionField(x, t, u)
				continue
			}
			switch t.Kind {
			case types.Date:
				out.I64[i] = timeField(x*types.SecondsPerDay, u)
			case types.Time:
				out.I64[i] = timeField(x/1000, u)
			default:
				units := t.UnitsPerSecond()
				if t.Kind == types.TimestampLTZ && u != unitEpoch {
					x = ctx.Zone.ToLocal(x, units)
				}
				out.I64[i] = timeField(types.FloorDiv(x, units), u)
			}
		}
	}
	return Bound{Params: params, Return: tBigInt.WithNullable(anyNullable(args[at : at+1])), Kernel: k}, nil
}

// bindIntervalField takes a field of an interval; all fields have its sign.
func bindIntervalField(args []Arg, at int, u unit) (Bound, error) {
	t := args[at].Type
	per, limit := int64(0), int64(math.MaxInt64) // how many make one of u, and u the next
	if t.Kind == types.IntervalYearMonth {
		switch u {
		case unitYear:
			per = 12
		case unitMonth:
			per, limit = 1, 12
		case unitQuarter:
			per = 3
		}
	} else {
		switch u {
		case unitDay:
			per = types.MillisPerDay
		case unitHour:
			per, limit = 3_600_000, 24
		case unitMinute:
			per, limit = 60_000, 60
		case unitSecond:
			per, limit = 1000, 60
		case unitMillisecond:
			per, limit = 1, 1000
		}
	}
	if per == 0 {
		return Bound{}, argErrf(at, "%s has no such field", t.WithNullable(true))
	}
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			x := args[at].Int64(int(i))
			if u == unitQuarter {
				out.I64[i] = (x%12-1)/3 + 1 // counted from 1, as that of a date
				continue
			}
			out.I64[i] = x / per % limit
		}
	}
	params := []types.Type{args[0].Type, t}
	return Bound{Params: params, Return: tBigInt.WithNullable(t.Nullable), Kernel: k}, nil
}

// fractionField is the fraction of the second of a TIME or timestamp in
// milli-, micro- or nanoseconds.
func fractionField(x int64, t types.Type, u unit) int64 {
	per := int64(1000) // of TIME
	if t.Kind != types.Time {
		per = t.UnitsPerSecond()
	}
	scale := int64(1e3)
	switch u {
	case unitMicrosecond:
		scale = 1e6
	case unitNanosecond:
		scale = 1e9
	}
	return types.FloorMod(x, per) * scale / per
}

// timeField is a field of a wall clock time in seconds since 1970.
func timeField(sec int64, u unit) int64 {
	day := types.FloorDiv(sec, types.SecondsPerDay)
	rest := sec - day*types.SecondsPerDay
	switch u {
	case unitSecond:
		return rest % 60
	case unitMinute:
		return rest / 60 % 60
	case unitHour:
		return rest / 3600
	case unitEpoch:
		return sec
	case unitDow:
		return types.FloorMod(day+4, 7) + 1
	case unitIsoDow:
		return types.FloorMod(day+3, 7) + 1
	}
	y, m, d := types.CivilFromDays(day)
	switch u {
	case unitDay:
		return int64(d)
	case unitMonth:
		return int64(m)
	case unitQuarter:
		return int64(m-1)/3 + 1
	case unitYear:
		return y
	case unitDoy:
		return day - types.DaysFromCivil(y, 1, 1) + 1
	case unitDecade:
		return types.FloorDiv(y, 10)
	case unitCentury:
		return eraOf(y, 100)
	case unitMillennium:
		return eraOf(y, 1000)
	}
	// ISO week: that of the week's Thursday.
	thursday := day - types.FloorMod(day+3, 7) + 3
	iso, _, _ := types.CivilFromDays(thursday)
	if u == unitIsoYear {
		return iso
	}
	return (thursday-types.DaysFromCivil(iso, 1, 1))/7 + 1
}

// eraOf counts centuries and millennia from year 1; there is no year 0 in it.
func eraOf(y, n int64) int64 {
	if y > 0 {
		return (y + n - 1) / n
	}
	return -((-y)/n + 1)
}

func bindTimestampAdd(args []Arg) (Bound, error) {
	const name = "TIMESTAMPADD"
	if err := count(name, args, 3, 3); err != nil {
		return Bound{}, err
	}
	u, err := unitArg(name, args, 0, unitMillisecond, unitYear)
	if err != nil {
		return Bound{}, err
	}
	if err := want(name, args, 1, "an integer", isInteger); err != nil {
		return Bound{}, err
	}
	if err := want(name, args, 2, "a date, time or timestamp", isTemporal); err != nil {
		return Bound{}, err
	}
	t := args[2].Type
	switch {
	case t.Kind == types.Null:
		t = tTimestamp3
	case t.Kind == types.Date && u < unitDay:
		t = types.NewTimestamp(6) // a date has no room for the time
	}
	months, factor := unitStep(u)
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			n, ok := mulInt(args[1].Int64(int(i)), factor)
			ok = ok && (!months || n > math.MinInt32 && n < math.MaxInt32)
			var x int64
			if ok {
				x, ok = shiftTime(ctx, t, args[2].Int64(int(i)), months, n)
			}
			if !ok {
				ctx.Fail(out, i, batch.CodeTimestampRange, "%s moved by %d units is out of range of %s",
					args[2].Text(int(i)), args[1].Int64(int(i)), t.WithNullable(true))
				continue
			}
			out.SetInt64(int(i), x)
		}
	}
	return Bound{Params: []types.Type{args[0].Type, tBigInt, t}, Return: t.WithNullable(anyNullable(args[1:])), Kernel: k}, nil
}

// unitStep is a unit in months or in milliseconds.
func unitStep(u unit) (months bool, n int64) {
	switch u {
	case unitMonth:
		return true, 1
	case unitQuarter:
		return true, 3
	case unitYear:
		return true, 12
	case unitMillisecond:
		return false, 1
	}
	return false, u.seconds() * 1000
}

func bindTimestampDiff(args []Arg) (Bound, error) {
	const name = "TIMESTAMPDIFF"
	if err := count(name, args, 3, 3); err != nil {
		return Bound{}, err
	}
	u, err := unitArg(name, args, 0, unitMillisecond, unitYear)
	if err != nil {
		return Bound{}, err
	}
	t, err := commonOf(name, args, 1)
	if err != nil {
		return Bound{}, err
	}
	if t.Kind == types.Null {
		t = tTimestamp3
	}
	if !isTemporal(t) {
		return Bound{}, argErrf(1, "the arguments of %s must be dates, times or timestamps", name)
	}
	months, factor := unitStep(u)
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			a, b := args[1].Int64(int(i)), args[2].Int64(int(i))
			var n int64
			if months {
				n = monthsBetween(ctx, t, a, b) / factor
			} else {
				n = spanBetween(t, a, b, factor)
			}
			if n != int64(int32(n)) {
				ctx.Fail(out, i, batch.CodeOverflow, "%d is out of range of INT", n)
				continue
			}
			out.I32[i] = int32(n)
		}
	}
	return Bound{Params: []types.Type{args[0].Type, t, t}, Return: tInt.WithNullable(anyNullable(args[1:])), Kernel: k}, nil
}

// spanBetween is (b - a) in steps of so many milliseconds, towards zero.
func spanBetween(t types.Type, a, b, millis int64) int64 {
	switch t.Kind {
	case types.Date:
		return (b - a) * types.MillisPerDay / millis
	case types.Time:
		return (b - a) / millis
	}
	per := t.UnitsPerSecond() / 1000
	step := per * millis
	if d := b - a; (b^a)&(b^d) >= 0 {
		return d / step
	}
	// The difference overflows: divide first, exact to one unit.
	return b/step - a/step
}

// monthsBetween counts whole months, towards zero.
func monthsBetween(ctx *Context, t types.Type, a, b int64) int64 {
	if a > b {
		return -monthsBetween(ctx, t, b, a)
	}
	units := int64(1)
	per := int64(1)
	switch t.Kind {
	case types.Timestamp, types.TimestampLTZ:
		units = t.UnitsPerSecond()
		per = units * types.SecondsPerDay
		if t.Kind == types.TimestampLTZ {
			a, b = ctx.Zone.ToLocal(a, units), ctx.Zone.ToLocal(b, units)
		}
	case types.Time:
		return 0
	}
	da, db := types.FloorDiv(a, per), types.FloorDiv(b, per)
	y1, m1, d1 := types.CivilFromDays(da)
	y2, m2, d2 := types.CivilFromDays(db)
	n := (y2-y1)*12 + int64(m2-m1)
	// A day that the later month does not have is its last one, as when months are
	// added: 31 January plus one month is 29 February, so that is one month away.
	d1 = min(d1, types.DaysInMonth(y2, m2))
	if d2 < d1 || d2 == d1 && b-db*per < a-da*per {
		n--
	}
	return n
}

// clockFunctions read the one clock reading of the batch.
func clockFunctions() []*Function {
	ltz := types.NewTimestampLTZ(3).NotNull()
	clock := func(name string, aliases []string, doc string, ret types.Type, ex string, f func(ctx *Context) int64) *Function {
		fn := temporal(name, []string{name}, doc+" One reading of the clock per batch, equal within a row.", nil, Example{name, ex})
		fn.Aliases, fn.Determinism = aliases, PerBatch
		fn.Bind = func(args []Arg) (Bound, error) {
			if err := count(name, args, 0, 0); err != nil {
				return Bound{}, err
			}
			return Bound{Return: ret, Kernel: func(ctx *Context, _ []*batch.Vec, sel batch.Sel, out *batch.Vec) {
				x := f(ctx)
				for _, i := range sel {
					out.SetInt64(int(i), x)
				}
			}}, nil
		}
		return fn
	}
	proctime := clock("PROCTIME", nil, "Now, as TIMESTAMP_LTZ(3): the time of processing, for a computed column that windows divide and lookup joins are FOR SYSTEM_TIME AS OF.", ltz, "2024-05-01 12:34:56.789",
		func(ctx *Context) int64 { return types.TruncateFraction(ctx.Now, 3, 1_000_000) })
	proctime.Syntax, proctime.Examples[0].SQL = []string{"PROCTIME()"}, "PROCTIME()"
	local := func(ctx *Context) int64 { return ctx.Zone.ToLocal(ctx.Now, 1_000_000) }
	return []*Function{
		clock("CURRENT_TIMESTAMP", []string{"NOW", "CURRENT_ROW_TIMESTAMP"}, "Now, as TIMESTAMP_LTZ(3).", ltz, "2024-05-01 12:34:56.789",
			func(ctx *Context) int64 { return types.TruncateFraction(ctx.Now, 3, 1_000_000) }),
		proctime,
		clock("LOCALTIMESTAMP", nil, "Now on the wall clock of the session zone, as TIMESTAMP(3).", tTimestamp3.NotNull(), "2024-05-01 12:34:56.789",
			func(ctx *Context) int64 { return types.TruncateFraction(local(ctx), 3, 1_000_000) }),
		clock("CURRENT_DATE", nil, "Today in the session zone.", tDate.NotNull(), "2024-05-01",
			func(ctx *Context) int64 { return types.FloorDiv(local(ctx), 1_000_000*types.SecondsPerDay) }),
		clock("LOCALTIME", []string{"CURRENT_TIME"}, "The time of day in the session zone, as TIME(0).", types.NewTime(0).NotNull(), "12:34:56",
			func(ctx *Context) int64 {
				return types.FloorMod(types.FloorDiv(local(ctx), 1_000_000), types.SecondsPerDay) * 1000
			}),
	}
}
