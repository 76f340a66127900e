package expr

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

func sortedKeys(m map[int]bool) []int {
	out := make([]int, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// NewColumn refers to column index of a schema.
func NewColumn(s *batch.Schema, index int) *Column {
	f := s.Fields[index]
	return &Column{Index: index, Name: f.Name, T: f.Type}
}

// NewLiteral wraps row 0 of v as a constant.
func NewLiteral(v *batch.Vec) *Literal {
	c := new(batch.Vec)
	c.SetConst(v, 0, 1)
	return &Literal{Value: c}
}

func literal(t types.Type, set func(v *batch.Vec)) *Literal {
	v := new(batch.Vec)
	v.Reset(t, 1)
	set(v)
	v.PadOffsets()
	v.Enc = batch.Const
	return &Literal{Value: v}
}

// Null is NULL of a type; types.Simple(types.Null) for an untyped one.
func Null(t types.Type) *Literal {
	return literal(t.WithNullable(true), func(v *batch.Vec) { v.SetNull(0) })
}

// Bool is TRUE or FALSE.
func Bool(b bool) *Literal {
	return literal(types.NewBoolean().NotNull(), func(v *batch.Vec) { v.Bools.Put(0, b) })
}

// Int is an integer-like literal of type t, whose layout is one of the int
// ones: integers, DECIMAL p<=18 (unscaled), DATE, TIME, TIMESTAMP, INTERVAL in
// the units of runtime/types.
func Int(t types.Type, x int64) *Literal {
	return literal(t.NotNull(), func(v *batch.Vec) { v.SetInt64(0, x) })
}

// Float is a FLOAT or DOUBLE literal.
func Float(t types.Type, x float64) *Literal {
	return literal(t.NotNull(), func(v *batch.Vec) { v.SetFloat64(0, x) })
}

// Decimal is a DECIMAL literal by its unscaled value.
func Decimal(t types.Type, unscaled types.Decimal128) *Literal {
	return literal(t.NotNull(), func(v *batch.Vec) { v.SetDecimal(0, unscaled) })
}

// Text is a string literal: CHAR(n) NOT NULL with n its code points, as in
// Flink; STRING when it is empty.
func Text(s string) *Literal {
	t := types.NewString()
	if n := len([]rune(s)); n > 0 {
		t = types.NewChar(n)
	}
	return literal(t.NotNull(), func(v *batch.Vec) { v.PutBytes(0, []byte(s)) })
}

// Bytes is a binary literal, x'..'.
func Bytes(b []byte) *Literal {
	return literal(types.NewBinary(max(len(b), 1)).NotNull(), func(v *batch.Vec) { v.PutBytes(0, b) })
}

// ArgsOf describes expressions to fn.Function.Bind.
func ArgsOf(args ...Expr) []fn.Arg {
	out := make([]fn.Arg, len(args))
	for i, a := range args {
		out[i].Type = a.Type()
		if l, ok := a.(*Literal); ok {
			out[i].Const = l.Value
		}
	}
	return out
}

// NewCall applies a function or operator: it binds f to the arguments, casts
// them implicitly to the types that f asks for, and returns a Call or the
// node of a lazy form. An error that is (by errors.As) an *fn.ArgError says
// which argument is at fault.
func NewCall(f *fn.Function, args ...Expr) (Expr, error) {
	b, err := f.Bind(ArgsOf(args...))
	if err != nil {
		return nil, err
	}
	cast := make([]Expr, len(args))
	for i, a := range args {
		if cast[i], err = Implicit(a, b.Params[i]); err != nil {
			return nil, &fn.ArgError{Arg: i, Offset: -1, Msg: fmt.Sprintf("argument %d of %s: %s", i+1, f.Name, err)}
		}
	}
	switch f.Form {
	case fn.FormAnd:
		return &Logic{Op: And, Args: cast}, nil
	case fn.FormOr:
		return &Logic{Op: Or, Args: cast}, nil
	case fn.FormIf, fn.FormCase:
		c := &Case{T: b.Return}
		for i := 0; i+1 < len(cast); i += 2 {
			c.Conds, c.Thens = append(c.Conds, cast[i]), append(c.Thens, cast[i+1])
		}
		if len(cast)%2 == 1 {
			c.Else = cast[len(cast)-1]
		}
		return c, nil
	case fn.FormCoalesce:
		return &Coalesce{Args: cast, T: b.Return}, nil
	case fn.FormNullIf:
		eq, err := NewCall(fn.Equals(), cast[0], cast[1])
		if err != nil {
			return nil, err
		}
		// The result keeps the type of the first argument, uncast.
		t := args[0].Type().WithNullable(true)
		return &Case{Conds: []Expr{eq}, Thens: []Expr{Null(t)}, Else: args[0], T: t}, nil
	case fn.FormIn:
		return NewIn(cast[0], cast[1:]...)
	case fn.FormBetween:
		return NewBetween(args[0], args[1], args[2])
	}
	return &Call{Fn: f, Bound: b, Args: cast}, nil
}

// NewIn is arg IN (list...), after all have been cast to one type.
func NewIn(arg Expr, list ...Expr) (Expr, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("IN needs at least one value")
	}
	in := &In{Arg: arg}
	for _, e := range list {
		l, ok := e.(*Literal)
		if !ok || arg.Type().IsNested() {
			in = nil
			break
		}
		in.List = append(in.List, l)
	}
	if in != nil {
		return in, nil
	}
	or := &Logic{Op: Or}
	for _, e := range list {
		eq, err := NewCall(fn.Equals(), arg, e)
		if err != nil {
			return nil, err
		}
		or.Args = append(or.Args, eq)
	}
	if len(or.Args) == 1 {
		return or.Args[0], nil
	}
	return or, nil
}

// NewBetween is arg >= lo AND arg <= hi.
func NewBetween(arg, lo, hi Expr) (Expr, error) {
	ge, err := NewCall(fn.GreaterOrEqual(), arg, lo)
	if err != nil {
		return nil, err
	}
	le, err := NewCall(fn.LessOrEqual(), arg, hi)
	if err != nil {
		return nil, err
	}
	return NewAnd(ge, le), nil
}

// NewAnd is the conjunction of one or more BOOLEANs.
func NewAnd(args ...Expr) Expr { return newLogic(And, args) }

// NewOr is the disjunction of one or more BOOLEANs.
func NewOr(args ...Expr) Expr { return newLogic(Or, args) }

func newLogic(op LogicOp, args []Expr) Expr {
	var flat []Expr
	for _, a := range args {
		if l, ok := a.(*Logic); ok && l.Op == op {
			flat = append(flat, l.Args...)
		} else {
			flat = append(flat, a)
		}
	}
	if len(flat) == 1 {
		return flat[0]
	}
	return &Logic{Op: op, Args: flat}
}

// NewCast is CAST(arg AS to), TRY_CAST with try. The nullability of to is
// ignored: the result is nullable if arg is, or with try. A pair of types
// without a cast is an error that names both.
func NewCast(arg Expr, to types.Type, try bool) (Expr, error) {
	from := arg.Type()
	to = to.WithNullable(from.Nullable || from.Kind == types.Null || try)
	l, constant := arg.(*Literal)
	null := constant && l.Value.IsNull(0) && !l.Value.HasErrs()
	switch {
	case from.EqualIgnoringNull(to):
		if null {
			return Null(to), nil
		}
		return arg, nil
	case fn.Relabels(from, to) && !null:
		return &Cast{Arg: arg, To: to, Try: try}, nil
	}
	// A NULL that has a type takes no cast that its type does not have.
	// Text is the exception, as in Flink: its NULL goes into an ARRAY.
	k, err := fn.CastKernel(from, to, try)
	switch {
	case null && (err == nil || from.IsString() && to.Kind == types.Array):
		return Null(to), nil
	case err != nil:
		return nil, err
	}
	return &Cast{Arg: arg, To: to, Try: try, kernel: k}, nil
}

// Implicit casts arg to a type if SQL does so without being asked, and
// returns arg itself where nothing has to change.
func Implicit(arg Expr, to types.Type) (Expr, error) {
	from := arg.Type()
	if from.EqualIgnoringNull(to) {
		return arg, nil
	}
	if l, ok := arg.(*Literal); ok && from.IsString() && isTemporal(to) {
		return temporalLiteral(l, to)
	}
	if !fn.ImplicitlyCasts(from, to) {
		return nil, fmt.Errorf("%s is not implicitly cast to %s", from.WithNullable(true), to.WithNullable(true))
	}
	if l, ok := arg.(*Literal); ok && !l.Value.IsNull(0) {
		if c, err := NewCast(arg, to, false); err == nil {
			return Fold(c), nil
		}
	}
	return NewCast(arg, to, false)
}

func isTemporal(t types.Type) bool {
	return t.Kind == types.Date || t.Kind == types.Time || t.IsTimestamp()
}

// temporalLiteral reads a string literal that stands where a date or time is
// wanted; text that is none is an error of the statement, not of its rows.
func temporalLiteral(l *Literal, to types.Type) (Expr, error) {
	c, err := NewCast(l, to, false)
	if err != nil || to.Kind == types.TimestampLTZ {
		return c, err
	}
	if f, ok := Fold(c).(*Literal); ok {
		return f, nil
	}
	return nil, fmt.Errorf("%s is not %s", l, to.WithNullable(true))
}

// NewField is field index of a ROW.
func NewField(arg Expr, index int) (*Field, error) {
	t := arg.Type()
	if t.Kind != types.Row || index < 0 || index >= len(t.Fields) {
		return nil, fmt.Errorf("%s has no field number %d", t, index)
	}
	f := t.Fields[index].Type
	return &Field{Arg: arg, Index: index, T: f.WithNullable(f.Nullable || t.Nullable)}, nil
}

// NewRow is ROW(args...) with field names, EXPR$0... where names is nil.
func NewRow(names []string, args ...Expr) *RowOf {
	t := types.Type{Kind: types.Row}
	for i, a := range args {
		name := fmt.Sprintf("EXPR$%d", i)
		if names != nil {
			name = names[i]
		}
		t.Fields = append(t.Fields, types.Field{Name: name, Type: a.Type()})
	}
	return &RowOf{Args: args, T: t}
}

// NewArray is ARRAY[args...]; the arguments are brought to one type.
func NewArray(args ...Expr) (*ArrayOf, error) {
	elem, cast, err := unify("ARRAY", args)
	if err != nil {
		return nil, err
	}
	return &ArrayOf{Args: cast, T: types.NewArray(elem).NotNull()}, nil
}

// NewMap is MAP[k, v, ...]; keys and values are each brought to one type.
func NewMap(keys, values []Expr) (*MapOf, error) {
	kt, ks, err := unify("MAP", keys)
	if err != nil {
		return nil, err
	}
	vt, vs, err := unify("MAP", values)
	if err != nil {
		return nil, err
	}
	return &MapOf{Keys: ks, Values: vs, T: types.NewMap(kt, vt).NotNull()}, nil
}

func unify(what string, args []Expr) (types.Type, []Expr, error) {
	if len(args) == 0 {
		return types.Type{}, nil, fmt.Errorf("%s[] needs at least one element", what)
	}
	ts := make([]types.Type, len(args))
	for i, a := range args {
		ts[i] = a.Type()
	}
	t, ok := types.Common(ts...)
	if !ok {
		return t, nil, fmt.Errorf("elements of %s have no common type", what)
	}
	out := make([]Expr, len(args))
	for i, a := range args {
		var err error
		if out[i], err = Implicit(a, t); err != nil {
			return t, nil, err
		}
	}
	return t, out, nil
}
