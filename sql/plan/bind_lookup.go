package plan

import (
	"strings"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// joinAsOf binds JOIN t FOR SYSTEM_TIME AS OF a time of processing, a lookup, or of a
// row time, a temporal join.
func (b *Binder) joinAsOf(j *syntax.Join, t *syntax.TableRef, sc *scope) Node {
	first, firstMerged := len(sc.rels), len(sc.merged)
	left := b.from(j.Left, sc)
	mid, midMerged := len(sc.rels), len(sc.merged)
	for _, h := range t.Hints {
		b.notYet(h.Span(), "the hint "+h.Name.Name)
	}
	if left == nil {
		return nil
	}
	ls := sc.part(first, mid, firstMerged, midMerged)
	if c := ls.rowTime(t.AsOf); c != nil {
		return b.joinTemporal(j, t, left, c, ls, sc, first, firstMerged)
	}
	table := b.lookupTable(t)
	if table == nil {
		return nil
	}
	right := &Scan{Table: table, Time: -1}
	for i := range table.Columns {
		c := &table.Columns[i]
		right.Cols = append(right.Cols, Column{ID: b.id(), Name: c.Name, Type: c.Type, Lookup: true})
		right.Ordinals = append(right.Ordinals, i)
	}
	if b.relate(&Output{Node: right}, t.Name.Last().Name, t.Alias, sc) == nil {
		return nil
	}
	rs := sc.part(mid, len(sc.rels), midMerged, len(sc.merged))
	if !b.lookupKind(j) || !b.processingTime(t, ls) || !b.lookupPlace(left, j.Op.Span()) {
		return nil
	}
	on, shared, ok := b.joinCondition(j, ls, rs, sc.part(first, len(sc.rels), firstMerged, len(sc.merged)))
	if !ok {
		return nil
	}
	n := &Lookup{Input: left, Kind: joinKinds[j.Kind], Table: table, Right: right.Cols, Ordinals: right.Ordinals, Span: j.Op.Span()}
	if !n.setKeys(b, Conjuncts(on), t) || !b.checkLookup(n, t) {
		return nil
	}
	n.Cols = n.columnsOver(left, n.Right)
	for i := mid; i < len(sc.rels); i++ {
		sc.rels[i].cols = retyped(sc.rels[i].cols, n.Cols)
	}
	if len(shared) == 0 {
		return n
	}
	return b.mergeColumns(n, n.Kind, shared, sc, firstMerged)
}

// lookupTable finds a table that can be looked up; nil means that something was
// reported.
func (b *Binder) lookupTable(t *syntax.TableRef) *catalog.Table {
	name, ok := b.simpleName(t.Name)
	if !ok {
		return nil
	}
	o, ok := b.Catalog.Lookup(name)
	if !ok {
		b.unknownTable(t.Name, name, b.Catalog.Names())
		return nil
	}
	b.Index.table(t.Name.Last().Span(), o)
	table, ok := o.(*catalog.Table)
	if !ok {
		if _, broken := o.(*catalog.Broken); !broken {
			b.notYet(t.Name.Span(), "FOR SYSTEM_TIME AS OF of anything but a table").
				WithHelp("look up the table below it, and compute over the join")
		}
		return nil
	}
	if table.Connector == nil {
		b.template(diag.CodeNotASource, t.Name.Span(), table)
		return nil
	}
	if !table.Spec.Lookup {
		d := b.errorf(diag.CodeNotASource, t.Name.Span(), "tables of connector %q cannot be looked up by key", table.Spec.Name).
			WithNote(table.Span, "table %q is declared here", table.Name)
		if len(b.Lookups) > 0 {
			d.WithHelp("those of %s can", strings.Join(b.Lookups, ", "))
		}
		return nil
	}
	for i := range table.Columns {
		if c := &table.Columns[i]; c.Kind == catalog.Computed {
			b.notYet(t.Name.Span(), "a lookup of a table with computed columns").
				WithNote(c.Span, "this one is computed").
				WithHelp("declare the table without it, and compute over the join")
			return nil
		}
	}
	return table
}

// lookupKind reports joins that are none of a lookup.
func (b *Binder) lookupKind(j *syntax.Join) bool {
	switch j.Kind {
	case syntax.InnerJoin, syntax.LeftJoin:
		return true
	case syntax.RightJoin, syntax.FullJoin:
		b.errorf(diag.CodeBadArgument, j.Op.Span(), "%s with FOR SYSTEM_TIME AS OF: rows without a match are known of the left side alone", joinName(j)).
			WithHelp("write JOIN or LEFT JOIN")
	default:
		b.errorf(diag.CodeBadArgument, j.Op.Span(), "%s with FOR SYSTEM_TIME AS OF has no condition, and a lookup needs a key", joinName(j)).
			WithHelp("write JOIN ... ON o.k = d.k")
	}
	return false
}

// processingTime makes sure that the time of a lookup is that of processing.
func (b *Binder) processingTime(t *syntax.TableRef, left *scope) bool {
	const declare = "declare a column with it in the left table: proc AS PROCTIME(), and write AS OF o.proc"
	ref, ok := t.AsOf.(*syntax.ColumnRef)
	if !ok {
		b.errorf(diag.CodeRowTime, t.AsOf.Span(), "FOR SYSTEM_TIME AS OF takes a column of the left side that is PROCTIME() or row time").WithHelp(declare)
		return false
	}
	c, fields, ok := left.resolve(b, ref)
	switch {
	case !ok:
		return false
	case len(fields) == 0 && c.ProcTime:
		return true
	}
	b.errorf(diag.CodeRowTime, t.AsOf.Span(), "column %q is neither a time of processing nor row time", ref.Parts[len(ref.Parts)-1].Name).WithHelp(declare).
		WithHelp("for the version of a row valid at a row time, the column needs a WATERMARK in its table")
	return false
}

// lookupPlace makes sure that a lookup has its place in front of operators with state.
func (b *Binder) lookupPlace(left Node, at diag.Span) bool {
	what := ""
	Walk(left, func(n Node) bool {
		switch n := n.(type) {
		case *Scan, *Project, *Filter, *Unnest, *Union, *Lookup, *Values:
		case *WindowTable:
			if n.Window.Kind == SessionWindow {
				what = "a table of sessions"
			}
		default:
			kind, _ := describe(n)
			what = map[string]string{"Aggregate": "an aggregate", "Join": "a join", "Over": "a function with OVER",
				"Rank": "a ranking", "Sort": "ORDER BY or LIMIT", "SetOperation": "a set operation"}[kind]
			if what == "" {
				what = kind
			}
		}
		return what == ""
	})
	if what == "" {
		return true
	}
	b.notYet(at, "a lookup join behind "+what).
		WithHelp("look up first, in a sub-query or view, and put the rest above it")
	return false
}

// setKeys makes keys of the equalities with columns of the table, and a condition of
// what is left.
func (n *Lookup) setKeys(b *Binder, conds []expr.Expr, t *syntax.TableRef) bool {
	right := columnSet(n.Right)
	var rest []expr.Expr
	var cast *expr.Cast // of a column that would be a key without it
	for _, c := range conds {
		l, r, nullSafe, ok := equality(c)
		if ok && touches(l, right) {
			l, r = r, l
		}
		if !ok || nullSafe || touches(l, right) {
			rest = append(rest, c)
			continue
		}
		at := lookupColumn(r, n.Right)
		if at < 0 {
			if x, is := r.(*expr.Cast); is && lookupColumn(x.Arg, n.Right) >= 0 {
				cast = x
			}
			rest = append(rest, c)
			continue
		}
		n.Keys = append(n.Keys, LookupKey{Ordinal: n.Ordinals[at], Name: n.Right[at].Name, Value: l})
	}
	n.Condition = conjunction(rest)
	if len(n.Keys) > 0 {
		return true
	}
	d := b.errorf(diag.CodeBadKey, n.Span, "a lookup of table %q needs an equality of one of its columns as they are", n.Table.Name)
	if cast != nil {
		from := cast.Arg.Type().WithNullable(true)
		d.WithNote(t.Span(), "%s is compared as %s, which is no key of the table", cast.Arg, cast.To.WithNullable(true)).
			WithHelp("cast the other side: CAST(... AS %s) = %s", from, cast.Arg)
		return false
	}
	d.WithHelp("ON o.k = d.k, or with a constant: d.kind = 'x'; further conditions may stand beside it")
	return false
}

// touches reports an expression with a column of a set.
func touches(e expr.Expr, set map[int]bool) bool {
	for _, id := range expr.Columns(e) {
		if set[id] {
			return true
		}
	}
	return false
}

// lookupColumn finds the column that an expression is, -1 if it is none. Text of a
// shorter type is the same text as a longer one.
func lookupColumn(e expr.Expr, cols []Column) int {
	if c, ok := e.(*expr.Cast); ok && c.Arg.Type().IsString() && c.To.IsString() && c.To.Length >= c.Arg.Type().Length {
		e = c.Arg
	}
	ref, ok := e.(*expr.Column)
	if !ok {
		return -1
	}
	for i := range cols {
		if cols[i].ID == ref.Index {
			return i
		}
	}
	return -1
}

// lookupHint checks a LOOKUP hint of a SELECT: rows are always asked for a batch at a
// time and tried again until there is an answer, so that only what says so has a
// meaning.
func (b *Binder) lookupHint(h *syntax.Hint, from syntax.TableExpr) {
	named := false
	for _, o := range h.Options {
		switch key, value := o.Key.Value, o.Value.Value; key {
		case "table":
			named = true
			names := lookupNames(from, nil)
			found := false
			for _, n := range names {
				found = found || n == value
			}
			if !found {
				b.errorf(diag.CodeBadArgument, o.Value.Span(), "no table named %q is looked up in this FROM", value).WithNearest(value, names)
			}
		case "async":
			if value != "false" {
				b.notYet(o.Span(), "'async' = '"+value+"' in LOOKUP").
					WithHelp("leave it out: the keys of a whole batch are asked for at once")
			}
		case "output-mode", "capacity", "timeout", "retry-predicate", "retry-strategy", "fixed-delay", "max-attempts", "shuffle":
			b.notYet(o.Span(), "'"+key+"' in LOOKUP").
				WithHelp("leave it out: a lookup that fails is tried again with the lane's back-off (lane.restart.min-delay)")
		default:
			b.errorf(diag.CodeBadArgument, o.Key.Span(), "LOOKUP has no option %q", key).WithNearest(key, []string{"table", "async"})
		}
	}
	if !named {
		b.errorf(diag.CodeBadArgument, h.Span(), "LOOKUP names its table").WithHelp("/*+ LOOKUP('table' = 'd') */")
	}
}

// lookupNames are the tables of a FROM clause that are looked up.
func lookupNames(t syntax.TableExpr, names []string) []string {
	switch t := t.(type) {
	case *syntax.Join:
		return lookupNames(t.Right, lookupNames(t.Left, names))
	case *syntax.TableRef:
		if t.AsOf == nil {
			return names
		}
		if t.Alias != nil {
			return append(names, t.Alias.Name.Name)
		}
		return append(names, t.Name.Last().Name)
	}
	return names
}

// describeLookup is a lookup for EXPLAIN.
func describeLookup(n *Lookup) []string {
	var keys []string
	for _, k := range n.Keys {
		keys = append(keys, k.Name+" = "+k.Value.String())
	}
	d := []string{n.Kind.String(), "table=" + syntax.Quote(n.Table.Name), "keys=[" + strings.Join(keys, ", ") + "]"}
	if n.Condition != nil {
		d = append(d, "condition="+n.Condition.String())
	}
	return append(d, "columns=["+columnNames(n.Right)+"]", "as of processing: another run may find other rows")
}
