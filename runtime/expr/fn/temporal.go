package fn

import (
	"errors"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

var tTimestamp3 = types.NewTimestamp(3)

func temporal(name string, syntax []string, doc string, bind func([]Arg) (Bound, error), ex ...Example) *Function {
	return &Function{Name: name, Syntax: syntax, Category: CatTemporal, Doc: doc, Bind: bind, Examples: ex,
		UsesZone: name == "FROM_UNIXTIME" || name == "UNIX_TIMESTAMP"}
}

func temporalFunctions() []*Function {
	fs := []*Function{
		temporal("DATE_FORMAT", []string{"DATE_FORMAT(t, pattern)"},
			"Text of a date, timestamp (TIMESTAMP_LTZ in the session zone) or of a string in the form yyyy-MM-dd HH:mm:ss, whose fraction is not read, by a Java pattern in English; weeks begin on Sunday.",
			bindDateFormat, Example{"DATE_FORMAT(TIMESTAMP '2024-05-01 08:09:10', 'yyyy-MM-dd HH')", "2024-05-01 08"},
			Example{"DATE_FORMAT('2024-05-01 08:09:10', 'yyyyMMdd')", "20240501"}),
		temporal("TO_DATE", []string{"TO_DATE(s [, pattern])"}, "DATE of a text, yyyy-MM-dd when no pattern is given; NULL if it is none.",
			bindParse("TO_DATE", tDate, true), Example{"TO_DATE('2024-05-01')", "2024-05-01"}, Example{"TO_DATE('01/05/2024', 'dd/MM/yyyy')", "2024-05-01"}, Example{"TO_DATE('2023-02-29')", "NULL"}),
		temporal("TO_TIMESTAMP", []string{"TO_TIMESTAMP(s [, pattern])"}, "TIMESTAMP(3) of a text, yyyy-MM-dd HH:mm:ss when no pattern is given, further fraction digits cut; NULL if it is none.",
			bindParse("TO_TIMESTAMP", tTimestamp3, false), Example{"TO_TIMESTAMP('2024-05-01 08:09:10')", "2024-05-01 08:09:10.000"}, Example{"TO_TIMESTAMP('20240501', 'yyyyMMdd')", "2024-05-01 00:00:00.000"}, Example{"TO_TIMESTAMP('x')", "NULL"}),
		temporal("TO_TIMESTAMP_LTZ", []string{"TO_TIMESTAMP_LTZ(n [, precision])", "TO_TIMESTAMP_LTZ(s [, pattern [, zone]])"},
			"TIMESTAMP_LTZ of seconds (precision 0), milliseconds (3, also when left out), microseconds (6), nanoseconds (9) or other powers of ten of a second since 1970 UTC, whose fraction is kept, or of a text in a zone (UTC when left out). Its precision is that of the number, at least 3.",
			bindToLTZ, Example{"TO_TIMESTAMP_LTZ(1714521600, 0)", "2024-05-01 00:00:00.000"}, Example{"TO_TIMESTAMP_LTZ(1714521600, 3)", "1970-01-20 20:15:21.600"},
			Example{"TO_TIMESTAMP_LTZ('2024-05-01 08:00:00', 'yyyy-MM-dd HH:mm:ss', 'Asia/Shanghai')", "2024-05-01 00:00:00.000"}),
		temporal("FROM_UNIXTIME", []string{"FROM_UNIXTIME(seconds [, pattern])"}, "Text in the session zone of seconds since 1970 UTC, yyyy-MM-dd HH:mm:ss when no pattern is given.",
			bindFromUnix, Example{"FROM_UNIXTIME(44)", "1970-01-01 00:00:44"}, Example{"FROM_UNIXTIME(1714521600, 'yyyyMMdd')", "20240501"}),
		temporal("UNIX_TIMESTAMP", []string{"UNIX_TIMESTAMP()", "UNIX_TIMESTAMP(s [, pattern])"},
			"Seconds since 1970 UTC, of now or of a text in the session zone, yyyy-MM-dd HH:mm:ss when no pattern is given; NULL if the text is none. An hour that the zone has twice is the later one.",
			bindUnixTimestamp, Example{"UNIX_TIMESTAMP('1970-01-01 00:00:44')", "44"}, Example{"UNIX_TIMESTAMP('bad')", "NULL"}, Example{"UNIX_TIMESTAMP()", "1714566896"}),
		temporal("EXTRACT", []string{"EXTRACT(unit FROM t)"}, "A field of a date, time or timestamp (TIMESTAMP_LTZ in the session zone): EPOCH MILLENNIUM CENTURY DECADE YEAR ISOYEAR QUARTER MONTH WEEK (ISO) DAY DOY DOW (Sunday = 1) ISODOW HOUR MINUTE SECOND, and the fraction of the second as MILLISECOND MICROSECOND NANOSECOND. Of an interval, with its sign: YEAR QUARTER MONTH, or DAY HOUR MINUTE SECOND MILLISECOND.",
			bindExtract, Example{"EXTRACT('YEAR', DATE '2024-05-01')", "2024"}, Example{"EXTRACT('DOW', DATE '2024-05-05')", "1"}, Example{"EXTRACT('EPOCH', TIMESTAMP '1970-01-02 00:00:00')", "86400"},
			Example{"EXTRACT('MILLISECOND', TIMESTAMP '2024-05-01 08:09:10.120')", "120"}, Example{"EXTRACT('HOUR', INTERVAL '28' HOUR)", "4"}),
		temporal("TIMESTAMPADD", []string{"TIMESTAMPADD(unit, n, t)"}, "t moved by n units; months and years cap the day at the month's end.", bindTimestampAdd,
			Example{"TIMESTAMPADD('DAY', 1, DATE '2024-02-28')", "2024-02-29"}, Example{"TIMESTAMPADD('MONTH', 1, TIMESTAMP '2024-01-31 10:00:00')", "2024-02-29 10:00:00"}),
		temporal("TIMESTAMPDIFF", []string{"TIMESTAMPDIFF(unit, a, b)"}, "Number of whole units from a to b, negative if b is earlier. From a day that the later month does not have, its last day is a whole month.", bindTimestampDiff,
			Example{"TIMESTAMPDIFF('DAY', TIMESTAMP '2003-01-02 10:00:00', TIMESTAMP '2003-01-03 10:00:00')", "1"}, Example{"TIMESTAMPDIFF('MONTH', DATE '2024-01-31', DATE '2024-02-29')", "1"}),
		temporal("CONVERT_TZ", []string{"CONVERT_TZ(s, from, to)"}, "A time yyyy-MM-dd HH:mm:ss of one zone as that of another; NULL if the text is none. An hour that the zone has twice is the later one.", fixed("CONVERT_TZ", tString, 0, convertTZ, pString, pString, pString),
			Example{"CONVERT_TZ('1970-01-01 00:00:00', 'UTC', 'America/Los_Angeles')", "1969-12-31 16:00:00"}),
	}
	for _, f := range []struct {
		name string
		u    unit
		ex   Example
	}{
		{"YEAR", unitYear, Example{"YEAR(DATE '1994-09-27')", "1994"}}, {"QUARTER", unitQuarter, Example{"QUARTER(DATE '1994-09-27')", "3"}},
		{"MONTH", unitMonth, Example{"MONTH(DATE '1994-09-27')", "9"}}, {"WEEK", unitWeek, Example{"WEEK(DATE '1994-09-27')", "39"}},
		{"DAYOFYEAR", unitDoy, Example{"DAYOFYEAR(DATE '1994-09-27')", "270"}}, {"DAYOFMONTH", unitDay, Example{"DAYOFMONTH(DATE '1994-09-27')", "27"}},
		{"DAYOFWEEK", unitDow, Example{"DAYOFWEEK(DATE '1994-09-27')", "3"}}, {"HOUR", unitHour, Example{"HOUR(TIMESTAMP '1994-09-27 13:14:15')", "13"}},
		{"MINUTE", unitMinute, Example{"MINUTE(TIMESTAMP '1994-09-27 13:14:15')", "14"}}, {"SECOND", unitSecond, Example{"SECOND(TIMESTAMP '1994-09-27 13:14:15')", "15"}},
	} {
		doc := "The " + strings.ToLower(f.name) + " of a date or timestamp (TIMESTAMP_LTZ in the session zone)."
		if f.u == unitDow {
			doc += " Sunday is 1."
		}
		fs = append(fs, temporal(f.name, []string{f.name + "(t)"}, doc, func(args []Arg) (Bound, error) {
			if err := count(f.name, args, 1, 1); err != nil {
				return Bound{}, err
			}
			return bindField(f.name, args, 0, f.u)
		}, f.ex))
	}
	return append(fs, clockFunctions()...)
}

// patternFor compiles a literal pattern at bind time, or returns nil for one
// that is known only row by row.
func patternFor(args []Arg, at int, def string) (*types.TimePattern, error) {
	src := def
	if at < len(args) {
		var ok bool
		if src, ok = args[at].Text(); !ok {
			return nil, nil
		}
	}
	p, err := types.CompileTimePattern(src)
	var pe *types.PatternError
	if errors.As(err, &pe) {
		return nil, &ArgError{Arg: at, Offset: pe.Offset, Msg: "pattern " + quote(src) + ": " + pe.Msg}
	}
	return p, err
}

const sqlPattern = "yyyy-MM-dd HH:mm:ss"

// patterns gives the pattern of each row.
type patterns struct {
	fixed *types.TimePattern
	cache map[string]*types.TimePattern
}

func (p *patterns) row(ctx *Context, a *batch.Vec, i int32, out *batch.Vec) *types.TimePattern {
	if p.fixed != nil {
		return p.fixed
	}
	src := text(a, i)
	if c := p.cache[string(src)]; c != nil {
		return c
	}
	c, err := types.CompileTimePattern(string(src))
	if err != nil {
		ctx.Fail(out, i, batch.CodeArgument, "pattern %s: %s", quote(src), err)
		return nil
	}
	if len(p.cache) >= patternCacheSize {
		clear(p.cache)
	}
	p.cache[string(src)] = c
	return c
}

func patternsOf(ctx *Context, fixed *types.TimePattern) *patterns {
	if fixed != nil {
		return &patterns{fixed: fixed}
	}
	if p, ok := (*ctx.scratch).(*patterns); ok {
		return p
	}
	p := &patterns{cache: map[string]*types.TimePattern{}}
	*ctx.scratch = p
	return p
}

// formatter writes wall clock times, repeating the last text while its span
// of time lasts.
type formatter struct {
	p        *types.TimePattern
	gran     int64
	lo, hi   int64 // seconds for which last holds
	lastText []byte
}

func (f *formatter) append(dst []byte, p *types.TimePattern, local, units int64) []byte {
	if f.p != p {
		f.p, f.gran, f.lo, f.hi = p, p.Granularity(), 0, 0
	}
	sec := types.FloorDiv(local, units)
	if sec >= f.lo && sec < f.hi {
		return append(dst, f.lastText...)
	}
	c := types.SplitTimestamp(local, units)
	n := len(dst)
	dst = p.Append(dst, &c)
	if f.gran > 0 {
		f.lo = types.FloorDiv(sec, f.gran) * f.gran
		f.hi = f.lo + f.gran
		f.lastText = append(f.lastText[:0], dst[n:]...)
	}
	return dst
}

func bindDateFormat(args []Arg) (Bound, error) {
	if err := count("DATE_FORMAT", args, 2, 2); err != nil {
		return Bound{}, err
	}
	if err := want("DATE_FORMAT", args, 0, "a date, timestamp or string", func(t types.Type) bool {
		return t.IsTimestamp() || t.Kind == types.Date || t.IsString()
	}); err != nil {
		return Bound{}, err
	}
	if err := want("DATE_FORMAT", args, 1, "a string", isString); err != nil {
		return Bound{}, err
	}
	p, err := patternFor(args, 1, "")
	if err != nil {
		return Bound{}, err
	}
	t := args[0].Type
	ret := notNullString
	switch {
	case t.Kind == types.Null:
		t = types.NewTimestamp(6)
	case t.IsString():
		ret = tString
	}
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		ps := patternsOf(ctx, p)
		var f formatter
		a := args[0]
		for _, i := range sel {
			local, units, ok := wallClock(ctx, a, i, t)
			if !ok {
				ctx.ParseNulls++
				out.NullRow(int(i))
				continue
			}
			if pat := ps.row(ctx, args[1], i, out); pat != nil {
				out.BeginBytes(int(i))
				out.Data = f.append(out.Data, pat, local, units)
				out.EndBytes()
			}
		}
	}
	return Bound{Params: []types.Type{t, stringType(args[1].Type)}, Return: ret.WithNullable(ret.Nullable || anyNullable(args)), Kernel: k}, nil
}

