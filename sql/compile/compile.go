package compile

import (
	"path"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr/fn"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/plan"
	"github.com/millrace/millrace/sql/syntax"
)

// Compile parses, binds, checks and plans the files. The list holds every
// diagnostic, sorted by place and without duplicates; with an error in it the
// Unit has no jobs and the session is as it was. The Unit is never nil.
func Compile(files []Source, opts Options) (*Unit, diag.List) {
	c := newCompiler(files, opts)
	stmts := c.parse(files)
	c.binder.Declared = declared(stmts)
	c.loopsOf(stmts)
	for i, s := range stmts {
		c.rest = stmts[i+1:]
		c.statement(s)
	}
	if opts.Index != nil {
		opts.Index.Catalog = c.catalog
	}
	c.finish()
	return c.unit, c.diags.Sorted().Dedup()
}

// parse reads all files. A loop variable of one is one in all.
func (c *compiler) parse(files []Source) []syntax.Stmt {
	texts := make([]*diag.File, len(files))
	var loopVars []string
	for i, f := range files {
		texts[i] = diag.NewFile(f.Name, f.Text)
		c.jobFile = f.Name
		loopVars = append(loopVars, syntax.LoopVars(texts[i])...)
	}
	var stmts []syntax.Stmt
	for _, f := range texts {
		script, ds := syntax.Parse(f, syntax.Options{Vars: c.opts.vars(), LoopVars: loopVars})
		c.diags.Add(ds...)
		stmts = append(stmts, script.Stmts...)
	}
	return stmts
}

// declared are the names that the statements declare, wherever they stand.
func declared(stmts []syntax.Stmt) map[string]diag.Span {
	out := map[string]diag.Span{}
	for _, s := range stmts {
		var n *syntax.Name
		switch s := s.(type) {
		case *syntax.CreateTable:
			n = s.Name
		case *syntax.CreateView:
			n = s.Name
		case *syntax.CreateWideTable:
			n = s.Name
		}
		if n != nil {
			if _, dup := out[n.Last().Name]; !dup {
				out[n.Last().Name] = n.Span()
			}
		}
	}
	return out
}

func (o Options) vars() syntax.Vars {
	if o.Vars == nil {
		return syntax.MapVars{}
	}
	return o.Vars
}

// compiler is one run of Compile. It works on copies of the session's catalog
// and settings.
type compiler struct {
	opts     Options
	unit     *Unit
	diags    diag.List
	catalog  *catalog.Catalog
	settings *catalog.Settings
	binder   *plan.Binder
	wide     *fn.Library // SUM widened
	narrow   *fn.Library

	inserts []boundInsert
	queries []boundQuery
	// jobFile is the name of the last file.
	jobFile string
	// rest are the statements behind the one in hand.
	rest []syntax.Stmt
	loops
}

// boundInsert is an INSERT with the planner settings it was bound under.
type boundInsert struct {
	plan  *plan.Insert
	stmt  int // index in unit.Statements
	batch bool
	zone  *rt.Zone
	at    diag.Span
}

type boundQuery struct {
	out  *plan.Output
	stmt int
	mode modeOf
}

// modeOf is what a statement was bound under.
type modeOf struct {
	batch bool
	zone  *rt.Zone
}

func newCompiler(files []Source, opts Options) *compiler {
	session := opts.Session
	if session == nil {
		session = NewSession()
	}
	c := &compiler{opts: opts, unit: &Unit{Session: session}, catalog: session.Catalog.Clone(), settings: session.Settings.Clone()}
	c.settings.Strict = opts.Mode != ModeSQL
	c.unit.Name = opts.JobName
	if c.unit.Name == "" && len(files) > 0 {
		c.unit.Name = strings.TrimSuffix(path.Base(files[len(files)-1].Name), ".sql")
	}
	c.binder = &plan.Binder{Catalog: c.catalog, Diags: &c.diags, ReadToNow: opts.Mode == ModeSQL || opts.Mode == ModePreview, Index: opts.Index,
		Lookups:  connectorsThat(opts.Registry, func(s *connector.Spec) bool { return s.Lookup }),
		Updating: connectorsThat(opts.Registry, func(s *connector.Spec) bool { return s.Sink && s.Changelog == connector.All }),
		Upserts:  connectorsThat(opts.Registry, func(s *connector.Spec) bool { return s.Sink && s.Changelog == connector.Upsert })}
	c.libraries()
	return c
}

