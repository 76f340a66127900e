package plan

import (
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
)

// LateOf says for which windows an INSERT's rows are late.
type LateOf struct {
	Window *Window
	// Time is the row time among the table's writable columns.
	Time int
	// Lateness in ms.
	Lateness int64
}

// LateRows gives the INSERTs that write the late rows of a query into the table
// that 'window.late-rows' names: the rows as the FROM of the window gives them,
// after WHERE, by the names of the table's columns. In batch mode nothing is late.
func (b *Binder) LateRows(ins *Insert, side string, at diag.Span) []*Insert {
	if b.Batch || side == "" {
		return nil
	}
	var out []*Insert
	found := false
	refuse := func(what string) {
		b.notYet(at, "'window.late-rows' with the name of a table for "+what).
			WithHelp("'dead-letter' keeps late rows with their reason, 'drop' counts them")
	}
	add := func(in Node, time int, w *Window, lateness int64) {
		found = true
		if x := b.lateRows(in, time, w, lateness, ins, side, at); x != nil {
			out = append(out, x)
		}
	}
	var walk func(n Node)
	walk = func(n Node) {
		switch x := n.(type) {
		case *Aggregate:
			switch {
			case x.Window == nil:
			case x.Window.Processing:
				found = true
				return // nothing is late, which LintLateRows says
			case x.Given == nil:
				add(x.Input, x.Time, x.Window, x.lateness())
				return
			case !stateless(x.Input):
			default:
				refuse("windows that stand in columns")
				return
			}
		case *Wide:
			for i := range x.Branches {
				add(x.Branches[i].Input, x.Branches[i].Time, x.Window, x.Lateness)
			}
			return
		case *WindowTable:
			if x.Window.Kind == SessionWindow && !x.CheckOnly {
				refuse("sessions whose rows are looked at")
				return
			}
		case *Join:
			refuse("joins")
			return
		case *Over:
			if !x.Changes {
				refuse("OVER")
				return
			}
		case *Rank:
			refuse("OVER")
			return
		case *Sort:
			if x.ByTime {
				refuse("ORDER BY")
				return
			}
		}
		for _, in := range n.Inputs() {
			walk(in)
		}
	}
	walk(ins.Input)
	if !found && len(out) == 0 && ins.Table.Runtime.Has("window.late-rows") && !b.Diags.HasErrors() {
		refuse("a table into which no window writes")
	}
	return out
}

// LintLateRows says that 'window.late-rows', set at at, does nothing for windows of
// processing time where an INSERT has no others.
func (b *Binder) LintLateRows(ins *Insert, at diag.Span) {
	var clock, event bool
	Walk(ins.Input, func(n Node) bool {
		switch x := n.(type) {
		case *Aggregate:
			clock = clock || x.Window != nil && x.Window.Processing
			event = event || x.Window != nil && !x.Window.Processing
		case *Wide:
			event = true
		case *Join:
			event = event || x.Windows != nil || x.Interval != nil || x.Temporal != nil
		case *Over:
			event = event || !x.Changes
		case *Rank:
			event = true
		case *Sort:
			event = event || x.ByTime
		}
		return true
	})
	if b.Batch || !clock || event {
		return
	}
	b.Diags.Add(diag.Warnf(diag.CodeNoEffect, at, "'window.late-rows' has no effect: the windows of this query go by the clock, and no row is late for them").
		WithNote(ins.Span, "the query"))
}

// stateless reports a part of the plan that lanes run.
func stateless(n Node) bool {
	switch n.(type) {
	case *Scan, *Project, *Filter, *Unnest, *Union, *WindowTable, *Values, *Lookup:
	default:
		return false
	}
	return !slices.ContainsFunc(n.Inputs(), func(in Node) bool { return !stateless(in) })
}