func stringType(t types.Type) types.Type {
	if t.Kind == types.Null {
		return tString
	}
	return t
}

// wallClock reads a date, timestamp or text as a wall clock time.
func wallClock(ctx *Context, a *batch.Vec, i int32, t types.Type) (local, units int64, ok bool) {
	switch {
	case t.Kind == types.Date:
		return a.Int64(int(i)) * types.SecondsPerDay, 1, true
	case t.IsString():
		c, err := parseClock(text(a, i))
		if err != nil {
			return 0, 1, false
		}
		x, err := c.Timestamp(types.NewTimestamp(0)) // as in Flink, which reads no fraction
		return x, 1_000_000, err == nil
	}
	units = t.UnitsPerSecond()
	x := a.Int64(int(i))
	if t.Kind == types.TimestampLTZ {
		x = ctx.Zone.ToLocal(x, units)
	}
	return x, units, true
}

// zoneCache keeps the zones that one call meets; nil marks unknown ones.
type zoneCache map[string]*types.Zone

func (c zoneCache) of(name string) *types.Zone {
	z, ok := c[name]
	if !ok {
		z, _ = types.LoadZone(name)
		c[name] = z
	}
	return z
}

func bindFromUnix(args []Arg) (Bound, error) {
	params := []param{pInt, pString}
	b, err := bindFixed("FROM_UNIXTIME", args, notNullString, 1, nil, params)
	if err != nil {
		return b, err
	}
	p, err := patternFor(args, 1, sqlPattern)
	if err != nil {
		return b, err
	}
	b.Kernel = func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		ps := patternsOf(ctx, p)
		var f formatter
		for _, i := range sel {
			sec := args[0].Int64(int(i))
			// Years beyond 9 digits have no text.
			if sec > 1<<54 || sec < -1<<54 {
				ctx.Fail(out, i, batch.CodeTimestampRange, "%d seconds are out of range", sec)
				continue
			}
			var pv *batch.Vec
			if len(args) > 1 {
				pv = args[1]
			}
			if pat := ps.row(ctx, pv, i, out); pat != nil {
				out.BeginBytes(int(i))
				out.Data = f.append(out.Data, pat, ctx.Zone.ToLocal(sec, 1), 1)
				out.EndBytes()
			}
		}
	}
	return b, nil
}

