package fn

import (
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// unit is a unit of time.
type unit uint8

const (
	unitNone unit = iota
	unitNanosecond
	unitMicrosecond
	unitMillisecond
	unitSecond
	unitMinute
	unitHour
	unitDay
	unitWeek
	unitMonth
	unitQuarter
	unitYear
	// The rest are for EXTRACT only.
	unitDow
	unitIsoDow
	unitDoy
	unitDecade
	unitCentury
	unitMillennium
	unitEpoch
	unitIsoYear
)

// units by name; SQL_TSI_ forms are stripped before.
func parseUnit(s string) unit {
	switch strings.TrimPrefix(strings.ToUpper(s), "SQL_TSI_") {
	case "NANOSECOND", "NANOSECONDS":
		return unitNanosecond
	case "MICROSECOND", "MICROSECONDS":
		return unitMicrosecond
	case "MILLISECOND", "MILLISECONDS":
		return unitMillisecond
	case "SECOND", "SECONDS":
		return unitSecond
	case "MINUTE", "MINUTES":
		return unitMinute
	case "HOUR", "HOURS":
		return unitHour
	case "DAY", "DAYS":
		return unitDay
	case "WEEK", "WEEKS":
		return unitWeek
	case "MONTH", "MONTHS":
		return unitMonth
	case "QUARTER", "QUARTERS":
		return unitQuarter
	case "YEAR", "YEARS":
		return unitYear
	case "DOW":
		return unitDow
	case "ISODOW":
		return unitIsoDow
	case "DOY":
		return unitDoy
	case "DECADE":
		return unitDecade
	case "CENTURY":
		return unitCentury
	case "MILLENNIUM":
		return unitMillennium
	case "EPOCH":
		return unitEpoch
	case "ISOYEAR":
		return unitIsoYear
	}
	return unitNone
}

// unitArg reads a unit that is a literal argument; max is the largest allowed.
func unitArg(name string, args []Arg, i int, lo, hi unit) (unit, error) {
	s, ok := args[i].Text()
	if !ok {
		return 0, argErrf(i, "the unit of %s must be a keyword", name)
	}
	u := parseUnit(s)
	if u < lo || u > hi {
		return 0, argErrf(i, "%s is not a unit of %s", strings.ToUpper(s), name)
	}
	return u, nil
}

// seconds of the fixed units.
func (u unit) seconds() int64 {
	switch u {
	case unitSecond:
		return 1
	case unitMinute:
		return 60
	case unitHour:
		return 3600
	case unitDay:
		return types.SecondsPerDay
	case unitWeek:
		return 7 * types.SecondsPerDay
	}
	return 0
}

// bindTruncTime is FLOOR and CEIL of a date or time to a unit.
func bindTruncTime(name string, args []Arg, up bool) (Bound, error) {
	t := args[0].Type
	if t.Kind == types.Null {
		t = types.NewTimestamp(3)
	}
	if err := want(name, args, 0, "a date, time or timestamp", isTemporal); err != nil {
		return Bound{}, err
	}
	u, err := unitArg(name, args, 1, unitMillisecond, unitYear)
	if err != nil {
		return Bound{}, err
	}
	if t.Kind == types.Time && u > unitHour || t.Kind == types.Date && u < unitDay {
		return Bound{}, argErrf(1, "a %s has no unit of that size", t.Kind)
	}
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			out.SetInt64(int(i), truncTime(ctx, t, args[0].Int64(int(i)), u, up))
		}
	}
	return Bound{Params: []types.Type{t, tString}, Return: t.WithNullable(anyNullable(args[:1])), Kernel: k}, nil
}

// truncTime rounds down (towards the past, also before 1970) or up to a unit.
func truncTime(ctx *Context, t types.Type, x int64, u unit, up bool) int64 {
	per := int64(1000) // units per second of the value
	switch t.Kind {
	case types.Date:
		f := truncDays(x, u, up)
		return f
	case types.Timestamp, types.TimestampLTZ:
		per = t.UnitsPerSecond()
	}
	if u == unitMillisecond {
		return truncStep(x, per/1000, up)
	}
	local := x
	if t.Kind == types.TimestampLTZ {
		local = ctx.Zone.ToLocal(x, per)
	}
	if u < unitDay {
		local = truncStep(local, u.seconds()*per, up)
	} else {
		day := types.FloorDiv(local, types.SecondsPerDay*per)
		start := truncDays(day, u, false)
		if up && start*types.SecondsPerDay*per != local {
			start = truncDays(start+1, u, true)
		}
		local = start * types.SecondsPerDay * per
	}
	if t.Kind == types.TimestampLTZ {
		return ctx.Zone.ToInstant(local, per)
	}
	return local
}

func truncStep(x, step int64, up bool) int64 {
	f := types.FloorDiv(x, step) * step
	if up && f != x {
		f += step
	}
	return f
}

// truncDays rounds a date; weeks begin on Sunday as in Flink.
func truncDays(d int64, u unit, up bool) int64 {
	switch u {
	case unitDay:
		return d
	case unitWeek:
		// 1970-01-01 was a Thursday, so Sundays are at days 3 modulo 7.
		return truncStep(d-3, 7, up) + 3
	}
	y, m, _ := types.CivilFromDays(d)
	switch u {
	case unitQuarter:
		m = (m-1)/3*3 + 1
	case unitYear:
		m = 1
	}
	f := types.DaysFromCivil(y, m, 1)
	if up && f != d {
		months := map[unit]int64{unitMonth: 1, unitQuarter: 3, unitYear: 12}[u]
		f = types.AddMonths(f, months)
	}
	return f
}
