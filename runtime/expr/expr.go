package expr

import (
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// Expr is a typed expression. Nodes are immutable and may be shared between
// trees. The implementations are exactly those of this file.
type Expr interface {
	// Type is the type of the value, nullability included.
	Type() types.Type
	// String is the canonical SQL text: columns by name, casts explicit. Equal
	// texts over one schema mean equal values, except for non-deterministic
	// calls.
	String() string

	// write appends String; it also seals the interface.
	write(b *strings.Builder)
}

// Column is a column of the input by ordinal.
type Column struct {
	Index int
	Name  string
	T     types.Type
}

// Literal is a constant: a Vec of one value, Enc Const.
type Literal struct{ Value *batch.Vec }

// Call is a function with a kernel; args have exactly Bound.Params.
type Call struct {
	Fn    *fn.Function
	Bound fn.Bound
	Args  []Expr
}

// Determinism is that of the function, or of this call where it is weaker.
func (e *Call) Determinism() fn.Determinism { return max(e.Fn.Determinism, e.Bound.Determinism) }

// LogicOp is AND or OR.
type LogicOp uint8

// The operators of Logic.
const (
	And LogicOp = iota
	Or
)

// Logic is a conjunction or disjunction of two or more BOOLEANs.
type Logic struct {
	Op   LogicOp
	Args []Expr
}

// Case is CASE WHEN Conds[i] THEN Thens[i] ... ELSE Else END; Else nil means
// NULL. All values have type T but for nullability. IF is a Case.
type Case struct {
	Conds, Thens []Expr
	Else         Expr
	T            types.Type
}

// Coalesce is the first argument that is not NULL.
type Coalesce struct {
	Args []Expr
	T    types.Type
}

// In is Arg IN (List...) over literals of Arg's type; other lists are built
// as a chain of OR by NewIn.
type In struct {
	Arg  Expr
	List []*Literal
}

// Cast converts Arg to To. Try makes a failing cast NULL.
type Cast struct {
	Arg Expr
	To  types.Type
	Try bool
	// kernel is nil where values stay as they are and only the type changes.
	kernel fn.Kernel
}

// Field is a field of a ROW value; a field of a NULL row is NULL.
type Field struct {
	Arg   Expr
	Index int
	T     types.Type
}

// RowOf is ROW(args...): its fields are the arguments, also their errors.
type RowOf struct {
	Args []Expr
	T    types.Type
}

// ArrayOf is ARRAY[args...]; all args have the element type.
type ArrayOf struct {
	Args []Expr
	T    types.Type
}

// MapOf is MAP[k, v, ...]; a NULL key is an error, of equal keys the last wins.
type MapOf struct {
	Keys, Values []Expr
	T            types.Type
}

// Type implements Expr.
func (e *Column) Type() types.Type { return e.T }

// Type implements Expr.
func (e *Literal) Type() types.Type { return e.Value.Type }

// Type implements Expr.
func (e *Call) Type() types.Type { return e.Bound.Return }

// Type implements Expr.
func (e *Logic) Type() types.Type {
	t := types.NewBoolean().NotNull()
	for _, a := range e.Args {
		t.Nullable = t.Nullable || a.Type().Nullable
	}
	return t
}

// Type implements Expr.
func (e *Case) Type() types.Type { return e.T }

// Type implements Expr.
func (e *Coalesce) Type() types.Type { return e.T }

// Type implements Expr.
func (e *In) Type() types.Type {
	t := types.NewBoolean().WithNullable(e.Arg.Type().Nullable)
	for _, l := range e.List {
		t.Nullable = t.Nullable || l.Value.IsNull(0)
	}
	return t
}

// Type implements Expr.
func (e *Cast) Type() types.Type { return e.To }

// Type implements Expr.
func (e *Field) Type() types.Type { return e.T }

// Type implements Expr.
func (e *RowOf) Type() types.Type { return e.T }

// Type implements Expr.
func (e *ArrayOf) Type() types.Type { return e.T }

// Type implements Expr.
func (e *MapOf) Type() types.Type { return e.T }

// Children are the direct operands of e in order of evaluation.
func Children(e Expr) []Expr {
	switch e := e.(type) {
	case *Call:
		return e.Args
	case *Logic:
		return e.Args
	case *Case:
		var c []Expr
		for i := range e.Conds {
			c = append(c, e.Conds[i], e.Thens[i])
		}
		if e.Else != nil {
			c = append(c, e.Else)
		}
		return c
	case *Coalesce:
		return e.Args
	case *In:
		return []Expr{e.Arg}
	case *Cast:
		return []Expr{e.Arg}
	case *Field:
		return []Expr{e.Arg}
	case *RowOf:
		return e.Args
	case *ArrayOf:
		return e.Args
	case *MapOf:
		var c []Expr
		for i := range e.Keys {
			c = append(c, e.Keys[i], e.Values[i])
		}
		return c
	}
	return nil
}

// Walk calls f for e and its operands, parents first; f returns false to
// leave the operands of a node out.
func Walk(e Expr, f func(Expr) bool) {
	if !f(e) {
		return
	}
	for _, c := range Children(e) {
		Walk(c, f)
	}
}

// Rewrite rebuilds e bottom-up: f gets each node with its operands already
// rewritten and returns the node or a replacement of the same type.
func Rewrite(e Expr, f func(Expr) Expr) Expr {
	all := func(in []Expr) []Expr {
		out := make([]Expr, len(in))
		for i := range in {
			out[i] = Rewrite(in[i], f)
		}
		return out
	}
	switch n := e.(type) {
	case *Call:
		c := *n
		c.Args = all(n.Args)
		return f(&c)
	case *Logic:
		c := *n
		c.Args = all(n.Args)
		return f(&c)
	case *Case:
		c := *n
		c.Conds, c.Thens = all(n.Conds), all(n.Thens)
		if n.Else != nil {
			c.Else = Rewrite(n.Else, f)
		}
		return f(&c)
	case *Coalesce:
		c := *n
		c.Args = all(n.Args)
		return f(&c)
	case *In:
		c := *n
		c.Arg = Rewrite(n.Arg, f)
		return f(&c)
	case *Cast:
		c := *n
		c.Arg = Rewrite(n.Arg, f)
		return f(&c)
	case *Field:
		c := *n
		c.Arg = Rewrite(n.Arg, f)
		return f(&c)
	case *RowOf:
		c := *n
		c.Args = all(n.Args)
		return f(&c)
	case *ArrayOf:
		c := *n
		c.Args = all(n.Args)
		return f(&c)
	case *MapOf:
		c := *n
		c.Keys, c.Values = all(n.Keys), all(n.Values)
		return f(&c)
	}
	return f(e)
}

// Columns are the ordinals of the columns e reads, ascending, each once.
func Columns(exprs ...Expr) []int {
	seen := map[int]bool{}
	for _, e := range exprs {
		Walk(e, func(n Expr) bool {
			if c, ok := n.(*Column); ok {
				seen[c.Index] = true
			}
			return true
		})
	}
	return sortedKeys(seen)
}

// DeterminismOf is the weakest determinism of the calls in e.
func DeterminismOf(e Expr) fn.Determinism {
	d := fn.Deterministic
	Walk(e, func(n Expr) bool {
		if c, ok := n.(*Call); ok {
			d = max(d, c.Determinism())
		}
		return true
	})
	return d
}

// UserFunctions are the user functions that e calls, in order of evaluation.
func UserFunctions(e Expr) []fn.Version {
	var out []fn.Version
	Walk(e, func(n Expr) bool {
		if c, ok := n.(*Call); ok && c.Fn.User != nil {
			out = append(out, fn.Version{Function: c.Fn.Name, Version: c.Fn.User.Version})
		}
		return true
	})
	return out
}
