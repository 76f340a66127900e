package fn

import (
	"bytes"
	"strconv"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func itoa(n int) string { return strconv.Itoa(n) }

// cmpOp is a comparison.
type cmpOp uint8

const (
	opEq cmpOp = iota
	opNe
	opLt
	opLe
	opGt
	opGe
)

// holds reports whether a comparison result c (-1, 0, 1) satisfies the operator.
func (o cmpOp) holds(c int) bool {
	switch o {
	case opEq:
		return c == 0
	case opNe:
		return c != 0
	case opLt:
		return c < 0
	case opLe:
		return c <= 0
	case opGt:
		return c > 0
	}
	return c >= 0
}

// Equals is the operator "=".
func Equals() *Function {
	return comparison("=", opEq, "TRUE if both values are equal. NULL if one is NULL. NaN is not equal to itself.",
		Example{"1 = 1.0", "TRUE"}, Example{"'a' = 'A'", "FALSE"}, Example{"NULL = 1", "NULL"})
}

// LessOrEqual is the operator "<=".
func LessOrEqual() *Function {
	return comparison("<=", opLe, "TRUE if the first value is less or equal.", Example{"2 <= 2", "TRUE"})
}

// GreaterOrEqual is the operator ">=".
func GreaterOrEqual() *Function {
	return comparison(">=", opGe, "TRUE if the first value is greater or equal.", Example{"1.00 >= 1", "TRUE"})
}

func comparisons() []*Function {
	return []*Function{
		Equals(),
		comparison("<>", opNe, "TRUE if the values differ. NULL if one is NULL.", Example{"1 <> 2", "TRUE"}),
		comparison("<", opLt, "TRUE if the first value is less. Strings compare by code point.",
			Example{"1 < 2", "TRUE"}, Example{"'B' < 'a'", "TRUE"}, Example{"DATE '1969-12-31' < DATE '1970-01-01'", "TRUE"}),
		LessOrEqual(),
		comparison(">", opGt, "TRUE if the first value is greater.", Example{"10 > 9", "TRUE"}, Example{"'10' > '9'", "FALSE"}),
		GreaterOrEqual(),
		isDistinct("IS DISTINCT FROM", true, Example{"NULL IS DISTINCT FROM 1", "TRUE"}),
		isDistinct("IS NOT DISTINCT FROM", false, Example{"NULL IS NOT DISTINCT FROM NULL", "TRUE"}),
		between(),
	}
}

func comparison(name string, op cmpOp, doc string, ex ...Example) *Function {
	f := &Function{Name: name, Syntax: []string{"a " + name + " b"}, Category: CatComparison, Infix: true, Doc: doc, Examples: ex}
	f.Bind = func(args []Arg) (Bound, error) {
		if err := count(name, args, 2, 2); err != nil {
			return Bound{}, err
		}
		t, params, err := comparable2(name, args)
		if err != nil {
			return Bound{}, err
		}
		if t.IsNested() && op > opNe {
			return Bound{}, argErrf(-1, "%s values have no order, only = and <>", t.Kind)
		}
		return Bound{Params: params, Return: tBool.WithNullable(anyNullable(args)), Kernel: compareKernel(op, params)}, nil
	}
	return f
}

// comparable2 finds the types in which two arguments are compared.
func comparable2(name string, args []Arg) (types.Type, []types.Type, error) {
	a, b := args[0], args[1]
	// A string literal takes the type of the date or time it is compared with.
	if isTemporal(b.Type) && a.Const != nil && a.Type.IsString() {
		return b.Type, []types.Type{b.Type, b.Type}, nil
	}
	if isTemporal(a.Type) && b.Const != nil && b.Type.IsString() {
		return a.Type, []types.Type{a.Type, a.Type}, nil
	}
	x, ok1 := types.AsDecimal(a.Type)
	y, ok2 := types.AsDecimal(b.Type)
	if ok1 && ok2 && (a.Type.Kind == types.Decimal || b.Type.Kind == types.Decimal) {
		// Compared exactly, each at its own scale.
		return x, []types.Type{x, y}, nil
	}
	t, ok := types.Common(a.Type, b.Type)
	if !ok {
		return t, nil, argErrf(-1, "%s cannot compare %s with %s; CAST one of them", name, a.Type.WithNullable(true), b.Type.WithNullable(true))
	}
	switch {
	case t.Kind == types.Null:
		t = tBool
	case t.Kind == types.Float && a.Type.Kind != b.Type.Kind:
		// DOUBLE tells integers apart that are one FLOAT.
		t = tDouble
	case isDateAndTimestamp(a.Type, b.Type):
		return t, nil, argErrf(-1, "%s cannot compare %s with %s; CAST one of them", name, a.Type.WithNullable(true), b.Type.WithNullable(true))
	}
	return t, []types.Type{t, t}, nil
}

// isDateAndTimestamp finds the pair that has a common type and yet is not
// compared: whether a day means its midnight or all of it is for the query to say.
func isDateAndTimestamp(a, b types.Type) bool {
	return a.Kind == types.Date && b.IsTimestamp() || a.IsTimestamp() && b.Kind == types.Date
}

func isTemporal(t types.Type) bool {
	return t.Kind == types.Date || t.Kind == types.Time || t.IsTimestamp()
}

func compareKernel(op cmpOp, params []types.Type) Kernel {
	t := params[0]
	if t.Kind == types.Decimal {
		return decimalCompare(op, params[0], params[1])
	}
	switch t.Physical() {
	case types.PhysInt8:
		return numCompare[int8](op)
	case types.PhysInt16:
		return numCompare[int16](op)
	case types.PhysInt32:
		return numCompare[int32](op)
	case types.PhysInt64:
		return numCompare[int64](op)
	case types.PhysFloat32:
		return numCompare[float32](op)
	case types.PhysFloat64:
		return numCompare[float64](op)
	case types.PhysBytes:
		if op <= opNe {
			return bytesEqual(op == opNe)
		}
		return rowCompare(op, func(a *batch.Vec, i int32, b *batch.Vec) int { return bytes.Compare(text(a, i), text(b, i)) })
	case types.PhysBool:
		return rowCompare(op, func(a *batch.Vec, i int32, b *batch.Vec) int {
			x, y := a.Bool(int(i)), b.Bool(int(i))
			switch {
			case x == y:
				return 0
			case y:
				return -1
			}
			return 1
		})
	}
	return rowCompare(op, func(a *batch.Vec, i int32, b *batch.Vec) int {
		if batch.ValueEqual(a, int(i), b, int(i)) {
			return 0
		}
		return 1
	})
}

func numCompare[T number](op cmpOp) Kernel {
	return func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		a, b := values[T](args[0]), values[T](args[1])
		am, bm := mask(args[0]), mask(args[1])
		bits := out.Bools
		switch op {
		case opEq:
			for _, i := range sel {
				if a[i&am] == b[i&bm] {
					bits.Set(int(i))
				}
			}
		case opNe:
			for _, i := range sel {
				if a[i&am] != b[i&bm] {
					bits.Set(int(i))
				}
			}
		case opLt:
			for _, i := range sel {
				if a[i&am] < b[i&bm] {
					bits.Set(int(i))
				}
			}
		case opLe:
			for _, i := range sel {
				if a[i&am] <= b[i&bm] {
					bits.Set(int(i))
				}
			}
		case opGt:
			for _, i := range sel {
				if a[i&am] > b[i&bm] {
					bits.Set(int(i))
				}
			}
		case opGe:
			for _, i := range sel {
				if a[i&am] >= b[i&bm] {
					bits.Set(int(i))
				}
			}
		}
	}
}

