package plan

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	sqltypes "github.com/millrace/millrace/sql/types"
)

// OfflineBranch is a branch of a wide table whose rows are those of one generation of a
// table. It is no input of the node: the table is read when a window goes out.
type OfflineBranch struct {
	Label string
	// At is its place among all branches.
	At int
	// Scan, Filter and Exprs are what is read of the table, the condition over it (nil:
	// none) and the columns of the branch, Cols.
	Scan   *Scan
	Filter expr.Expr
	Exprs  []expr.Expr
	Cols   []Column
	Keys   []int // ids among Cols
	// Generation is the id of a column of Scan, Value what it equals for a window, over
	// window_start and window_end, which are the ids of Bounds.
	Generation  int
	Value       expr.Expr
	Bounds      [2]int
	CreatesRows bool
}

// overTable takes a plan of projections and conditions over one table apart: the
// columns of n as expressions over the scan, and the condition. ok is false if it is
// something else.
func overTable(n Node) (scan *Scan, exprs map[int]expr.Expr, filter expr.Expr, ok bool) {
	switch n := n.(type) {
	case *Scan:
		exprs = map[int]expr.Expr{}
		for i := range n.Cols {
			exprs[n.Cols[i].ID] = n.Cols[i].Ref()
		}
		return n, exprs, nil, true
	case *Project:
		scan, below, filter, ok := overTable(n.Input)
		if !ok {
			return nil, nil, nil, false
		}
		exprs = map[int]expr.Expr{}
		for i := range n.Exprs {
			exprs[n.Cols[i].ID] = over(n.Exprs[i], below)
		}
		return scan, exprs, filter, true
	case *Filter:
		scan, exprs, filter, ok = overTable(n.Input)
		if !ok {
			return nil, nil, nil, false
		}
		p := over(n.Predicate, exprs)
		if filter != nil {
			p = expr.NewAnd(filter, p)
		}
		return scan, exprs, p, true
	}
	return nil, nil, nil, false
}

// over replaces columns by what they are computed from.
func over(e expr.Expr, by map[int]expr.Expr) expr.Expr {
	return expr.Rewrite(e, func(e expr.Expr) expr.Expr {
		if c, ok := e.(*expr.Column); ok {
			if x := by[c.Index]; x != nil {
				return x
			}
		}
		return e
	})
}

// offline binds what an offline branch adds to its query: which column of the table is
// its generation. It reports what cannot be.
func (w *wideBinder) offline(x *wideBranch, sc *scope) bool {
	b, br := w.b, x.ast
	at := br.Label.Span().To(br.Generation.Span())
	scan, exprs, filter, ok := overTable(x.input)
	if !ok {
		b.notYet(br.Query.Span(), "an OFFLINE branch over anything but one table").
			WithHelp("choose and compute columns of one table, also in a view; join in front of it, in a job that writes the table")
		return false
	}
	if t := scan.Table; !t.Bounded() && !t.Spec.Bounded {
		w.fail(diag.CodeWideTable, at, "table %q never ends, and an OFFLINE branch reads a generation to its end", t.Name).
			WithNote(t.Span, "it is declared here").
			WithHelp("a stream is a branch with TIME")
		return false
	}
	c, fields, ok := sc.resolve(b, br.Generation)
	if !ok {
		return false
	}
	ref, bare := exprs[c.ID].(*expr.Column)
	if len(fields) > 0 || !bare || c.Type.IsNested() {
		w.fail(diag.CodeWideTable, br.Generation.Span(), "GENERATION takes a scalar column of the table as it is").
			WithHelp("best a partition column: then nothing else of the table is read")
		return false
	}
	x.offline = &OfflineBranch{Label: br.Label.Name, Scan: scan, Filter: filter, Generation: ref.Index, CreatesRows: br.CreatesRows}
	x.over = exprs
	return true
}

// generation binds which generation belongs to a window, once the window's columns are
// known.
func (w *wideBinder) generation(x *wideBranch, bounds []Column) bool {
	b, o := w.b, x.offline
	e := b.scalar(x.ast.GenExpr, &scope{rels: []relation{{cols: bounds}}}, "GENERATION")
	if e == nil {
		w.ok = false
		return false
	}
	if expr.DeterminismOf(e) != fn.Deterministic {
		w.fail(diag.CodeNondeterministic, x.ast.GenExpr.Span(), "the generation of a window must not depend on the clock or on chance: a replay would take another one").
			WithHelp("compute it from window_start and window_end")
		return false
	}
	c, _ := ColumnByID(o.Scan.Cols, o.Generation)
	v, fits := assignTo(e, nil, c.Type)
	if !fits {
		w.fail(diag.CodeTypeMismatch, x.ast.GenExpr.Span(), "column %q is %s, and the generation %s: %s", c.Name, c.Type.WithNullable(true), e.Type().WithNullable(true), sqltypes.WhyNot(e.Type(), c.Type)).
			WithHelp("CAST(... AS %s)", c.Type.WithNullable(true))
		return false
	}
	o.Value, o.Bounds = v, [2]int{bounds[0].ID, bounds[1].ID}
	return true
}

// describe is the branch for EXPLAIN.
func (o *OfflineBranch) describe() string {
	g, _ := ColumnByID(o.Scan.Cols, o.Generation)
	s := fmt.Sprintf("%s: table=%s, generation %s = %s", o.Label, o.Scan.Table.Name, g.Name, o.Value)
	if o.Filter != nil {
		s += ", condition=" + o.Filter.String()
	}
	if o.CreatesRows {
		s += ", creates rows"
	}
	return s
}

// mergeOffline adds an offline branch and its columns to the merge.
func (w *wideBinder) mergeOffline(n *Wide, at int, br *wideBranch, bounds []Column, keyTypes []rt.Type, take func(string, diag.Span)) {
	o := br.offline
	o.At = at
	if !w.generation(br, bounds) {
		return
	}
	in := br.input.Columns()
	add := func(name string, e expr.Expr) int {
		c := derive(w.b.id, name, e, in)
		if !slices.ContainsFunc(o.Cols, func(x Column) bool { return x.ID == c.ID }) {
			o.Exprs, o.Cols = append(o.Exprs, over(e, br.over)), append(o.Cols, c)
		}
		return c.ID
	}
	for i, k := range w.keys {
		it := br.items[slices.IndexFunc(br.items, func(x wideItem) bool { return x.name == k.Name })]
		o.Keys = append(o.Keys, add(k.Name, castTo(it.e, keyTypes[i])))
	}
	for _, it := range br.items {
		if w.keyIndex(it.name) >= 0 {
			continue
		}
		take(it.name, it.span)
		v := WideValue{Branch: len(n.Offline), Offline: true, Rule: it.rule, Input: -1}
		if it.e != nil {
			v.Input = add(it.name, it.e)
		}
		n.Values = append(n.Values, v)
		n.Cols = append(n.Cols, Column{ID: w.b.id(), Name: it.name, Type: it.typ, Narrow: it.narrow})
	}
	n.Offline = append(n.Offline, *o)
}

// offlineTimeout is 'wide.offline-timeout' in ms.
func (w *wideBinder) offlineTimeout(t *catalog.Table, n *Wide) int64 {
	if o := t.Option(catalog.OfflineTimeoutKey); o != nil && len(n.Offline) == 0 {
		w.fail(diag.CodeBadOption, o.Key.Span(), "'%s' needs an OFFLINE branch: no window waits for anything else", catalog.OfflineTimeoutKey)
	}
	return t.Runtime.Duration(catalog.OfflineTimeoutKey).Milliseconds()
}