// lateRows is the INSERT for one window. Its input is what stands below the
// projection to keys and arguments, with the filters on the way.
func (b *Binder) lateRows(in Node, time int, w *Window, lateness int64, ins *Insert, side string, at diag.Span) *Insert {
	if !stateless(in) {
		b.notYet(at, "'window.late-rows' with the name of a table for windows of windows").
			WithHelp("'dead-letter' keeps late rows with their reason, 'drop' counts them")
		return nil
	}
	o, ok := b.Catalog.Lookup(side)
	t, isTable := o.(*catalog.Table)
	switch {
	case !ok:
		b.errorf(diag.CodeUnknownTable, at, "the table of late rows %q is not declared", side).WithNearest(side, b.Catalog.Names())
		return nil
	case !isTable || t.Wide != nil || t.Connector == nil || !t.Spec.Sink:
		b.errorf(diag.CodeNotASink, at, "late rows go to %q, which cannot be written", side)
		return nil
	case t == ins.Table:
		b.errorf(diag.CodeBadTable, at, "late rows of %q go to a table of their own", side)
		return nil
	}
	rows, time := below(in, time)
	cols := rows.Columns()
	p := &Project{Input: rows}
	late := &LateOf{Window: w, Time: -1, Lateness: lateness}
	for i, c := range t.WritableColumns() {
		k := slices.IndexFunc(cols, func(x Column) bool { return x.Name == c.Name })
		if k < 0 {
			b.errorf(diag.CodeUnknownColumn, c.Span, "late rows have no column %q", c.Name).
				WithNote(at, "late rows go to %q because of this", side).
				WithNearest(c.Name, namesOf(cols))
			return nil
		}
		e, fits := assignTo(cols[k].Ref(), cols[k].Narrow, c.Type)
		if !fits {
			b.errorf(diag.CodeTypeMismatch, c.Span, "column %q of %q is %s, late rows have %s", c.Name, side, c.Type.WithNullable(true), cols[k].Type.WithNullable(true))
			return nil
		}
		if _, bare := e.(*expr.Column); bare && cols[k].ID == time {
			late.Time = i
		}
		p.Exprs, p.Cols = append(p.Exprs, e), append(p.Cols, derive(b.id, c.Name, e, cols))
	}
	if late.Time < 0 {
		name := ""
		if c, ok := ColumnByID(cols, time); ok {
			name = c.Name
		}
		b.errorf(diag.CodeBadTable, t.Span, "table %q of late rows needs their row time, column %q, in its own type", side, name).
			WithNote(at, "late rows go to %q because of this", side)
		return nil
	}
	x := &Insert{Input: p, Table: t, Late: late, Span: at}
	b.checkWritten(t, p, at)
	return x
}

// below is the input without the projection to keys and arguments on top, where
// there is one, and the row time's id in it.
func below(in Node, time int) (Node, int) {
	top, ok := in.(*Project)
	if !ok {
		return withoutWindows(in), time
	}
	for i := range top.Cols {
		c, bare := top.Exprs[i].(*expr.Column)
		if top.Cols[i].ID != time || !bare {
			continue
		}
		if _, there := ColumnByID(top.Input.Columns(), c.Index); there {
			return withoutWindows(top.Input), c.Index
		}
	}
	return in, time
}

// withoutWindows drops the assigning of windows: a late row comes once.
func withoutWindows(n Node) Node {
	switch x := n.(type) {
	case *Filter:
		return x.With(withoutWindows(x.Input))
	case *WindowTable:
		return x.Input
	}
	return n
}

func namesOf(cols []Column) []string {
	var out []string
	for i := range cols {
		out = append(out, cols[i].Name)
	}
	return out
}

// CheckLateRows reports tables of late rows that are written otherwise, too, or for
// windows that differ: there would be no saying which rows they have.
func CheckLateRows(inserts []*Insert, diags *diag.List) {
	for i, ins := range inserts {
		for _, old := range inserts[:i] {
			if old.Table != ins.Table || old.Late == nil && ins.Late == nil {
				continue
			}
			if a, c := old.Late, ins.Late; a != nil && c != nil && *a.Window == *c.Window && a.Time == c.Time && a.Lateness == c.Lateness {
				continue
			}
			diags.Errorf(diag.CodeBadTable, ins.Span, "table %q takes the late rows of one window, and nothing else", ins.Table.Name).
				WithNote(old.Span, "it is written here, too").
				WithHelp("give each window a table of its own: 'window.late-rows' can be set for each table")
			break
		}
	}
}
