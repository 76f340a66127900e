package plan

import (
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
	sqltypes "github.com/millrace/millrace/sql/types"
)

// Insert binds INSERT INTO. nil means that something was reported.
func (b *Binder) Insert(s *syntax.Insert) *Insert {
	for _, h := range s.Hints {
		b.notYet(h.Span(), "the hint "+h.Name.Name)
	}
	t := b.insertTarget(s.Target)
	if t == nil {
		// Bind the query all the same, for its own faults.
		b.origin, b.sink, b.declaring = []string{"query"}, nil, true
		b.topQuery(s.Query)
		b.declaring = false
		return nil
	}
	b.checkOverwrite(s, t)
	static, ok := b.staticPartition(s, t)
	targets, colsOK := b.targets(s, t, static)
	b.origin, b.sink = []string{t.Name}, t
	out := b.topQuery(s.Query)
	b.sink = nil
	if !ok || !colsOK || out == nil {
		return nil
	}
	if !b.checkCount(s, t, out, targets, static) {
		return nil
	}
	node := b.assign(s, t, out, targets, static)
	if node == nil {
		return nil
	}
	b.CheckOver(node)
	ins := &Insert{Input: node, Table: t, Overwrite: s.Overwrite, Span: s.Target.Span()}
	if s.Overwrite {
		ins.Static = staticRow(t, static)
	}
	b.checkSink(ins)
	b.lintState(ins.Input)
	if s.Columns == nil {
		b.lintNames(out, targets)
	}
	return ins
}

// template reports the use of a table that is good for LIKE alone.
func (b *Binder) template(code diag.Code, at diag.Span, t *catalog.Table) {
	why := "has no 'connector'"
	if t.Option("connector") != nil {
		why = "is not complete"
	}
	b.errorf(code, at, "table %q %s, it is a template for LIKE", t.Name, why).WithNote(t.Span, "declared here")
}

func (b *Binder) insertTarget(n *syntax.Name) *catalog.Table {
	name, ok := b.simpleName(n)
	if !ok {
		return nil
	}
	o, ok := b.Catalog.Lookup(name)
	if !ok {
		b.unknownTable(n, name, b.Catalog.Names())
		return nil
	}
	b.Index.table(n.Last().Span(), o)
	switch o := o.(type) {
	case *catalog.View:
		b.errorf(diag.CodeNotASink, n.Span(), "%q is a view; INSERT writes tables", name).
			WithNote(o.Span, "declared here")
		return nil
	case *catalog.Broken:
		return nil
	}
	t := o.(*catalog.Table)
	switch {
	case t.Wide != nil:
		b.errorf(diag.CodeNotASink, n.Span(), "%q is a wide table; its branches fill it", name).
			WithNote(t.Span, "declared here")
	case t.Connector == nil:
		b.template(diag.CodeNotASink, n.Span(), t)
	case !t.Spec.Sink:
		b.errorf(diag.CodeNotASink, n.Span(), "connector %q cannot be written", t.Spec.Name).
			WithNote(t.Span, "table %q is declared here", name)
	default:
		return t
	}
	return nil
}

// staticPartition binds PARTITION (a = x): literal values by column.
func (b *Binder) staticPartition(s *syntax.Insert, t *catalog.Table) (map[string]expr.Expr, bool) {
	static := map[string]expr.Expr{}
	ok := true
	for _, p := range s.Partition {
		name := p.Column.Name
		c, found := t.Column(name)
		if !found || !slices.Contains(t.PartitionKeys, name) {
			b.errorf(diag.CodeBadPartition, p.Column.Span(), "%q is not a partition column of %q", name, t.Name).
				WithNearest(name, t.PartitionKeys)
			ok = false
			continue
		}
		if p.Value == nil {
			continue // dynamic: the query gives it
		}
		if _, dup := static[name]; dup {
			b.errorf(diag.CodeBadPartition, p.Column.Span(), "partition column %q is given twice", name)
			ok = false
			continue
		}
		v := b.scalar(p.Value, &scope{}, "PARTITION")
		if v == nil {
			ok = false
			continue
		}
		e, fits := assignTo(v, nil, c.Type)
		if !fits {
			b.errorf(diag.CodeTypeMismatch, p.Value.Span(), "partition column %q is %s, this is %s", name, c.Type.WithNullable(true), v.Type().WithNullable(true))
			ok = false
			continue
		}
		static[name] = e
	}
	return static, ok
}

