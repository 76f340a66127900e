package plan

import (
	"errors"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// Query binds a query as a statement.
func (b *Binder) Query(q *syntax.Query) *Output {
	b.origin, b.sink = []string{"query"}, nil
	out := b.topQuery(q)
	if out == nil || !b.noUntyped(out) {
		return nil
	}
	b.CheckOver(out.Node)
	return out
}

// topQuery binds the query of a statement or of a view.
func (b *Binder) topQuery(q *syntax.Query) *Output {
	b.top = true
	return b.query(q, nil)
}

// query binds a query; ctes are those it may refer to.
func (b *Binder) query(q *syntax.Query, ctes []*cte) *Output {
	top := b.top
	b.top = false
	used := len(ctes)
	for _, d := range q.With {
		for _, c := range ctes[used:] {
			if c.def.Name.Name == d.Name.Name {
				b.errorf(diag.CodeDuplicateTable, d.Name.Span(), "there are two CTEs named %q", d.Name.Name).
					WithNote(c.def.Name.Span(), "the first one is here")
			}
		}
		ctes = append(ctes[:len(ctes):len(ctes)], &cte{def: d, outer: ctes})
	}
	out := b.queryBody(q, ctes, top)
	b.checkUnused(q, ctes[used:])
	return out
}

// checkUnused binds CTEs that nothing refers to, for their faults alone.
func (b *Binder) checkUnused(q *syntax.Query, ctes []*cte) {
	for i, c := range ctes {
		name := c.def.Name.Name
		refers := func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.TableRef:
				return n.Name.String() == name
			case *syntax.TableArg:
				return n.Name != nil && n.Name.String() == name
			case *syntax.ExplicitTable:
				return n.Name.String() == name
			}
			return false
		}
		used := syntax.Any(q.Body, refers)
		for _, later := range ctes[i+1:] {
			used = used || syntax.Any(later.def.Query, refers)
		}
		if !used {
			b.query(c.def.Query, c.outer)
		}
	}
}

func (b *Binder) queryBody(q *syntax.Query, ctes []*cte, top bool) *Output {
	saved := b.ordering
	b.ordering = orderingOf(q, top)
	defer func() { b.ordering = saved }()
	if s, ok := q.Body.(*syntax.Select); ok {
		out := b.selectQuery(s, ctes, q.OrderBy)
		return b.limit(q, out)
	}
	if _, parens := q.Body.(*syntax.Query); parens {
		b.top = top && len(q.OrderBy) == 0 && q.Limit == nil && q.Offset == nil
	}
	out := b.queryExpr(q.Body, ctes)
	if out == nil {
		return nil
	}
	if len(q.OrderBy) > 0 {
		sel := &selection{b: b, out: out}
		sel.plainScope = &scope{rels: []relation{{cols: out.Columns()}}}
		out = sel.orderBy(q.OrderBy)
	}
	return b.limit(q, out)
}

func (b *Binder) queryExpr(e syntax.QueryExpr, ctes []*cte) *Output {
	switch e := e.(type) {
	case *syntax.Select:
		return b.selectQuery(e, ctes, nil)
	case *syntax.SetOp:
		return b.setOp(e, ctes)
	case *syntax.Values:
		return b.values(e)
	case *syntax.ExplicitTable:
		return b.namedTable(e.Name, ctes)
	case *syntax.Query:
		return b.query(e, ctes)
	}
	b.notYet(e.Span(), "this kind of query")
	return nil
}

// limit adds LIMIT and OFFSET.
func (b *Binder) limit(q *syntax.Query, out *Output) *Output {
	if out == nil || q.Limit == nil && q.Offset == nil {
		return out
	}
	at := q.Limit
	if at == nil {
		at = q.Offset
	}
	limit, ok1 := b.count(q.Limit, "LIMIT", -1)
	offset, ok2 := b.count(q.Offset, "OFFSET", 0)
	if !ok1 || !ok2 {
		return nil
	}
	saved := b.stateID
	if id := stateIDOf(q.Body); id != "" {
		b.stateID = id
	}
	top := b.firstRows(out, limit, offset, at.Span())
	b.stateID = saved
	if top != nil {
		return top
	}
	if !b.boundedOnly("LIMIT", at.Span()) {
		return nil
	}
	n := &Sort{Input: out.Node, Limit: limit, Offset: offset}
	if s, ok := out.Node.(*Sort); ok && s.Limit < 0 && s.Offset == 0 {
		n.Input, n.Keys = s.Input, s.Keys
	}
	return &Output{Node: n, Spans: out.Spans, Named: out.Named}
}

