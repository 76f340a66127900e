package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/expr/fn"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// Binder turns syntax trees into plans. Set the fields before each statement:
// planner settings are positional.
type Binder struct {
	Catalog   *catalog.Catalog
	Functions *fn.Library
	Zone      *rt.Zone
	// Batch: 'execution.runtime-mode' = 'batch'.
	Batch bool
	// ReadToNow ends the reading of every source at its present end.
	ReadToNow bool
	// StateTTL is 'table.exec.state.ttl' in ms; 0: state is kept for good.
	StateTTL int64
	// Emit are the settings of early and late rows.
	Emit  Emit
	Diags *diag.List
	// Declared are the names that the input declares, also those below the
	// statement being bound; for messages.
	Declared map[string]diag.Span
	// Index, if not nil, takes down what names and expressions mean.
	Index *Index
	// Lookups are the connectors whose tables can be looked up; for messages.
	Lookups []string
	// Updating are the connectors whose tables take every kind of row, Upserts those
	// whose tables take updates by their key; for messages.
	Updating, Upserts []string

	nextID int
	// origin is the way from the statement to the text being bound, for state
	// paths and traces: views and CTEs, outermost first.
	origin []string
	// expanding are the views being bound, against cycles.
	expanding []string
	// stateID is the STATE_ID hint in force, stateTTL those of STATE_TTL, by name of a
	// table.
	stateID  string
	stateTTL map[string]int64
	// top: the query that is bound next is a statement's or a view's, no sub-query.
	// ordering says what its ORDER BY is for.
	top      bool
	ordering ordering
	// outer is the scope around the sub-query being bound.
	outer *scope
	// sink is the table that the statement writes; nil for a query.
	sink *catalog.Table
	// declaring: a view is being checked. What depends on the runtime mode
	// is checked where it is used.
	declaring bool
}

// Output is a bound query.
type Output struct {
	Node Node
	// Spans are where each output column was written.
	Spans []diag.Span
	// Named says which columns have a name the user gave or a column's own.
	Named []bool
}

// Columns are the output columns.
func (o *Output) Columns() []Column { return o.Node.Columns() }

func (b *Binder) id() int {
	b.nextID++
	return b.nextID - 1
}

func (b *Binder) errorf(code diag.Code, span diag.Span, format string, args ...any) *diag.Diagnostic {
	return b.Diags.Errorf(code, span, format, args...)
}

func (b *Binder) notYet(span diag.Span, what string) *diag.Diagnostic {
	return b.errorf(diag.CodeNotYet, span, "%s is not supported yet", what)
}

// rename gives the columns of a node other names.
func (b *Binder) rename(in Node, names []string) *Project {
	p := &Project{Input: in}
	for i, c := range in.Columns() {
		name := c.Name
		if names != nil {
			name = names[i]
		}
		ref := c.Ref()
		p.Exprs = append(p.Exprs, ref)
		p.Cols = append(p.Cols, derive(b.id, name, ref, in.Columns()))
	}
	return p
}

// path is the state path of an operator of the statement being bound.
func (b *Binder) path(kind string) string {
	if b.stateID != "" {
		return b.stateID
	}
	return strings.Join(append(slices.Clone(b.origin), kind), "/")
}

// stateIDOf is the name that STATE_ID gives in a SELECT, or in the first one of a set
// operation; "" without.
func stateIDOf(e syntax.QueryExpr) string {
	switch e := e.(type) {
	case *syntax.SetOp:
		return stateIDOf(e.Left)
	case *syntax.Query:
		return stateIDOf(e.Body)
	case *syntax.Select:
		for _, h := range e.Hints {
			if !strings.EqualFold(h.Name.Name, "STATE_ID") || len(h.Args) != 1 {
				continue
			}
			if lit, ok := h.Args[0].(*syntax.StringLit); ok {
				return lit.Value
			}
		}
	}
	return ""
}

// within runs f with one more element in the origin.
func (b *Binder) within(element string, f func()) {
	b.origin = append(b.origin, element)
	f()
	b.origin = b.origin[:len(b.origin)-1]
}

// expandView binds the query of a view or CTE; a reference to one that is
// being bound is an error.
func (b *Binder) expandView(kind, name string, at diag.Span, f func() *Output) *Output {
	key := kind + " " + name
	// A CTE sees those before it alone; one of its own may have its name.
	if kind == "view" && slices.Contains(b.expanding, key) {
		b.errorf(diag.CodeBadTable, at, "%s %q refers to itself", kind, name)
		return nil
	}
	b.expanding = append(b.expanding, key)
	outer := b.outer
	b.outer = nil // its text stands elsewhere
	before := len(*b.Diags)
	out := f()
	b.outer = outer
	b.expanding = b.expanding[:len(b.expanding)-1]
	for _, d := range (*b.Diags)[before:] {
		if len(d.Trace) == 0 || d.Trace[len(d.Trace)-1].Span != at {
			d.Trace = append(d.Trace, diag.Note{Span: at, Message: fmt.Sprintf("in %s %q, used here", kind, name)})
		}
	}
	return out
}

// columnNames applies a column list (of a view, CTE or alias).
func (b *Binder) columnNames(out *Output, names []*syntax.Ident, at diag.Span) *Output {
	if len(names) == 0 {
		return out
	}
	cols := out.Columns()
	if len(names) != len(cols) {
		b.errorf(diag.CodeColumnCount, at, "the list names %d columns, the query gives %d", len(names), len(cols))
		return nil
	}
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = n.Name
	}
	named := make([]bool, len(list))
	for i := range named {
		named[i] = true
	}
	return &Output{Node: b.rename(out.Node, list), Spans: out.Spans, Named: named}
}

// noUntyped reports columns that are NULL without a type.
func (b *Binder) noUntyped(out *Output) bool {
	ok := true
	for i, c := range out.Columns() {
		if c.Type.Kind == rt.Null {
			b.errorf(diag.CodeUntypedNull, out.Spans[i], "column %q is NULL without a type", c.Name).
				WithHelp("write CAST(NULL AS <type>)")
			ok = false
		}
	}
	return ok
}
