package plan

import (
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// wideBinder binds one CREATE WIDE TABLE.
type wideBinder struct {
	b        *Binder
	s        *syntax.CreateWideTable
	name     string
	keys     []*syntax.Ident
	branches []*wideBranch
	window   *Window
	lateness int64
	coverage string
	ok       bool
}

// wideBranch is a bound branch.
type wideBranch struct {
	ast     *syntax.WideBranch
	input   Node // FROM and WHERE
	time    *Column
	version *Column
	items   []wideItem
	// offline is nil for a branch with TIME; over are then the columns of input as
	// expressions over the table.
	offline *OfflineBranch
	over    map[int]expr.Expr
}

// wideItem is one output column of a branch.
type wideItem struct {
	name   string
	span   diag.Span
	e      expr.Expr // the key, or the value that the rule merges; nil for COUNT(*)
	rule   Rule
	typ    rt.Type // of the merged value
	narrow *rt.Type
}

// WideTable binds a wide table: the table for the catalog and the plan that
// fills it. nil means that something was reported.
func (b *Binder) WideTable(s *syntax.CreateWideTable, build *catalog.Builder) (*catalog.Table, *Insert) {
	w := &wideBinder{b: b, s: s, name: s.Name.Last().Name, ok: true}
	b.origin, b.sink = []string{w.name}, nil
	w.primaryKey()
	w.windowClause()
	for _, br := range s.Branches {
		if x := w.branch(br); x != nil {
			w.branches = append(w.branches, x)
		} else {
			w.ok = false
		}
	}
	shell, ok := build.WideShell(s)
	if !ok || !w.ok || len(w.keys) == 0 {
		return nil, nil
	}
	if shell.Runtime.Has("wide.coverage-column") {
		w.coverage = shell.Runtime.String("wide.coverage-column")
	}
	node := w.merge(shell)
	if node == nil {
		return nil, nil
	}
	return w.table(shell, node, build)
}

func (w *wideBinder) fail(code diag.Code, span diag.Span, format string, args ...any) *diag.Diagnostic {
	w.ok = false
	return w.b.errorf(code, span, format, args...)
}

func (w *wideBinder) primaryKey() {
	for _, e := range w.s.Elements {
		k, ok := e.(*syntax.PrimaryKeyDef)
		if !ok {
			continue
		}
		if len(w.keys) > 0 {
			w.fail(diag.CodeBadKey, k.Span(), "a table has one primary key")
			return
		}
		if !k.NotEnforced {
			w.fail(diag.CodeBadKey, k.Span(), "a primary key is not checked here").WithHelp("write PRIMARY KEY (...) NOT ENFORCED")
		}
		w.keys = k.Columns
	}
	if len(w.keys) == 0 {
		w.fail(diag.CodeBadKey, w.s.Name.Span(), "a wide table needs PRIMARY KEY (...) NOT ENFORCED: the columns that rows are merged by")
	}
}

func (w *wideBinder) windowClause() {
	size, ok := w.b.interval(w.s.Window.Size)
	var offset int64
	if w.s.Window.Offset != nil {
		o, ok2 := w.b.interval(w.s.Window.Offset)
		offset, ok = o, ok && ok2
	}
	if w.s.Lateness != nil {
		l, ok2 := w.b.interval(w.s.Lateness)
		w.lateness, ok = l, ok && ok2
		if ok2 && l < 0 {
			w.fail(diag.CodeBadWindow, w.s.Lateness.Span(), "ALLOWED LATENESS must not be negative")
		}
	}
	if !ok {
		w.ok = false
		return
	}
	if size <= 0 {
		w.fail(diag.CodeBadWindow, w.s.Window.Size.Span(), "a window's size must be above zero")
		return
	}
	w.window = &Window{Size: size, Offset: offset, RowTime: true}
}

// branch binds one branch; nil means that something was reported.
func (w *wideBinder) branch(br *syntax.WideBranch) *wideBranch {
	b := w.b
	for _, old := range w.s.Branches {
		if old == br {
			break
		}
		if old.Label.Name == br.Label.Name {
			w.fail(diag.CodeWideTable, br.Label.Span(), "there are two branches named %q", br.Label.Name).
				WithNote(old.Label.Span(), "the first one is here")
		}
	}
	s, ok := br.Query.Body.(*syntax.Select)
	if !ok || len(br.Query.OrderBy) > 0 || br.Query.Limit != nil || br.Query.Offset != nil || len(br.Query.With) > 0 {
		w.fail(diag.CodeWideTable, br.Query.Span(), "a branch is SELECT ... FROM ... [WHERE ...] [GROUP BY key] alone").
			WithHelp("put the rest into a view")
		return nil
	}
	if s.Distinct || s.Having != nil || len(s.Windows) > 0 || len(s.Hints) > 0 || s.From == nil {
		w.fail(diag.CodeWideTable, s.Span(), "a branch has no DISTINCT, HAVING, WINDOW or hints, and needs FROM").
			WithHelp("put the rest into a view")
		return nil
	}
	x := &wideBranch{ast: br}
	sel := &selection{b: b, ast: s, plainScope: &scope{}}
	good := true
	b.within(br.Label.Name, func() { x.input = b.from(s.From, sel.plainScope) })
	b.Index.scope(s, nil, sel.plainScope)
	if s.Where != nil {
		if p := b.predicate(s.Where, sel.plainScope, "WHERE"); p != nil && x.input != nil {
			w.refuseClock(p, x.input, s.Where.Span())
			x.input = &Filter{Input: x.input, Predicate: p}
		} else {
			good = false
		}
	}
	sel.input = x.input
	good = w.items(x, sel) && good
	if br.Offline {
		if x.input == nil || !good || !w.offline(x, sel.plainScope) {
			w.ok = false
			return nil
		}
		return x
	}
	x.time = w.timeColumn(br.Time, sel.plainScope)
	if br.VersionBy != nil {
		x.version = w.versionColumn(br.VersionBy, sel.plainScope)
		good = good && x.version != nil
	}
	if x.input == nil || x.time == nil || !good {
		return nil
	}
	b.CheckOver(x.input)
	return x
}

func (w *wideBinder) timeColumn(ref *syntax.ColumnRef, sc *scope) *Column {
	c, fields, ok := sc.resolve(w.b, ref)
	if !ok {
		return nil
	}
	if len(fields) > 0 {
		w.fail(diag.CodeRowTime, ref.Span(), "TIME takes a column, not a field of one")
		return nil
	}
	if !w.b.usableAsTime(c, ref.Span()) {
		return nil
	}
	if w.window != nil {
		ltz := c.Type.Kind == rt.TimestampLTZ
		first := slices.IndexFunc(w.branches, func(x *wideBranch) bool { return x.offline == nil })
		if first >= 0 && w.window.LTZ != ltz {
			w.fail(diag.CodeRowTime, ref.Span(), "the time of this branch is %s, that of branch %q is not", c.Type.WithNullable(true), w.branches[first].ast.Label.Name).
				WithHelp("all branches need TIMESTAMP, or all TIMESTAMP_LTZ")
			return nil
		}
		if first < 0 {
			w.window.LTZ = ltz
			w.b.lintDST(w.window, w.s.Window.Span())
		}
	}
	return c
}

func (w *wideBinder) versionColumn(ref *syntax.ColumnRef, sc *scope) *Column {
	c, fields, ok := sc.resolve(w.b, ref)
	if !ok {
		return nil
	}
	if len(fields) > 0 || c.Type.IsNested() {
		w.fail(diag.CodeWideTable, ref.Span(), "VERSION BY takes a scalar column")
		return nil
	}
	return c
}

// items binds the SELECT list of a branch into keys and rules.
func (w *wideBinder) items(x *wideBranch, sel *selection) bool {
	g := &grouping{sel: sel, input: sel.input, spans: map[*expr.Column]diag.Span{}}
	ok := g.bindKeys(sel.ast.GroupBy)
	ok = sel.bindItems(func(e syntax.Expr) expr.Expr { return g.bind(e, "SELECT") }) && ok
	if !ok || sel.input == nil {
		return false
	}
	grouped := sel.ast.GroupBy != nil || len(g.calls) > 0
	usedKeys := map[string]bool{}
	for _, it := range sel.items {
		wi := wideItem{name: it.name, span: it.span, e: it.e, rule: RuleLast, typ: it.e.Type().WithNullable(true)}
		if !it.named {
			w.fail(diag.CodeWideTable, it.span, "a column of a branch needs a name").WithHelp("add AS name")
			ok = false
			continue
		}
		isKey := w.keyIndex(it.name) >= 0
		switch call := g.callOf(it.e); {
		case call != nil && isKey:
			w.fail(diag.CodeWideTable, it.span, "key column %q is an aggregate", it.name)
			ok = false
		case call != nil:
			ok = w.rule(&wi, call) && ok
		case grouped && isKey:
			text := Key(it.e)
			usedKeys[text] = true
			if !slices.ContainsFunc(g.keys, func(k groupKey) bool { return k.text == text }) {
				w.fail(diag.CodeNotGrouped, it.span, "key column %q is not in GROUP BY", it.name)
				ok = false
			}
		case grouped:
			w.fail(diag.CodeNotGrouped, it.span, "column %q is neither the key nor one aggregate", it.name).
				WithHelp("write e.g. LAST_VALUE(...) AS %s", it.name)
			ok = false
		}
		if wi.e != nil {
			w.refuseClock(wi.e, sel.input, it.span)
		}
		x.items = append(x.items, wi)
	}
	for _, k := range g.keys {
		if !usedKeys[k.text] {
			w.fail(diag.CodeWideTable, k.span, "a branch groups by the key of the table alone (the window is part of its grouping)")
			ok = false
		}
	}
	for _, k := range w.keys {
		if !slices.ContainsFunc(x.items, func(i wideItem) bool { return i.name == k.Name }) {
			w.fail(diag.CodeWideTable, x.ast.Label.Span(), "branch %q does not select the key column %q", x.ast.Label.Name, k.Name).
				WithNote(k.Span(), "the key is declared here")
			ok = false
		}
	}
	return ok
}

func (w *wideBinder) keyIndex(name string) int {
	return slices.IndexFunc(w.keys, func(k *syntax.Ident) bool { return k.Name == name })
}

// callOf is the aggregate call that an item is, nil if it is none.
func (g *grouping) callOf(e expr.Expr) *aggCall {
	ref, ok := e.(*expr.Column)
	if !ok {
		return nil
	}
	for _, c := range g.calls {
		if c.col.ID == ref.Index {
			return c
		}
	}
	return nil
}

// rule turns an aggregate call into the rule of a column.
func (w *wideBinder) rule(wi *wideItem, c *aggCall) bool {
	rules := map[string]Rule{"LAST_VALUE": RuleLast, "FIRST_VALUE": RuleFirst, "SUM": RuleSum, "COUNT": RuleCount, "MIN": RuleMin, "MAX": RuleMax,
		"AVG": RuleAvg, "ARRAY_AGG": RuleCollect}
	r, ok := rules[c.call.Agg.Name]
	// A condition makes NULLs of values, which all others skip.
	if !ok || r == RuleCollect && (c.call.Filter != nil || c.call.Options.IgnoreNulls) || c.call.Options.Distinct || c.call.Options.KeepNulls || len(c.call.Args) > 1 {
		w.fail(diag.CodeNotYet, c.span, "%s in a wide table is not supported yet", c.call.Text).
			WithHelp("LAST_VALUE, FIRST_VALUE, SUM, COUNT, MIN, MAX, AVG and ARRAY_AGG work")
		return false
	}
	wi.rule, wi.typ, wi.narrow = r, c.col.Type.WithNullable(true), c.col.Narrow
	wi.e = nil
	if len(c.call.Args) == 1 {
		wi.e = c.call.Args[0]
	}
	if c.call.Filter != nil {
		value := wi.e
		if value == nil {
			value = expr.Bool(true)
		}
		f, _ := w.b.Functions.Lookup("CASE")
		x, err := expr.NewCall(f, c.call.Filter, value)
		if err != nil {
			w.fail(diag.CodeBadArgument, c.span, "%s", err)
			return false
		}
		wi.e = x
	}
	return true
}

func (w *wideBinder) refuseClock(e expr.Expr, input Node, at diag.Span) {
	d := expr.DeterminismOf(e)
	for _, id := range expr.Columns(e) {
		if c, ok := ColumnByID(input.Columns(), id); ok {
			d = max(d, c.Determinism)
		}
	}
	if d != fn.Deterministic {
		w.fail(diag.CodeNondeterministic, at, "a branch of a wide table must not depend on the clock or on chance: a replay would merge other values")
	}
}

// merge makes the Wide node: keys, window_start, window_end, values, coverage.
// keyTypes are the common types of the key columns over all branches.
// table completes the catalog's table and the plan: computed columns on top
// of the merge, casts to declared types, checks of the sink.
// String names a branch in EXPLAIN.
