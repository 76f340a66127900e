package plan

import (
	"strings"
	"time"

	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// tumbleArgs are the parameters of TUMBLE in order.
var tumbleArgs = []string{"DATA", "TIMECOL", "SIZE", "OFFSET"}

// tableFunc binds TABLE(f(...)).
func (b *Binder) tableFunc(t *syntax.TableFunc, sc *scope) *Output {
	name := strings.ToUpper(t.Call.Name.String())
	switch name {
	case "TUMBLE":
		return b.tumble(t.Call, sc)
	case "HOP", "CUMULATE", "SESSION":
		b.notYet(t.Call.Name.Span(), name+" windows").WithHelp("TUMBLE works")
	default:
		b.errorf(diag.CodeUnknownFunction, t.Call.Name.Span(), "table function %q not found", t.Call.Name).
			WithNearest(name, []string{"TUMBLE"})
	}
	return nil
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

func (b *Binder) tumble(c *syntax.Call, sc *scope) *Output {
	args, ok := b.arguments(c, tumbleArgs)
	if !ok {
		return nil
	}
	for i, name := range tumbleArgs[:3] {
		if args[i] == nil {
			b.errorf(diag.CodeBadArgument, c.Span(), "TUMBLE needs the argument %s", name).
				WithHelp("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)")
			return nil
		}
	}
	in := b.tableArg(args[0], sc)
	size, sizeOK := b.interval(args[2])
	var offset int64
	if args[3] != nil {
		o, ok := b.interval(args[3])
		sizeOK = sizeOK && ok
		offset = o
	}
	if in == nil || !sizeOK {
		return nil
	}
	if size <= 0 {
		b.errorf(diag.CodeBadWindow, args[2].Span(), "a window's size must be above zero")
		return nil
	}
	timeCol := b.descriptor(args[1], in)
	if timeCol == nil {
		return nil
	}
	w := &Window{Size: size, Offset: offset, LTZ: timeCol.Type.Kind == rt.TimestampLTZ, RowTime: timeCol.RowTime}
	b.lintDST(w, args[2].Span())
	return b.tumbleOver(in, w, timeCol)
}

func (b *Binder) tumbleOver(in *Output, w *Window, timeCol *Column) *Output {
	n := &Tumble{Input: in.Node, Window: w, Time: timeCol.ID}
	for _, col := range in.Columns() {
		if col.Name == "window_start" || col.Name == "window_end" || col.Name == "window_time" {
			col.Window = nil
		}
		// Row time moves on to window_time, as in Flink. The node below keeps
		// its mark.
		col.RowTime = false
		n.Cols = append(n.Cols, col)
	}
	n.Cols = append(n.Cols, b.windowColumns(w, timeCol.ID)...)
	out := &Output{Node: n, Spans: in.Spans, Named: in.Named}
	for range 3 {
		out.Spans = append(out.Spans[:len(out.Spans):len(out.Spans)], diag.Span{})
		out.Named = append(out.Named[:len(out.Named):len(out.Named)], true)
	}
	return out
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
	return cols
}

func (b *Binder) tableArg(e syntax.Expr, sc *scope) *Output {
	t, ok := e.(*syntax.TableArg)
	if !ok {
		b.errorf(diag.CodeBadArgument, e.Span(), "the first argument must be TABLE name or TABLE (query)")
		return nil
	}
	if len(t.PartitionBy) > 0 || len(t.OrderBy) > 0 {
		b.notYet(t.Span(), "PARTITION BY or ORDER BY of a table argument")
		return nil
	}
	if t.Query != nil {
		out := b.query(t.Query, sc.ctes)
		if out == nil || !b.noUntyped(out) {
			return nil
		}
		return out
	}
	return b.namedTable(t.Name, sc.ctes)
}

func (b *Binder) descriptor(e syntax.Expr, in *Output) *Column {
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
	if !col.RowTime && !b.Batch && !b.declaring {
		b.errorf(diag.CodeRowTime, at, "column %q is not row time", col.Name).
			WithHelp("the table needs WATERMARK FOR %s AS %s - INTERVAL '5' SECOND", col.Name, col.Name).
			WithHelp("a bare reference to the column keeps row time, an expression such as CAST loses it")
		return false
	}
	return true
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
	if !w.LTZ || w.Size >= day || b.Zone == nil || !hasDST(b.Zone.Location()) {
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
