package plan

import (
	"slices"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
)

// checkReplaced checks an INSERT into a table of which each result replaces a whole
// table partition: in a stream the result of one window must be one partition,
// all of it. In batch mode the whole job's result is one.
func (b *Binder) checkReplaced(ins *Insert) {
	t := ins.Table
	if ins.Overwrite || b.Batch {
		return
	}
	mode, why := replaceMode(t, b.location())
	if o := t.Option(catalog.CorrectionKey); o != nil && mode == connector.ReplaceNever {
		d := b.errorf(diag.CodeNotReplaceable, o.Key.Span(), "'%s' publishes whole windows again, and table %q takes new rows alone", catalog.CorrectionKey, t.Name)
		if why != "" {
			d.WithHelp("%s", why)
		}
		d.WithHelp("without it each window is written once, when ALLOWED LATENESS has passed").
			WithHelp("tables of connector hive, filesystem (local) and clickhouse with 'sink.commit-method' = 'replace' replace table partitions")
		return
	} else if o == nil && mode != connector.ReplaceResults {
		return
	}
	const help = "GROUP BY window_start, window_end and the keys, and partition the table by an expression over window_start"
	if len(t.PartitionKeys) == 0 {
		b.errorf(diag.CodeNotReplaceable, ins.Span, "each result replaces a whole partition of %q, which has no PARTITIONED BY", t.Name).
			WithNote(t.Span, "table %q is declared here", t.Name).WithHelp(help)
		return
	}
	w, bounds, exprs := windowBelow(ins)
	switch {
	case w == nil:
		b.errorf(diag.CodeNotReplaceable, ins.Span, "each result replaces a whole partition of %q, and the query is no window's result, which alone is whole", t.Name).
			WithNote(t.Span, "table %q is declared here", t.Name).WithHelp(help)
		return
	case w.Kind == SessionWindow:
		b.errorf(diag.CodeNotReplaceable, ins.Span, "each result replaces a whole partition of %q, and sessions of different keys have no window in common", t.Name).
			WithHelp("use TUMBLE")
		return
	}
	for _, e := range exprs {
		for _, id := range expr.Columns(e) {
			if !slices.Contains(bounds, id) {
				b.errorf(diag.CodeNotReplaceable, ins.Span, "each result replaces a whole partition of %q, and its partition columns depend on more than the window", t.Name).
					WithHelp(help)
				return
			}
		}
	}
	if at, twice := b.sharedPartition(w, bounds, exprs); twice {
		b.errorf(diag.CodeNotReplaceable, ins.Span, "each result replaces a whole partition of %q, and the windows of %s at %s share one: the later would take the place of the earlier", t.Name, w, at).
			WithHelp("give each window a partition of its own, as DATE_FORMAT(window_start, 'yyyyMMddHH') does for windows of an hour; or make windows as long as a partition")
	}
}

// windowBelow finds the one windowed operator that gives an INSERT's rows, the ids
// of its window bounds, and the table's partition columns over them. nil: there
// is none, or more than one.
func windowBelow(ins *Insert) (w *Window, bounds []int, exprs []expr.Expr) {
	cols := ins.Input.Columns()
	for i, c := range ins.Table.WritableColumns() {
		if slices.Contains(ins.Table.PartitionKeys, c.Name) && i < len(cols) {
			exprs = append(exprs, cols[i].Ref())
		}
	}
	for n := ins.Input; ; n = n.Inputs()[0] {
		switch x := n.(type) {
		case *Project:
			for i := range exprs {
				exprs[i] = expr.Rewrite(exprs[i], func(e expr.Expr) expr.Expr {
					if c, ok := e.(*expr.Column); ok {
						for k := range x.Cols {
							if x.Cols[k].ID == c.Index {
								return x.Exprs[k]
							}
						}
					}
					return e
				})
			}
		case *Filter:
		case *Aggregate:
			if x.Window == nil || x.Given != nil || x.Firing != nil {
				return nil, nil, nil
			}
			return x.Window, idsOf(x.Cols[len(x.Cols)-3:]), exprs
		case *Wide:
			keys := len(x.Branches[0].Keys)
			return x.Window, idsOf(x.Cols[keys : keys+2]), exprs
		default:
			return nil, nil, nil
		}
	}
}