// count evaluates a constant row count.
func (b *Binder) count(e syntax.Expr, clause string, def int64) (int64, bool) {
	if e == nil {
		return def, true
	}
	if n, ok := e.(*syntax.NumberLit); ok && n.Kind == syntax.IntegerNumber {
		v, err := strconv.ParseInt(n.Text, 10, 64)
		if err == nil {
			return v, true
		}
		if errors.Is(err, strconv.ErrRange) {
			b.errorf(diag.CodeBadArgument, e.Span(), "%s %s is more than the %d rows that there can be", clause, n.Text, int64(math.MaxInt64)).
				WithHelp("without %s all rows are there", clause)
			return 0, false
		}
	}
	b.errorf(diag.CodeBadArgument, e.Span(), "%s takes a number of rows, 0 to %d", clause, int64(math.MaxInt64))
	return 0, false
}

// boundedOnly refuses what needs its whole input in streaming mode.
func (b *Binder) boundedOnly(what string, at diag.Span) bool {
	if !b.streaming() {
		return true
	}
	d := b.errorf(diag.CodeBoundedOnly, at, "%s needs its whole input, which a streaming job never has", what).
		WithHelp("SET 'execution.runtime-mode' = 'batch' if the input ends")
	if what == "LIMIT" {
		d.WithHelp("ORDER BY ... LIMIT n, together, give the first rows of a stream, as they change")
	}
	return false
}

func (b *Binder) values(v *syntax.Values) *Output {
	width := len(v.Rows[0].Items)
	n := &Values{}
	out := &Output{Node: n}
	ok := true
	for _, row := range v.Rows {
		if len(row.Items) != width {
			b.errorf(diag.CodeColumnCount, row.Span(), "this row has %d values, the first one %d", len(row.Items), width)
			ok = false
			continue
		}
		exprs := make([]expr.Expr, width)
		for i, item := range row.Items {
			if exprs[i] = b.scalar(item, &scope{}, "VALUES"); exprs[i] == nil {
				ok = false
			}
		}
		n.Rows = append(n.Rows, exprs)
	}
	if !ok {
		return nil
	}
	for i := range width {
		ts := make([]rt.Type, len(n.Rows))
		for r := range n.Rows {
			ts[r] = n.Rows[r][i].Type()
		}
		t, bad, ok := commonType(ts)
		if !ok {
			b.errorf(diag.CodeTypeMismatch, v.Rows[bad].Items[i].Span(), "column %d of VALUES is %s here and %s above", i+1,
				ts[bad].WithNullable(true), ts[bad-1].WithNullable(true))
			return nil
		}
		for r := range n.Rows {
			n.Rows[r][i] = castTo(n.Rows[r][i], t)
		}
		n.Cols = append(n.Cols, Column{ID: b.id(), Name: "EXPR$" + strconv.Itoa(i), Type: t, WindowOnly: true})
		out.Spans = append(out.Spans, v.Rows[0].Items[i].Span())
		out.Named = append(out.Named, false)
	}
	for _, row := range n.Rows {
		for i, e := range row {
			n.Cols[i].Determinism = max(n.Cols[i].Determinism, expr.DeterminismOf(e))
		}
	}
	return out
}

// commonType is the type that all of ts go into; bad is the first that does
// not fit those before it.
func commonType(ts []rt.Type) (t rt.Type, bad int, ok bool) {
	if t, ok = rt.Common(ts...); ok || len(ts) == 0 {
		return t, 0, true
	}
	// What has no common type has none with more types either.
	bad = sort.Search(len(ts)-1, func(i int) bool {
		_, fits := rt.Common(ts[:i+1]...)
		return !fits
	})
	return t, bad, false
}

// castTo is a cast that is known to exist; literals are folded.
func castTo(e expr.Expr, t rt.Type) expr.Expr {
	if e.Type().EqualIgnoringNull(t) {
		return e
	}
	if e.Type().Kind == rt.Null {
		return expr.Null(t)
	}
	c, err := expr.NewCast(e, t, false)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	if _, ok := e.(*expr.Literal); ok {
		return expr.Fold(c)
	}
	return c
}

// keepOrder projects n to the given columns, by id, unless it has them
// already.
func keepOrder(n Node, cols []Column) Node {
	have := n.Columns()
	same := len(have) == len(cols)
	for i := 0; same && i < len(cols); i++ {
		same = have[i].ID == cols[i].ID && have[i].Name == cols[i].Name
	}
	if same {
		return n
	}
	p := &Project{Input: n}
	for i := range cols {
		p.Exprs = append(p.Exprs, cols[i].Ref())
		p.Cols = append(p.Cols, cols[i])
	}
	return p
}

// fromLabel names the tables of a FROM clause for state paths.
func fromLabel(t syntax.TableExpr) string {
	var names []string
	if t == nil {
		return ""
	}
	syntax.Walk(t, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.TableRef:
			names = append(names, n.Name.Last().Name)
		case *syntax.TableArg:
			if n.Name != nil {
				names = append(names, n.Name.Last().Name)
			}
		case *syntax.Query:
			return false
		}
		return true
	})
	return strings.Join(names, "+")
}

// streaming: what is bound will run without an end. The query of a view is bound for
// its faults alone when it is declared.
func (b *Binder) streaming() bool { return !b.Batch && !b.declaring }