// targets are the columns that the query's columns go to, in order.
func (b *Binder) targets(s *syntax.Insert, t *catalog.Table, static map[string]expr.Expr) ([]*catalog.Column, bool) {
	writable := t.WritableColumns()
	if s.Columns == nil {
		var out []*catalog.Column
		for _, c := range writable {
			if _, fixed := static[c.Name]; !fixed {
				out = append(out, c)
			}
		}
		return out, true
	}
	var out []*catalog.Column
	ok := true
	for _, id := range s.Columns {
		c, found := t.Column(id.Name)
		switch {
		case !found:
			b.errorf(diag.CodeUnknownColumn, id.Span(), "column %q not found in %q", id.Name, t.Name).WithNearest(id.Name, t.ColumnNames())
			ok = false
			continue
		case !c.Writable():
			b.errorf(diag.CodeUnknownColumn, id.Span(), "column %q cannot be written: it is %s", id.Name, kindName(c))
			ok = false
			continue
		case slices.Contains(out, c):
			b.errorf(diag.CodeDuplicateColumn, id.Span(), "column %q is listed twice", id.Name)
			ok = false
			continue
		}
		if _, fixed := static[id.Name]; fixed {
			b.errorf(diag.CodeBadPartition, id.Span(), "column %q has its value from PARTITION", id.Name)
			ok = false
			continue
		}
		out = append(out, c)
	}
	for _, c := range writable {
		if _, fixed := static[c.Name]; ok && !fixed && !c.Type.Nullable && !slices.Contains(out, c) {
			b.errorf(diag.CodeColumnCount, s.Columns[0].Span().To(s.Columns[len(s.Columns)-1].Span()),
				"column %q of %q is NOT NULL and is not in the list", c.Name, t.Name)
			ok = false
		}
	}
	return out, ok
}

func kindName(c *catalog.Column) string {
	if c.Kind == catalog.Computed {
		return "computed"
	}
	return "VIRTUAL metadata"
}

func (b *Binder) checkCount(s *syntax.Insert, t *catalog.Table, out *Output, targets []*catalog.Column, static map[string]expr.Expr) bool {
	n := len(out.Columns())
	if n == len(targets) {
		return true
	}
	d := b.errorf(diag.CodeColumnCount, s.Target.Span(), "the query gives %d columns, %q takes %d", n, t.Name, len(targets))
	if n < len(targets) {
		d.WithHelp("missing: %s and what follows", targets[n].Name)
	} else if len(targets) > 0 {
		d.WithNote(out.Spans[len(targets)], "the first column too many")
	}
	for _, c := range targets {
		if c.Kind == catalog.Metadata {
			d.WithHelp("metadata column %q counts, since it is not VIRTUAL", c.Name)
		}
	}
	if len(static) > 0 {
		d.WithHelp("columns given in PARTITION (...) are not part of the query")
	}
	return false
}

// assignTo casts e to a column's type as assignment allows. narrow is Flink's
// type of a widened SUM.
func assignTo(e expr.Expr, narrow *rt.Type, to rt.Type) (expr.Expr, bool) {
	from := e.Type()
	switch {
	case from.Kind == rt.Null:
		return expr.Null(to), true
	case sqltypes.Assignable(from, to):
		return castTo(e, to), true
	case narrow != nil && sqltypes.Assignable(*narrow, to):
		// A SUM that we widen goes back to Flink's type, checked by CAST.
		return castTo(e, to), true
	}
	// A literal goes where its value fits exactly.
	lit, ok := e.(*expr.Literal)
	if !ok || !(from.IsNumeric() && to.IsNumeric() || from.IsString() && to.IsString() || from.IsTimestamp() && to.IsTimestamp()) {
		return nil, false
	}
	c, err := expr.NewCast(lit, to, false)
	if err != nil {
		return nil, false
	}
	folded, ok := expr.Fold(c).(*expr.Literal)
	if !ok || folded.Value.IsNull(0) != lit.Value.IsNull(0) {
		return nil, false
	}
	back, err := expr.NewCast(folded, from, false)
	if err != nil || expr.Fold(back).String() != lit.String() {
		return nil, false
	}
	return folded, true
}

