package plan

import (
	"errors"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
	"slices"
	"strings"
)

func (eb *exprBinder) aggregateCall(agg *fn.Aggregate, c *syntax.Call, input Node) *aggCall {
	b := eb.b
	switch {
	case len(c.OrderBy) > 0 || len(c.WithinGroup) > 0:
		b.notYet(c.Span(), "ORDER BY inside an aggregate").
			WithHelp("%s orders by row time", agg.Name)
		return nil
	}
	inner := &exprBinder{b: b, sc: eb.sc, clause: "an aggregate", spans: eb.spans}
	if eb.clause == "OVER" {
		inner.group = eb.group // an aggregate with OVER goes over those of GROUP BY
	}
	var args []expr.Expr
	ok := true
	for _, a := range c.Args {
		e := inner.bind(a)
		ok = ok && e != nil
		args = append(args, e)
	}
	var filter expr.Expr
	if c.Filter != nil {
		filter = inner.predicate(c.Filter)
		ok = ok && filter != nil
	}
	if !ok {
		return nil
	}
	if c.Star && agg.Name != "COUNT" {
		b.errorf(diag.CodeBadArgument, c.Span(), "%s(*) has no meaning; only COUNT takes *", agg.Name)
		return nil
	}
	opts := fn.AggOptions{Distinct: c.Distinct, KeepNulls: c.Nulls == syntax.RespectNulls}
	bound, err := agg.Bind(expr.ArgsOf(args...), opts)
	if err != nil {
		eb.argError(err, c.Span(), c.Args)
		return nil
	}
	ac := &aggCall{span: c.Span(), call: AggCall{Agg: agg, Bound: bound, Options: opts, Filter: filter}}
	var texts []string
	for i, a := range args {
		cast, err := expr.Implicit(a, bound.Params[i])
		if err != nil {
			b.errorf(diag.CodeBadArgument, c.Args[i].Span(), "argument %d of %s: %s", i+1, agg.Name, err)
			return nil
		}
		ac.call.Args = append(ac.call.Args, cast)
		texts = append(texts, cast.String())
	}
	ac.call.Text = callText(agg.Name, opts, c.Star, texts, filter)
	ac.key = Key(expr.NewRow(nil, append(ac.call.Args, filterOrTrue(filter))...)) + callText(agg.Name, opts, c.Star, nil, nil)
	ac.col = Column{Name: ac.call.Text, Type: bound.Return}
	for _, a := range append(ac.call.Args, filterOrTrue(filter)) {
		ac.col.Determinism = max(ac.col.Determinism, expr.DeterminismOf(a))
		if input != nil {
			for _, id := range expr.Columns(a) {
				if col, ok := ColumnByID(input.Columns(), id); ok {
					ac.col.Determinism = max(ac.col.Determinism, col.Determinism)
				}
			}
		}
	}
	if input != nil && len(args) == 1 && (agg.Name == "MAX" || agg.Name == "MIN") {
		if ref, bare := args[0].(*expr.Column); bare {
			if col, ok := ColumnByID(input.Columns(), ref.Index); ok && (col.RowTime || col.Changing != NoTime) {
				ac.col.Changing = GroupTime
			}
		}
	}
	eb.aggregateTypes(ac, agg, args, c)
	return ac
}

func filterOrTrue(f expr.Expr) expr.Expr {
	if f == nil {
		return expr.Bool(true)
	}
	return f
}

func (eb *exprBinder) aggregateTypes(ac *aggCall, agg *fn.Aggregate, args []expr.Expr, c *syntax.Call) {
	if len(args) != 1 || !args[0].Type().IsInteger() {
		return
	}
	arg := args[0].Type().WithNullable(true)
	switch agg.Name {
	case "SUM":
		if ac.call.Bound.Return.Kind != arg.Kind {
			ac.col.Narrow = &arg
		}
	case "AVG", "VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP":
		eb.b.Diags.Add(diag.Infof(diag.CodeIntegerAverage, c.Span(), "%s of %s is %s: fractions are cut off", agg.Name, arg, ac.call.Bound.Return.WithNullable(true)).
			WithHelp("%s(CAST(x AS DOUBLE)) keeps them", agg.Name))
	}
}