func bindUnixTimestamp(args []Arg) (Bound, error) {
	if len(args) == 0 {
		return Bound{Return: tBigInt.NotNull(), Determinism: PerBatch, Kernel: func(ctx *Context, _ []*batch.Vec, sel batch.Sel, out *batch.Vec) {
			for _, i := range sel {
				out.I64[i] = types.FloorDiv(ctx.Now, 1_000_000)
			}
		}}, nil
	}
	b, err := bindFixed("UNIX_TIMESTAMP", args, tBigInt, 1, nil, []param{pString, pString})
	if err != nil {
		return b, err
	}
	t, err := newTimeText(args, true, parseClock)
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
			sec := types.DaysFromCivil(c.Year, c.Month, c.Day)*types.SecondsPerDay + int64(c.Hour*3600+c.Minute*60+c.Second)
			out.I64[i] = ctx.Zone.ToLaterInstant(sec, 1)
		}
	}
	return b, nil
}

func convertTZ(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	zones := zoneCache{}
	for _, i := range sel {
		c, err := parseClock(text(args[0], i))
		from, to := zones.of(string(text(args[1], i))), zones.of(string(text(args[2], i)))
		if from == nil || to == nil {
			name := text(args[1], i)
			if from != nil {
				name = text(args[2], i)
			}
			ctx.Fail(out, i, batch.CodeArgument, "unknown time zone %s", quote(name))
			continue
		}
		if err != nil {
			ctx.ParseNulls++
			out.NullRow(int(i))
			continue
		}
		sec := types.DaysFromCivil(c.Year, c.Month, c.Day)*types.SecondsPerDay + int64(c.Hour*3600+c.Minute*60+c.Second)
		local := to.ToLocal(from.ToLaterInstant(sec, 1), 1)
		out.BeginBytes(int(i))
		out.Data = types.AppendTimestamp(out.Data, local*1_000_000, types.NewTimestamp(0), ' ')
		out.EndBytes()
	}
}
