package plan

import (
	"strings"
	"time"

	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// windowFunc is a table function that divides time.
type windowFunc struct {
	kind WindowKind
	// args are its parameters in order; the first required must be there.
	args     []string
	required int
	example  string
}

var windowFuncs = map[string]windowFunc{
	"TUMBLE":   {TumbleWindow, []string{"DATA", "TIMECOL", "SIZE", "OFFSET"}, 3, "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)"},
	"HOP":      {HopWindow, []string{"DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"}, 4, "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '1' HOUR)"},
	"CUMULATE": {CumulateWindow, []string{"DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"}, 4, "CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY)"},
	"SESSION":  {SessionWindow, []string{"DATA", "TIMECOL", "GAP"}, 3, "SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' MINUTE)"},
}

// tableFunc binds TABLE(f(...)).
func (b *Binder) tableFunc(t *syntax.TableFunc, sc *scope) *Output {
	name := strings.ToUpper(t.Call.Name.String())
	f, ok := windowFuncs[name]
	if !ok {
		b.unknownTableFunction(t.Call.Name)
		return nil
	}
	return b.windowTable(name, f, t.Call, sc)
}

// arguments brings positional and named arguments into the order of names;
// missing ones are nil.
func (b *Binder) arguments(c *syntax.Call, names []string) ([]syntax.Expr, bool) {
	out := make([]syntax.Expr, len(names))
	ok := true
	for i, a := range c.Args {
		at, value := i, a
		if n, named := a.(*syntax.NamedArg); named {
			at, value = -1, n.Value
			for j, name := range names {
				if strings.EqualFold(name, n.Name.Name) {
					at = j
				}
			}
			if at < 0 {
				b.errorf(diag.CodeBadArgument, n.Name.Span(), "%s has no argument %q", c.Name, n.Name.Name).
					WithNearest(n.Name.Name, names)
				ok = false
				continue
			}
		}
		if at >= len(names) {
			b.errorf(diag.CodeBadArgument, a.Span(), "%s takes at most %d arguments", c.Name, len(names))
			return nil, false
		}
		if out[at] != nil {
			b.errorf(diag.CodeBadArgument, a.Span(), "argument %s is given twice", names[at])
			ok = false
		}
		out[at] = value
	}
	return out, ok
}

func (b *Binder) windowTable(name string, f windowFunc, c *syntax.Call, sc *scope) *Output {
	args, ok := b.arguments(c, f.args)
	if !ok {
		return nil
	}
	for i, arg := range f.args[:f.required] {
		if args[i] == nil {
			b.errorf(diag.CodeBadArgument, c.Span(), "%s needs the argument %s", name, arg).WithHelp("%s", f.example)
			return nil
		}
	}
	in, keys := b.tableArg(args[0], sc, f.kind == SessionWindow)
	values := make([]int64, len(args))
	for i := 2; i < len(args); i++ {
		if args[i] != nil {
			v, good := b.interval(args[i])
			values[i], ok = v, ok && good
		}
	}
	if in == nil || !ok {
		return nil
	}
	w := &Window{Kind: f.kind, Size: values[2]}
	sizeAt := args[2]
	switch f.kind {
	case TumbleWindow:
		w.Offset = values[3]
	case HopWindow, CumulateWindow:
		w.Step, w.Size, w.Offset, sizeAt = values[2], values[3], values[4], args[3]
	}
	if !b.checkWindow(w, args[2].Span(), sizeAt.Span()) {
		return nil
	}
	timeCol := b.descriptor(args[1], in, f.kind)
	if timeCol == nil {
		return nil
	}
	if !b.timeOf(w, timeCol, sizeAt.Span()) {
		return nil
	}
	out := b.windowOver(in, w, timeCol)
	out.Node.(*WindowTable).Keys, out.Node.(*WindowTable).Span = keys, c.Span()
	return out
}

// checkWindow checks the lengths of a window.
func (b *Binder) checkWindow(w *Window, step, size diag.Span) bool {
	switch {
	case w.Size <= 0:
		what := "size"
		if w.Kind == SessionWindow {
			what = "gap"
		}
		b.errorf(diag.CodeBadWindow, size, "a window's %s must be above zero", what)
	case w.Kind != HopWindow && w.Kind != CumulateWindow:
		return true
	case w.Step <= 0:
		b.errorf(diag.CodeBadWindow, step, "a window's step must be above zero")
	case w.Size%w.Step != 0:
		b.errorf(diag.CodeBadWindow, size, "a window's size must be a multiple of its step: %s is none of %s", millis(w.Size), millis(w.Step)).
			WithHelp("the step comes before the size: HOP(TABLE t, DESCRIPTOR(ts), slide, size)")
	default:
		return true
	}
	return false
}

// windowOver puts a window's columns on a bound table.
func (b *Binder) windowOver(in *Output, w *Window, timeCol *Column) *Output {
	out := &Output{Node: b.windowNode(in.Node, w, timeCol.ID), Spans: in.Spans, Named: in.Named}
	for range 3 {
		out.Spans = append(out.Spans[:len(out.Spans):len(out.Spans)], diag.Span{})
		out.Named = append(out.Named[:len(out.Named):len(out.Named)], true)
	}
	return out
}

func (b *Binder) windowNode(in Node, w *Window, timeID int) *WindowTable {
	n := &WindowTable{Input: in, Window: w, Time: timeID, Path: b.path("window")}
	for _, col := range in.Columns() {
		if col.Name == "window_start" || col.Name == "window_end" || col.Name == "window_time" {
			col.Window = nil
		}
		// Row time moves on to window_time, as in Flink. The node below keeps
		// its mark.
		col.forgetTime()
		n.Cols = append(n.Cols, col)
	}
	n.Cols = append(n.Cols, b.windowColumns(w, timeID)...)
	return n
}

// windowColumns makes window_start, window_end and window_time.
func (b *Binder) windowColumns(w *Window, timeID int) []Column {
	wt := rt.NewTimestamp(3).NotNull()
	if w.LTZ {
		wt = rt.NewTimestampLTZ(3).NotNull()
	}
	cols := make([]Column, 3)
	for i, name := range []string{"window_start", "window_end", "window_time"} {
		cols[i] = Column{ID: b.id(), Name: name, Type: rt.NewTimestamp(3).NotNull(), WindowOnly: true,
			Window: &WindowColumn{Role: WindowRole(i), Window: w, Time: timeID}}
	}
	cols[WindowTime].Type = wt
	cols[WindowTime].RowTime = w.RowTime
	if w.Changing {
		// They say of what a row is; no watermark ends them.
		for i := range cols {
			cols[i].Window = nil
		}
		cols[WindowTime].Changing = RowTimes
	}
	return cols
}

// tableArg binds TABLE name or TABLE (query), and the columns of PARTITION BY,
// which sessions alone take.
func (b *Binder) tableArg(e syntax.Expr, sc *scope, session bool) (out *Output, keys []int) {
	t, ok := e.(*syntax.TableArg)
	switch {
	case !ok:
		b.errorf(diag.CodeBadArgument, e.Span(), "the first argument must be TABLE name or TABLE (query)")
		return nil, nil
	case len(t.OrderBy) > 0:
		b.errorf(diag.CodeBadArgument, t.OrderBy[0].Span(), "a window takes no ORDER BY: it goes by the column of DESCRIPTOR")
		return nil, nil
	case len(t.PartitionBy) > 0 && !session:
		b.errorf(diag.CodeBadArgument, t.PartitionBy[0].Span(), "PARTITION BY belongs to SESSION: other windows are the same for all rows")
		return nil, nil
	case t.Query != nil:
		if out = b.query(t.Query, sc.ctes); out == nil || !b.noUntyped(out) {
			return nil, nil
		}
	default:
		if out = b.namedTable(t.Name, sc.ctes); out == nil {
			return nil, nil
		}
	}
	inner := &scope{rels: []relation{{cols: out.Columns()}}}
	for _, k := range t.PartitionBy {
		x := b.scalar(k, inner, "PARTITION BY")
		if x == nil {
			return nil, nil
		}
		c, isCol := x.(*expr.Column)
		if !isCol {
			b.errorf(diag.CodeBadArgument, k.Span(), "PARTITION BY of a table takes columns").WithHelp("compute it in a sub-query: TABLE (SELECT ...)")
			return nil, nil
		}
		keys = append(keys, c.Index)
	}
	return out, keys
}

// descriptor is the column that windows of a kind divide. Those that are each row's
// own take rows that change.
func (b *Binder) descriptor(e syntax.Expr, in *Output, kind WindowKind) *Column {
	d, ok := e.(*syntax.Descriptor)
	if !ok || len(d.Columns) != 1 {
		b.errorf(diag.CodeBadArgument, e.Span(), "the second argument must be DESCRIPTOR(column)")
		return nil
	}
	sc := &scope{rels: []relation{{cols: in.Columns()}}}
	col, _, ok := sc.resolve(b, &syntax.ColumnRef{Loc: syntax.Loc{Src: d.Columns[0].Span()}, Parts: d.Columns})
	if !ok {
		return nil
	}
	if col.Changing == RowTimes && kind != SessionWindow {
		return col
	}
	if !b.usableAsTime(col, d.Columns[0].Span()) {
		return nil
	}
	return col
}

// usableAsTime checks that windows can divide a column's time.
func (b *Binder) usableAsTime(col *Column, at diag.Span) bool {
	if !col.Type.IsTimestamp() || col.Type.Precision > 6 {
		b.errorf(diag.CodeRowTime, at, "column %q is %s; a window needs a TIMESTAMP(p) or TIMESTAMP_LTZ(p) with p up to 6", col.Name, col.Type.WithNullable(true))
		return false
	}
	if col.Changing != NoTime && b.streaming() {
		b.errorf(diag.CodeRowTime, at, "column %q has row times of rows that change, which such windows do not take", col.Name).
			WithHelp("take the window below, of the rows as they come")
		return false
	}
	if !col.RowTime && !col.ProcTime && b.streaming() {
		b.errorf(diag.CodeRowTime, at, "column %q is not row time", col.Name).
			WithHelp("the table needs WATERMARK FOR %s AS %s - INTERVAL '5' SECOND", col.Name, col.Name).
			WithHelp("a bare reference to the column keeps row time, an expression such as CAST loses it").
			WithHelp("windows by the clock are over a column that is PROCTIME()")
		return false
	}
	return true
}

// timeOf says what time a window divides.
func (b *Binder) timeOf(w *Window, col *Column, at diag.Span) bool {
	w.LTZ, w.RowTime, w.Changing = col.Type.Kind == rt.TimestampLTZ, col.RowTime, col.Changing == RowTimes && !b.Batch
	w.Processing = col.ProcTime && !col.RowTime && !b.Batch
	if w.Processing && b.wallRepeats(w) {
		// The hour that comes twice would begin windows that have ended.
		b.notYet(at, "such a window of processing time by the wall clock of "+b.Zone.String()+", which is set back once a year,").
			WithHelp("SET 'table.local-time-zone' = 'UTC', or an offset such as 'GMT+08:00'").
			WithHelp("days without an offset, and sessions, are possible in any zone")
		return false
	}
	b.lintDST(w, at)
	return true
}

// wallRepeats reports windows that may begin or end in an hour that comes twice.
func (b *Binder) wallRepeats(w *Window) bool {
	const day = 86_400_000
	return w.LTZ && w.Kind != SessionWindow && b.Zone != nil && hasDST(b.Zone.Location()) &&
		(w.Kind != TumbleWindow || w.Size%day != 0 || w.Offset != 0)
}

// interval evaluates a constant day-time interval to ms.
func (b *Binder) interval(e syntax.Expr) (int64, bool) {
	v := b.scalar(e, &scope{}, "an interval")
	if v == nil {
		return 0, false
	}
	lit, ok := expr.Fold(v).(*expr.Literal)
	if !ok || lit.Value.IsNull(0) || lit.Type().Kind != rt.IntervalDaySecond {
		b.errorf(diag.CodeBadArgument, e.Span(), "this must be a constant interval of days to seconds").
			WithHelp("e.g. INTERVAL '1' HOUR")
		return 0, false
	}
	return lit.Value.I64[0], true
}

// lintDST tells that windows shorter than a day follow wall time.
func (b *Binder) lintDST(w *Window, at diag.Span) {
	const day = 86_400_000
	if !w.LTZ || w.Kind == SessionWindow || w.Size >= day && w.Kind == TumbleWindow || b.Zone == nil || !hasDST(b.Zone.Location()) {
		return
	}
	b.Diags.Add(diag.Infof(diag.CodeDSTWindow, at,
		"windows follow the wall time of %s: when the clock goes back the repeated hour falls into the same windows, when it goes forward some are missing", b.Zone))
}

// hasDST looks at fixed years, so that the answer does not change by itself.
func hasDST(loc *time.Location) bool {
	_, first := time.Date(2024, 1, 1, 0, 0, 0, 0, loc).Zone()
	for month := time.January; month <= time.December; month++ {
		if _, off := time.Date(2024, month, 15, 0, 0, 0, 0, loc).Zone(); off != first {
			return true
		}
	}
	return false
}