func bytesEqual(not bool) Kernel {
	return func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		a, b := args[0], args[1]
		for _, i := range sel {
			if bytes.Equal(text(a, i), text(b, i)) != not {
				out.Bools.Set(int(i))
			}
		}
	}
}

func rowCompare(op cmpOp, cmp func(a *batch.Vec, i int32, b *batch.Vec) int) Kernel {
	return func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			if op.holds(cmp(args[0], i, args[1])) {
				out.Bools.Set(int(i))
			}
		}
	}
}

func decimalCompare(op cmpOp, at, bt types.Type) Kernel {
	if at.Scale == bt.Scale && at.Precision <= 18 && bt.Precision <= 18 {
		return numCompare[int64](op)
	}
	return rowCompare(op, func(a *batch.Vec, i int32, b *batch.Vec) int {
		return cmpDecimal(a.Decimal(int(i)), at.Scale, b.Decimal(int(i)), bt.Scale)
	})
}

// cmpDecimal compares exactly values of any two scales.
func cmpDecimal(a types.Decimal128, as int, b types.Decimal128, bs int) int {
	switch {
	case as < bs:
		x, ok := a.Mul(types.Pow10(bs - as))
		if !ok {
			// Beyond 128 bits at b's scale: larger than any b in magnitude.
			return a.Sign()
		}
		a = x
	case bs < as:
		y, ok := b.Mul(types.Pow10(as - bs))
		if !ok {
			return -b.Sign()
		}
		b = y
	}
	return a.Cmp(b)
}

func isDistinct(name string, distinct bool, ex Example) *Function {
	doc := "Equality that treats NULL as a value: never NULL itself."
	f := &Function{Name: name, Syntax: []string{"a " + name + " b"}, Category: CatComparison, Infix: true,
		Doc: doc, Nulls: NullCalled, Examples: []Example{ex}}
	f.Bind = func(args []Arg) (Bound, error) {
		if err := count(name, args, 2, 2); err != nil {
			return Bound{}, err
		}
		_, params, err := comparable2(name, args)
		if err != nil {
			return Bound{}, err
		}
		eq := compareKernel(opEq, params)
		kernel := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
			eq(ctx, args, sel, out)
			for _, i := range sel {
				x, y := null(args[0], i), null(args[1], i)
				if x || y {
					out.Bools.Put(int(i), x && y)
				}
				if distinct {
					out.Bools.Put(int(i), !out.Bools.Get(int(i)))
				}
			}
		}
		return Bound{Params: params, Return: tBool.NotNull(), Kernel: kernel}, nil
	}
	return f
}

func between() *Function {
	// BETWEEN is planned as two comparisons; the declaration is for docs.
	return &Function{Name: "BETWEEN", Syntax: []string{"x BETWEEN a AND b"}, Category: CatComparison,
		Doc:      "TRUE if a <= x and x <= b. The bounds are included; with bounds in the wrong order it is FALSE.",
		Examples: []Example{{"BETWEEN(2, 1, 3)", "TRUE"}, {"BETWEEN(2, 3, 1)", "FALSE"}, {"BETWEEN(5, NULL, 3)", "FALSE"}, {"BETWEEN(2, NULL, 3)", "NULL"}},
		Form:     FormBetween,
		Bind: func(args []Arg) (Bound, error) {
			if err := count("BETWEEN", args, 3, 3); err != nil {
				return Bound{}, err
			}
			params := []types.Type{args[0].Type, args[1].Type, args[2].Type}
			return Bound{Params: params, Return: tBool.WithNullable(anyNullable(args))}, nil
		}}
}
