package plan

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
	sqltypes "github.com/millrace/millrace/sql/types"
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
		w.offline(br, sel.plainScope)
		return nil
	}
	x.time = w.timeColumn(br.Time, sel.plainScope)
	if br.VersionBy != nil {
		x.version = w.versionColumn(br.VersionBy, sel.plainScope)
		good = good && x.version != nil
	}
	if x.input == nil || x.time == nil || !good {
		return nil
	}
	return x
}

// offline binds what an offline branch adds, and says that it has to wait.
func (w *wideBinder) offline(br *syntax.WideBranch, sc *scope) {
	b := w.b
	b.scalar(br.Generation, sc, "GENERATION")
	cols := b.windowColumns(&Window{}, 0)
	b.scalar(br.GenExpr, &scope{rels: []relation{{cols: cols[:2]}}}, "GENERATION")
	w.ok = false
	b.notYet(br.Label.Span().To(br.Generation.Span()), "an OFFLINE branch of a wide table")
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
		if len(w.branches) > 0 && w.window.LTZ != ltz {
			w.fail(diag.CodeRowTime, ref.Span(), "the time of this branch is %s, that of branch %q is not", c.Type.WithNullable(true), w.branches[0].ast.Label.Name).
				WithHelp("all branches need TIMESTAMP, or all TIMESTAMP_LTZ")
			return nil
		}
		if len(w.branches) == 0 {
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
	rules := map[string]Rule{"LAST_VALUE": RuleLast, "FIRST_VALUE": RuleFirst, "SUM": RuleSum, "COUNT": RuleCount, "MIN": RuleMin, "MAX": RuleMax}
	r, ok := rules[c.call.Agg.Name]
	if !ok || c.call.Options.Distinct || c.call.Options.KeepNulls || len(c.call.Args) > 1 {
		w.fail(diag.CodeNotYet, c.span, "%s in a wide table is not supported yet", c.call.Text).
			WithHelp("LAST_VALUE, FIRST_VALUE, SUM, COUNT, MIN and MAX work")
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
func (w *wideBinder) merge(shell *catalog.Table) *Wide {
	n := &Wide{Window: w.window, Lateness: w.lateness, Path: w.name + "/wide", Coverage: w.coverage != ""}
	names := map[string]diag.Span{}
	take := func(name string, at diag.Span) {
		if old, dup := names[name]; dup {
			w.fail(diag.CodeDuplicateColumn, at, "column %q appears twice in the wide table", name).WithNote(old, "the other one is here")
			return
		}
		names[name] = at
	}
	keyTypes := w.keyTypes()
	if keyTypes == nil {
		return nil
	}
	for i, k := range w.keys {
		take(k.Name, k.Span())
		n.Cols = append(n.Cols, Column{ID: w.b.id(), Name: k.Name, Type: keyTypes[i].NotNull()})
	}
	win := w.b.windowColumns(w.window, 0)
	for _, c := range win[:2] {
		take(c.Name, w.s.Window.Span())
		n.Cols = append(n.Cols, c)
	}
	for bi, br := range w.branches {
		wb := WideBranch{Label: br.ast.Label.Name, KeepNulls: br.ast.KeepNulls, Version: -1}
		p := &Project{Input: br.input}
		in := br.input.Columns()
		add := func(name string, e expr.Expr) int {
			c := derive(w.b.id, name, e, in)
			if at := slices.IndexFunc(p.Cols, func(o Column) bool { return o.ID == c.ID }); at >= 0 {
				return c.ID
			}
			p.Exprs, p.Cols = append(p.Exprs, e), append(p.Cols, c)
			return c.ID
		}
		for i, k := range w.keys {
			it := br.items[slices.IndexFunc(br.items, func(x wideItem) bool { return x.name == k.Name })]
			wb.Keys = append(wb.Keys, add(k.Name, castTo(it.e, keyTypes[i])))
		}
		wb.Time = add(br.time.Name, br.time.Ref())
		if br.version != nil {
			wb.Version = add(br.version.Name, br.version.Ref())
		}
		for _, it := range br.items {
			if w.keyIndex(it.name) >= 0 {
				continue
			}
			take(it.name, it.span)
			v := WideValue{Branch: bi, Rule: it.rule, Input: -1}
			if it.e != nil {
				v.Input = add(it.name, it.e)
			}
			n.Values = append(n.Values, v)
			n.Cols = append(n.Cols, Column{ID: w.b.id(), Name: it.name, Type: it.typ, Narrow: it.narrow})
		}
		wb.Input = keepIdentity(p)
		n.Branches = append(n.Branches, wb)
	}
	if n.Coverage {
		take(w.coverage, optionSpan(shell, "wide.coverage-column"))
		n.Cols = append(n.Cols, Column{ID: w.b.id(), Name: w.coverage, Type: rt.NewArray(rt.NewString().NotNull()).NotNull()})
	}
	if !w.ok {
		return nil
	}
	return n
}

// keyTypes are the common types of the key columns over all branches.
func (w *wideBinder) keyTypes() []rt.Type {
	out := make([]rt.Type, len(w.keys))
	for i, k := range w.keys {
		for j, br := range w.branches {
			it := br.items[slices.IndexFunc(br.items, func(x wideItem) bool { return x.name == k.Name })]
			t := it.e.Type().WithNullable(true)
			if j == 0 {
				out[i] = t
				continue
			}
			common, ok := rt.Common(out[i], t)
			if !ok {
				w.fail(diag.CodeTypeMismatch, it.span, "key column %q is %s here and %s in the branches above", k.Name, t, out[i])
				return nil
			}
			out[i] = common
		}
		if out[i].Kind == rt.Null || out[i].IsNested() {
			w.fail(diag.CodeBadKey, k.Span(), "key column %q is %s; it must be a scalar", k.Name, out[i])
			return nil
		}
	}
	return out
}

// table completes the catalog's table and the plan: computed columns on top
// of the merge, casts to declared types, checks of the sink.
func (w *wideBinder) table(shell *catalog.Table, n *Wide, build *catalog.Builder) (*catalog.Table, *Insert) {
	b := w.b
	in := n.Columns()
	sc := &scope{rels: []relation{{name: w.name, cols: in}}}
	p := &Project{Input: n}
	declared := map[string]*syntax.ColumnDef{}
	var computed []*syntax.ComputedColumn
	for _, e := range w.s.Elements {
		switch e := e.(type) {
		case *syntax.ColumnDef:
			declared[e.Name.Name] = e
			if !slices.ContainsFunc(in, func(c Column) bool { return c.Name == e.Name.Name }) {
				w.fail(diag.CodeUnknownColumn, e.Name.Span(), "no branch gives column %q", e.Name.Name)
			}
		case *syntax.ComputedColumn:
			computed = append(computed, e)
		}
	}
	add := func(c catalog.Column, e expr.Expr, from *Column) {
		if d := declared[c.Name]; d != nil {
			if t, ok := sqltypes.FromAST(d.Type, b.Diags); ok {
				var narrow *rt.Type
				if from != nil {
					narrow = from.Narrow
				}
				x, fits := assignTo(e, narrow, t)
				if !fits {
					w.fail(diag.CodeTypeMismatch, d.Type.Span(), "column %q is declared %s and the branch gives %s: %s", c.Name, t.WithNullable(true), e.Type().WithNullable(true), sqltypes.WhyNot(e.Type(), t))
					return
				}
				e, c.Type, c.Span = x, t, d.Name.Span()
			}
		}
		p.Exprs = append(p.Exprs, e)
		p.Cols = append(p.Cols, derive(b.id, c.Name, e, in))
		shell.Columns = append(shell.Columns, c)
	}
	head := len(w.keys) + 2
	for i, c := range in {
		if i == head {
			w.computedColumns(computed, sc, shell, add)
		}
		c := c
		add(catalog.Column{Name: c.Name, Type: c.Type, Kind: catalog.Physical, Span: w.s.Name.Span()}, c.Ref(), &c)
	}
	if len(in) == head {
		w.computedColumns(computed, sc, shell, add)
	}
	if !w.ok || !build.FinishWide(shell, w.s) {
		return nil, nil
	}
	for _, name := range notOnWindow(shell, p.Cols) {
		w.fail(diag.CodeBadPartition, w.s.Partitions.Span(), "partition column %q depends on more than the window", name).
			WithHelp("compute it from window_start or window_end: %s AS DATE_FORMAT(window_start, 'yyyy-MM-dd')", name)
	}
	b.checkDeterministicWide(w, shell, p)
	n.Table = shell
	ins := &Insert{Input: keepIdentity(p), Table: shell, Span: w.s.Name.Span()}
	if shell.Spec != nil && !shell.Spec.Sink {
		w.fail(diag.CodeNotASink, w.s.Name.Span(), "connector %q cannot be written", shell.Spec.Name)
	}
	b.checkSink(ins)
	if !w.ok {
		return nil, nil
	}
	return shell, ins
}

func (w *wideBinder) computedColumns(list []*syntax.ComputedColumn, sc *scope, shell *catalog.Table, add func(catalog.Column, expr.Expr, *Column)) {
	for _, c := range list {
		if slices.ContainsFunc(sc.columns(), func(x Column) bool { return x.Name == c.Name.Name }) ||
			slices.ContainsFunc(shell.Columns, func(x catalog.Column) bool { return x.Name == c.Name.Name }) {
			w.fail(diag.CodeDuplicateColumn, c.Name.Span(), "column %q appears twice in the wide table", c.Name.Name)
			continue
		}
		e := w.b.scalar(c.Expr, sc, "a computed column")
		if e == nil {
			w.ok = false
			continue
		}
		if e.Type().Kind == rt.Null {
			w.fail(diag.CodeUntypedNull, c.Expr.Span(), "NULL has no type").WithHelp("write CAST(NULL AS <type>)")
			continue
		}
		comment := ""
		if c.Comment != nil {
			comment = c.Comment.Value
		}
		add(catalog.Column{Name: c.Name.Name, Type: e.Type(), Kind: catalog.Physical, Comment: comment, Span: c.Name.Span()}, e, nil)
	}
}

func (b *Binder) checkDeterministicWide(w *wideBinder, t *catalog.Table, p *Project) {
	for _, c := range p.Cols {
		if slices.Contains(t.PartitionKeys, c.Name) && c.Determinism != fn.Deterministic {
			w.fail(diag.CodeNondeterministic, w.s.Partitions.Span(), "partition column %q must not depend on the clock or on chance", c.Name)
		}
	}
}

// String names a branch in EXPLAIN.
func (b *WideBranch) String() string {
	if b.KeepNulls {
		return fmt.Sprintf("%s (keeps NULLs)", b.Label)
	}
	return b.Label
}