// assign makes the projection from the query's columns to the table's
// writable columns, with all implicit casts written out.
func (b *Binder) assign(s *syntax.Insert, t *catalog.Table, out *Output, targets []*catalog.Column, static map[string]expr.Expr) Node {
	cols := out.Columns()
	if v, isValues := out.Node.(*Values); isValues && len(v.Rows) > 1 {
		if n, ok := b.assignValues(v, targets); ok {
			out = &Output{Node: n, Spans: out.Spans, Named: out.Named}
			cols = out.Columns()
		}
	}
	exprs := make([]expr.Expr, len(cols))
	p := &Project{Input: out.Node}
	if below, ok := out.Node.(*Project); ok {
		p.Input = below.Input
		copy(exprs, below.Exprs)
	} else if v, ok := out.Node.(*Values); ok && len(v.Rows) == 1 {
		copy(exprs, v.Rows[0])
		p.Input = oneRow(b)
	} else {
		for i := range cols {
			exprs[i] = cols[i].Ref()
		}
	}
	ok := true
	given := map[string]int{}
	for i, c := range targets {
		given[c.Name] = i
		e, fits := assignTo(exprs[i], cols[i].Narrow, c.Type)
		if !fits {
			from := cols[i].Type.WithNullable(true)
			to := c.Type.WithNullable(true)
			b.errorf(diag.CodeTypeMismatch, out.Spans[i], "column %q of %q is %s, this is %s: %s", c.Name, t.Name, to, from, sqltypes.WhyNot(cols[i].Type, c.Type)).
				WithNote(c.Span, "the column is declared here").
				WithHelp("write CAST(... AS %s), or TRY_CAST for NULL where it does not fit", to)
			ok = false
			continue
		}
		exprs[i] = e
	}
	if !ok {
		return nil
	}
	for _, c := range t.WritableColumns() {
		var e expr.Expr
		det := fn.Deterministic
		if i, is := given[c.Name]; is {
			e, det = exprs[i], cols[i].Determinism
		} else if x, fixed := static[c.Name]; fixed {
			e = x
		} else {
			e = expr.Null(c.Type)
		}
		col := derive(b.id, c.Name, e, p.Input.Columns())
		col.Determinism = max(col.Determinism, det)
		p.Exprs, p.Cols = append(p.Exprs, e), append(p.Cols, col)
	}
	b.checkDeterminism(s, t, p, given, out)
	return p
}

// assignValues casts the literals of VALUES one by one, so that each goes
// where its value fits.
func (b *Binder) assignValues(v *Values, targets []*catalog.Column) (*Values, bool) {
	n := &Values{Cols: append([]Column(nil), v.Cols...)}
	for _, row := range v.Rows {
		cast := make([]expr.Expr, len(row))
		for i, e := range row {
			x, ok := assignTo(e, nil, targets[i].Type)
			if !ok {
				return nil, false
			}
			cast[i] = x
		}
		n.Rows = append(n.Rows, cast)
	}
	for i := range n.Cols {
		n.Cols[i].ID = b.id()
		n.Cols[i].Type = targets[i].Type.WithNullable(v.Cols[i].Type.Nullable || v.Cols[i].Type.Kind == rt.Null)
	}
	return n, true
}

// checkDeterminism refuses the clock and chance in partition columns and keys:
// a replay would write the row somewhere else.
func (b *Binder) checkDeterminism(s *syntax.Insert, t *catalog.Table, p *Project, given map[string]int, out *Output) {
	for i, c := range p.Cols {
		what := ""
		switch {
		case slices.Contains(t.PartitionKeys, c.Name):
			what = "partition column"
		case slices.Contains(t.PrimaryKey, c.Name):
			what = "key column"
		}
		if what == "" || p.Cols[i].Determinism == fn.Deterministic && !p.Cols[i].Lookup {
			continue
		}
		span := s.Target.Span()
		if at, ok := given[c.Name]; ok {
			span = out.Spans[at]
		}
		if p.Cols[i].Lookup {
			b.errorf(diag.CodeNondeterministic, span, "%s %q must not depend on a lookup: a replay may find another row, and would write elsewhere", what, c.Name).
				WithHelp("use a column of the row itself")
			continue
		}
		b.errorf(diag.CodeNondeterministic, span, "%s %q must not depend on the clock or on chance: a replay would write the row elsewhere", what, c.Name).
			WithHelp("use the row's own time, e.g. DATE_FORMAT(ts, 'yyyy-MM-dd')")
	}
}

// lintNames warns when a column goes, by position, where another column has
// its name.
func (b *Binder) lintNames(out *Output, targets []*catalog.Column) {
	cols := out.Columns()
	for i, c := range cols {
		if i >= len(targets) || !out.Named[i] || c.Name == targets[i].Name {
			continue
		}
		for j, other := range targets {
			if j != i && other.Name == c.Name {
				b.Diags.Add(diag.Warnf(diag.CodeColumnNameMismatch, out.Spans[i],
					"INSERT goes by position: %q is written into column %q", c.Name, targets[i].Name).
					WithNote(other.Span, "%q is declared here", c.Name).
					WithHelp("reorder the query, or name the columns: INSERT INTO t (a, b) ..."))
				return
			}
		}
	}
}