func idsOf(cols []Column) []int {
	var out []int
	for i := range cols {
		out = append(out, cols[i].ID)
	}
	return out
}

// sharedPartition looks for two windows with equal partition columns, among some
// thousand that begin with a year, a month and the days when clocks change.
func (b *Binder) sharedPartition(w *Window, bounds []int, exprs []expr.Expr) (at string, twice bool) {
	if w.LTZ && w.Size < 24*time.Hour.Milliseconds() && b.Zone != nil && b.Zone.Location() != time.UTC {
		// An hour that the clock shows twice is two windows of one name.
		_, winter := time.Date(2024, 1, 1, 0, 0, 0, 0, b.Zone.Location()).Zone()
		_, summer := time.Date(2024, 7, 1, 0, 0, 0, 0, b.Zone.Location()).Zone()
		if winter != summer {
			return "the end of summer time in " + b.Zone.String(), true
		}
	}
	step := w.Size
	if w.Kind == HopWindow {
		step = w.Step
	}
	schema := &batch.Schema{}
	for range bounds {
		schema.Fields = append(schema.Fields, rt.Field{Name: "bound", Type: rt.NewTimestamp(3).NotNull()})
	}
	in := windowsFrom(w, step, schema)
	over := make([]expr.Expr, len(exprs))
	for i, e := range exprs {
		over[i] = expr.Rewrite(e, func(e expr.Expr) expr.Expr {
			if c, ok := e.(*expr.Column); ok {
				return &expr.Column{Index: slices.Index(bounds, c.Index), Name: c.Name, T: c.T}
			}
			return e
		})
	}
	p, err := expr.Compile(over, schema, expr.Options{})
	if err != nil {
		return "", false
	}
	out := make([]batch.Vec, len(over))
	p.Eval(expr.NewContext(b.Zone, 0), in, nil, out)
	seen := map[string]int64{}
	for row := range in.Len {
		key := ""
		for i := range out {
			key += out[i].Text(row) + "\x00"
		}
		start := in.Cols[0].I64[row]
		if _, dup := seen[key]; dup {
			return time.UnixMicro(start).UTC().Format(time.DateTime), true
		}
		seen[key] = start
	}
	return "", false
}

// windowsFrom are the bounds of consecutive windows, in microseconds: start, end
// and, where there is a third column, the window's time.
func windowsFrom(w *Window, step int64, s *batch.Schema) *batch.Batch {
	const count = 1500
	var starts []int64
	from := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	from += w.Offset - from%max(step, 1)
	for i := range int64(count) {
		starts = append(starts, from+i*step)
	}
	b := &batch.Batch{}
	b.Reset(s)
	var rows [][2]int64
	for _, at := range starts {
		if w.Kind != CumulateWindow {
			rows = append(rows, [2]int64{at, at + w.Size})
			continue
		}
		for end := at + w.Step; end <= at+w.Size && len(rows) < 4*count; end += w.Step {
			rows = append(rows, [2]int64{at, end})
		}
	}
	b.Len = len(rows)
	for c := range b.Cols {
		b.Cols[c].Reset(s.Fields[c].Type, b.Len)
		for i, r := range rows {
			b.Cols[c].I64[i] = [...]int64{r[0], r[1], r[1] - 1}[c] * 1000
		}
	}
	return b
}

// correctionInterval is 'wide.correction-interval' in ms, 0 where windows go out once.
func (w *wideBinder) correctionInterval(t *catalog.Table, n *Wide) int64 {
	o := t.Option(catalog.CorrectionKey)
	if o == nil {
		return 0
	}
	every := t.Runtime.Duration(catalog.CorrectionKey).Milliseconds()
	switch {
	case every <= 0:
		w.fail(diag.CodeBadOption, o.Value.Span(), "'%s' must be above zero", catalog.CorrectionKey)
	case w.lateness == 0 && len(n.Offline) == 0:
		w.fail(diag.CodeBadOption, o.Key.Span(), "'%s' needs ALLOWED LATENESS: without it no row comes for a window that is over", catalog.CorrectionKey).
			WithHelp("WINDOW TUMBLE(...) ALLOWED LATENESS INTERVAL '10' MINUTE")
	}
	return every
}
