package plan

import (
	"fmt"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
	sqltypes "github.com/millrace/millrace/sql/types"
	"slices"
)

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
	if !slices.ContainsFunc(w.branches, func(x *wideBranch) bool { return x.offline == nil }) {
		w.fail(diag.CodeWideTable, w.s.Name.Span(), "a wide table needs a branch with TIME: its rows make the windows")
		return nil
	}
	for bi, br := range w.branches {
		if br.offline != nil {
			w.mergeOffline(n, bi, br, win[:2], keyTypes, take)
			continue
		}
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
			v := WideValue{Branch: len(n.Branches), Rule: it.rule, Input: -1}
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
	n.Correct = w.correctionInterval(shell, n)
	n.OfflineTimeout = w.offlineTimeout(shell, n)
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

func (b *WideBranch) String() string {
	if b.KeepNulls {
		return fmt.Sprintf("%s (keeps NULLs)", b.Label)
	}
	return b.Label
}