func callText(name string, o fn.AggOptions, star bool, args []string, filter expr.Expr) string {
	var sb strings.Builder
	sb.WriteString(name + "(")
	if o.Distinct {
		sb.WriteString("DISTINCT ")
	}
	if star {
		sb.WriteString("*")
	}
	sb.WriteString(strings.Join(args, ", "))
	if o.KeepNulls {
		sb.WriteString(" RESPECT NULLS")
	}
	sb.WriteString(")")
	if filter != nil {
		sb.WriteString(" FILTER (WHERE " + filter.String() + ")")
	}
	return sb.String()
}

func (eb *exprBinder) argError(err error, call diag.Span, args []syntax.Expr) {
	span := call
	var ae *fn.ArgError
	if errors.As(err, &ae) && ae.Arg >= 0 && ae.Arg < len(args) && args[ae.Arg] != nil {
		span = args[ae.Arg].Span()
		if lit, ok := args[ae.Arg].(*syntax.StringLit); ok && ae.Offset >= 0 && lit.Text == nil {
			start := lit.Span().Start + 1 + ae.Offset
			if start < lit.Span().End {
				span = diag.Span{File: lit.Span().File, Start: start, End: lit.Span().End - 1}
			}
		}
	}
	eb.b.errorf(diag.CodeBadArgument, span, "%s", err)
}

func (g *grouping) aggregate(s *syntax.Select) Node {
	b := g.sel.b
	at := s.Span()
	switch {
	case s.GroupBy != nil:
		at = s.GroupBy.Span()
	case len(g.calls) > 0:
		at = g.calls[0].span
	}
	w, timeID, given, ok := g.window(at)
	if !ok {
		return nil
	}
	var firing *Firing
	if w != nil {
		if firing, ok = b.firing(w, at); !ok {
			return nil
		}
	}
	in := g.input.Columns()
	pre := &Project{Input: g.input}
	add := func(e expr.Expr, name string) *expr.Column {
		key := Key(e)
		for i, old := range pre.Exprs {
			if Key(old) == key {
				return pre.Cols[i].Ref()
			}
		}
		c := derive(b.id, name, e, in)
		pre.Exprs, pre.Cols = append(pre.Exprs, e), append(pre.Cols, c)
		return c.Ref()
	}
	a := &Aggregate{Window: w, Updates: w == nil && !b.Batch, TTL: b.ttlOf(g.sel.plainScope.rels), Given: given, Firing: firing, Time: timeID, Span: at, Path: b.path("aggregate")}
	for i := range g.keys {
		k := &g.keys[i]
		if w != nil && g.windowRole(k.e) != nil {
			continue
		}
		ref := add(k.e, keyName(k.e))
		c, _ := ColumnByID(pre.Cols, ref.Index)
		k.col = *c
		// The state of a key goes back together with the positions of its rows, so
		// that it does not matter that a replay may look up another key.
		k.col.forgetTime()
		k.col.Lookup = false
		a.Keys = append(a.Keys, ref.Index)
		a.Cols = append(a.Cols, k.col)
	}
	for _, c := range g.calls {
		call := c.call
		call.Args = nil
		for _, arg := range c.call.Args {
			call.Args = append(call.Args, add(arg, arg.String()))
		}
		if call.Filter != nil {
			call.Filter = add(call.Filter, call.Filter.String())
		}
		a.Aggs = append(a.Aggs, call)
		a.Cols = append(a.Cols, c.col)
	}
	if w != nil {
		for _, id := range []int{timeID, given.start(), given.end()} {
			if tc, ok := ColumnByID(in, id); ok {
				add(tc.Ref(), tc.Name)
			}
		}
		cols := b.windowColumns(w, 0)
		for i := range cols {
			cols[i].Window.Time = cols[WindowTime].ID
		}
		for i := range g.keys {
			if r := g.windowRole(g.keys[i].e); r != nil {
				g.keys[i].col = cols[r.Role]
			}
		}
		a.Cols = append(a.Cols, cols...)
	} else if slices.ContainsFunc(a.Aggs, func(c AggCall) bool { return c.Bound.Ordered }) {
		// FIRST_VALUE and LAST_VALUE go by row time: carry it along.
		for _, c := range in {
			if c.RowTime {
				a.Time = add(c.Ref(), c.Name).Index
				break
			}
		}
	}
	if g.sets != nil {
		if a.Input = g.expand(pre, a); a.Input == nil {
			return nil
		}
		return a
	}
	a.Input = keepIdentity(pre)
	if len(pre.Cols) == 0 { // COUNT(*) alone: rows without columns
		a.Input = g.input
	}
	return a
}

func keyName(e expr.Expr) string {
	if c, ok := e.(*expr.Column); ok {
		return c.Name
	}
	return e.String()
}