func (c *compiler) libraries() {
	for _, l := range []struct {
		to     **fn.Library
		narrow bool
	}{{&c.wide, false}, {&c.narrow, true}} {
		lib, err := fn.NewLibrary(fn.LibraryOptions{NoSumWidening: l.narrow, Extra: c.opts.Functions})
		if err != nil {
			c.diags.Errorf(diag.CodeInternal, diag.Span{}, "building the function library: %s", err)
			lib = &fn.Library{}
		}
		*l.to = lib
	}
	c.applySettings()
}

// applySettings hands planner settings to the binder.
func (c *compiler) applySettings() {
	zone, err := c.settings.Zone(c.opts.Zone)
	if err != nil {
		c.diags.Errorf(diag.CodeBadOption, diag.Span{}, "%s", err)
		zone = rt.UTC()
	}
	c.binder.Zone = zone
	c.unit.zone = zone
	c.binder.Batch = c.settings.Batch()
	c.binder.StateTTL = c.settings.Duration("table.exec.state.ttl").Milliseconds()
	c.binder.Emit = plan.EmitOf(c.settings)
	if _, _, set := c.settings.Lookup("execution.runtime-mode"); !set && c.opts.Mode == ModeSQL {
		c.binder.Batch = true
	}
	c.binder.Functions = c.wide
	if !c.settings.Bool("millrace.sum-widening") {
		c.binder.Functions = c.narrow
	}
}

func (c *compiler) builder() *catalog.Builder {
	return &catalog.Builder{Catalog: c.catalog, Registry: c.opts.Registry, Typer: c.binder, Diags: &c.diags,
		Star: c.star, Templates: c.templates, Loop: c.loop}
}

func (c *compiler) add(s Statement) int {
	c.unit.Statements = append(c.unit.Statements, s)
	return len(c.unit.Statements) - 1
}

func (c *compiler) statement(s syntax.Stmt) {
	s, ok := c.outsideLoops(s)
	if !ok {
		return
	}
	switch s := s.(type) {
	case *syntax.BadStmt:
		if s.Declares != nil {
			c.broken(s.Declares)
		}
	case *syntax.Set:
		c.set(s)
	case *syntax.Reset:
		c.settings.Reset(s.Key, &c.diags)
		c.applySettings()
		c.add(Statement{Kind: KindSetting, AST: s})
	case *syntax.CreateTable:
		if s.As != nil {
			c.createTableAs(s)
			return
		}
		if t := c.createTable(s); t != nil {
			c.add(Statement{Kind: KindDDL, AST: s, Result: sentence("table " + t.Name + " created")})
		}
	case *syntax.AlterTable:
		c.alterTable(s)
	case *syntax.CreateView:
		c.createView(s)
	case *syntax.CreateWideTable:
		c.createWide(s)
	case *syntax.Insert:
		c.insert(s, []*syntax.Insert{s})
	case *syntax.StatementSet:
		c.insert(s, s.Inserts)
	case *syntax.QueryStmt:
		c.query(s)
	case *syntax.Explain:
		c.explain(s)
	case *syntax.ForEach:
		c.forEach(s)
	default:
		c.interactive(s)
	}
}

func (c *compiler) broken(n *syntax.Name) {
	c.brokenTable(n, nil)
}

// brokenTable keeps what is known of a table whose options are wrong.
func (c *compiler) brokenTable(n *syntax.Name, t *catalog.Table) {
	if _, taken := c.catalog.Lookup(n.Last().Name); !taken {
		c.catalog.Add(&catalog.Broken{Name: n.Last().Name, Span: n.Span(), Table: t}, n.Span())
	}
}

func (c *compiler) set(s *syntax.Set) {
	if s.Key == nil || s.Value == nil {
		if c.opts.Mode != ModeSQL {
			c.diags.Errorf(diag.CodeStatementInJob, s.Span(), "SET without a value shows settings; a job file has no one to show them to").
				WithHelp("write SET 'key' = 'value'")
			return
		}
		rows := c.settings.Rows()
		if s.Key != nil {
			rows = nil
			if v, _, ok := c.settings.Lookup(s.Key.Value); ok {
				rows = [][]string{{s.Key.Value, v}}
			}
		}
		c.add(Statement{Kind: KindText, AST: s, Result: &Result{Columns: []string{"key", "value"}, Rows: rows}})
		return
	}
	c.settings.Set(s.Key, s.Value, &c.diags)
	c.applySettings()
	c.add(Statement{Kind: KindSetting, AST: s})
}

