package plan

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/function"
	"github.com/millrace/millrace/sql/syntax"
)

// userTable is the program's own table function that stands here, nil for others.
func (b *Binder) userTable(t *syntax.TableFunc) *fn.Function {
	if len(t.Call.Name.Parts) > 1 {
		return nil
	}
	if f, ok := b.Functions.Lookup(t.Call.Name.String()); ok && f.Table {
		return f
	}
	return nil
}

// lateral binds a program's own table function: an UNNEST of the rows it gives for
// each row on its left. Its arguments see the columns of sees.
func (b *Binder) lateral(left Node, t *syntax.TableFunc, f *fn.Function, outer bool, sees, sc *scope) Node {
	c := t.Call
	if c.Star || c.Distinct || c.Filter != nil || c.Over != nil || len(c.OrderBy) > 0 || len(c.WithinGroup) > 0 {
		b.errorf(diag.CodeBadArgument, c.Span(), "%s is not an aggregate; it takes arguments alone", f.Name)
		return nil
	}
	eb := &exprBinder{b: b, sc: sees, clause: "LATERAL TABLE"}
	args, ok := eb.callArgs(c.Args)
	if !ok {
		return nil
	}
	v := eb.apply(f.Name, c.Span(), c.Args, args)
	if v == nil {
		return nil
	}
	columns := slices.Clone(v.Type().Elem.Fields)
	return b.rowsOf(&Unnest{Input: left, Value: v, Outer: outer}, columns, t.Alias, f.Name, sc)
}

// unknownTableFunction reports a name that is no table function.
func (b *Binder) unknownTableFunction(n *syntax.Name) {
	name := strings.ToUpper(n.String())
	if function.Exists(b.Functions, name) {
		b.errorf(diag.CodeBadArgument, n.Span(), "%s gives a value, not rows: it is no table function", name).
			WithHelp("of a function that gives an ARRAY, CROSS JOIN UNNEST(%s(...)) makes rows", name)
		return
	}
	known := []string{"TUMBLE", "HOP", "CUMULATE", "SESSION"}
	for _, f := range b.Functions.Functions() {
		if f.Table {
			known = append(known, f.Name)
		}
	}
	b.errorf(diag.CodeUnknownFunction, n.Span(), "table function %q not found", n).WithNearest(name, known)
}