func (c *compiler) simpleName(n *syntax.Name) bool {
	if len(n.Parts) > 1 {
		c.diags.Errorf(diag.CodeNotYet, n.Span(), "a catalog or database in a table's name is not supported yet").
			WithHelp("write the table's name alone")
		c.broken(n)
		return false
	}
	return true
}

func (c *compiler) exists(name *syntax.Name, ifNotExists bool) bool {
	old, ok := c.catalog.Lookup(name.Last().Name)
	if !ok {
		return false
	}
	if _, broken := old.(*catalog.Broken); broken {
		return false
	}
	return ifNotExists
}

// createTable declares a table; nil: it was there, or something was reported.
func (c *compiler) createTable(s *syntax.CreateTable) *catalog.Table {
	if !c.simpleName(s.Name) || c.exists(s.Name, s.IfNotExists) {
		return nil
	}
	t, ok := c.builder().Table(s)
	if !ok {
		if !t.ColumnsSound() {
			t = nil
		}
		c.brokenTable(s.Name, t)
		return nil
	}
	if d := c.catalog.Add(t, s.Name.Span()); d != nil {
		c.diags.Add(d)
		return nil
	}
	return t
}

func (c *compiler) createView(s *syntax.CreateView) {
	if !c.simpleName(s.Name) || c.exists(s.Name, s.IfNotExists) {
		return
	}
	v := &catalog.View{Name: s.Name.Last().Name, Columns: s.Columns, Query: s.Query, Span: s.Name.Span()}
	if !c.binder.View(v) {
		c.broken(s.Name)
		return
	}
	c.diags.Add(c.catalog.Add(v, s.Name.Span()))
	c.add(Statement{Kind: KindDDL, AST: s, Result: sentence("view " + v.Name + " created")})
}

func (c *compiler) createWide(s *syntax.CreateWideTable) {
	if !c.simpleName(s.Name) || c.exists(s.Name, s.IfNotExists) {
		return
	}
	t, ins := c.binder.WideTable(s, c.builder())
	if t == nil {
		c.broken(s.Name)
		return
	}
	if d := c.catalog.Add(t, s.Name.Span()); d != nil {
		c.diags.Add(d)
		return
	}
	at := c.add(Statement{Kind: KindDDL, AST: s, Result: sentence("wide table " + t.Name + " created")})
	if c.opts.Mode != ModeSQL {
		c.keep(ins, at, s.Name.Span())
	}
}

func sentence(s string) *Result { return &Result{Columns: []string{"result"}, Rows: [][]string{{s}}} }

func (c *compiler) insert(s syntax.Stmt, inserts []*syntax.Insert) {
	at := c.add(Statement{Kind: KindInsert, AST: s})
	for _, i := range inserts {
		c.bindInsert(i, at)
	}
}

func (c *compiler) bindInsert(i *syntax.Insert, stmt int) {
	if c.opts.Overwrite && !i.Overwrite {
		over := *i
		over.Overwrite, i = true, &over
	}
	if ins := c.binder.Insert(i); ins != nil {
		c.keep(ins, stmt, i.Target.Span())
	}
}

// keep notes a bound INSERT. All INSERTs of a job share one mode and zone.
func (c *compiler) keep(ins *plan.Insert, stmt int, at diag.Span) {
	b := boundInsert{plan: ins, stmt: stmt, batch: c.binder.Batch, zone: c.binder.Zone, at: at}
	if c.opts.Mode != ModeSQL && len(c.inserts) > 0 {
		f := c.inserts[0]
		if f.batch != b.batch || f.zone.String() != b.zone.String() {
			what := "'execution.runtime-mode'"
			if f.batch == b.batch {
				what = "'table.local-time-zone'"
			}
			c.diags.Errorf(diag.CodeConflictingSetting, at, "the INSERTs of one job need one %s", what).
				WithNote(f.at, "this one was bound under another value").
				WithHelp("set it once, at the top of the file")
		}
	}
	c.inserts = append(c.inserts, b)
}

// connectorsThat are the names of those whose Spec is as asked.
func connectorsThat(r *connector.Registry, is func(*connector.Spec) bool) []string {
	if r == nil {
		return nil
	}
	var out []string
	for _, name := range r.Names() {
		if c, ok := r.Lookup(name); ok && is(c.Spec()) {
			out = append(out, name)
		}
	}
	return out
}
