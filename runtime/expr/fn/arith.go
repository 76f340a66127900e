package fn

import (
	"math"
	"math/bits"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func arithmetic() []*Function {
	return []*Function{
		arithOp('+', "Sum. Overflow of an integer or DECIMAL is an error. Also date or timestamp plus interval.",
			Example{"1 + 2", "3"}, Example{"1.10 + 2.5", "3.60"}, Example{"2147483647 + 1", "error:overflow"},
			Example{"TIMESTAMP '2024-02-29 12:00:00' + INTERVAL '1' DAY", "2024-03-01 12:00:00"}),
		arithOp('-', "Difference. Overflow of an integer or DECIMAL is an error. Also date or timestamp minus interval.",
			Example{"1 - 2", "-1"}, Example{"1.10 - 2.5", "-1.40"}, Example{"DATE '2024-03-01' - INTERVAL '1' DAY", "2024-02-29"}),
		arithOp('*', "Product. Overflow of an integer or DECIMAL is an error. Also interval times integer.",
			Example{"3 * 4", "12"}, Example{"1.5 * 1.5", "2.25"}, Example{"DATE '2024-02-28' + INTERVAL '1' DAY * 2", "2024-03-01"}),
		arithOp('/', "Quotient. Of integers it is cut towards zero. x / 0 is an error, but for FLOAT and DOUBLE.",
			Example{"7 / 2", "3"}, Example{"-7 / 2", "-3"}, Example{"1.0 / 3", "0.333333333333"},
			Example{"1 / 0", "error:division_by_zero"}, Example{"CAST(1 AS DOUBLE) / 0", "Infinity"}),
		arithOp('%', "Remainder, with the sign of the first operand. x % 0 is an error, but for FLOAT and DOUBLE.",
			Example{"-7 % 3", "-1"}, Example{"7 % -3", "1"}, Example{"5.5 % 2", "1.5"}),
		mod(), negate(),
	}
}

func mod() *Function {
	f := arithOp('%', "Remainder, with the sign of the first argument; as a % b.", Example{"MOD(-7, 3)", "-1"}, Example{"MOD(7, 0)", "error:division_by_zero"})
	f.Name, f.Syntax, f.Infix = "MOD", []string{"MOD(a, b)"}, false
	return f
}

func arithOp(op byte, doc string, ex ...Example) *Function {
	name := string(op)
	return &Function{Name: name, Syntax: []string{"a " + name + " b"}, Category: CatArithmetic, Infix: true, Doc: doc, Examples: ex,
		Bind: func(args []Arg) (Bound, error) {
			if err := count(name, args, 2, 2); err != nil {
				return Bound{}, err
			}
			if b, ok := bindInterval(op, args); ok {
				return b, nil
			}
			if err := notOfIntervals(op, args); err != nil {
				return Bound{}, err
			}
			return bindArith(op, args)
		}}
}

func bindArith(op byte, args []Arg) (Bound, error) {
	name := string(op)
	for i := range args {
		if err := want(name, args, i, "a number", isNumeric); err != nil {
			return Bound{}, err
		}
	}
	nullable := anyNullable(args)
	t, ok := types.Common(args[0].Type, args[1].Type)
	if !ok {
		return Bound{}, argErrf(-1, "%s has no meaning for %s and %s", name, args[0].Type, args[1].Type)
	}
	switch {
	case t.Kind == types.Null:
		t = tInt
	case t.Kind == types.Decimal:
		a, ok1 := types.AsDecimal(args[0].Type)
		b, ok2 := types.AsDecimal(args[1].Type)
		if !ok1 {
			a = b
		}
		if !ok2 {
			b = a
		}
		ret := decimalResult(op, a, b)
		return Bound{Params: []types.Type{a, b}, Return: ret.WithNullable(nullable), Kernel: decimalArith(op, a, b, ret)}, nil
	}
	if op == '%' && t.IsInteger() && args[1].Type.IsInteger() && args[1].Type.Kind < t.Kind {
		// A remainder is less than the divisor, whose type Flink gives it.
		return Bound{Params: []types.Type{t, t}, Return: args[1].Type.WithNullable(nullable), Kernel: remainder}, nil
	}
	return Bound{Params: []types.Type{t, t}, Return: t.WithNullable(nullable), Kernel: numArith(op, t)}, nil
}

// remainder gives the remainder of integers in a type narrower than theirs.
func remainder(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		a, b := args[0].Int64(int(i)), args[1].Int64(int(i))
		if b == 0 {
			ctx.Fail(out, i, batch.CodeDivisionByZero, "%d %% 0", a)
			continue
		}
		out.SetInt64(int(i), a%b)
	}
}

func decimalResult(op byte, a, b types.Type) types.Type {
	switch op {
	case '*':
		return types.MulDecimal(a, b)
	case '/':
		return types.DivDecimal(a, b)
	case '%':
		return types.ModDecimal(a, b)
	}
	return types.AddDecimal(a, b)
}

func numArith(op byte, t types.Type) Kernel {
	switch t.Kind {
	case types.TinyInt:
		return intArith[int8](op)
	case types.SmallInt:
		return intArith[int16](op)
	case types.Int:
		return intArith[int32](op)
	case types.BigInt:
		return intArith[int64](op)
	case types.Float:
		return floatArith[float32](op)
	}
	return floatArith[float64](op)
}

type integer interface {
	~int8 | ~int16 | ~int32 | ~int64
}

func intArith[T integer](op byte) Kernel {
	over := func(ctx *Context, out *batch.Vec, i int32, a, b T) {
		ctx.Fail(out, i, batch.CodeOverflow, "%d %c %d is out of range of %s", a, op, b, out.Type.WithNullable(true))
	}
	zero := func(ctx *Context, out *batch.Vec, i int32, a T) {
		ctx.Fail(out, i, batch.CodeDivisionByZero, "%d %c 0", a, op)
	}
	return func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		a, b, o := values[T](args[0]), values[T](args[1]), values[T](out)
		am, bm := mask(args[0]), mask(args[1])
		switch op {
		case '+':
			for _, i := range sel {
				x, y := a[i&am], b[i&bm]
				z := x + y
				if (x^z)&(y^z) < 0 {
					over(ctx, out, i, x, y)
					continue
				}
				o[i] = z
			}
		case '-':
			for _, i := range sel {
				x, y := a[i&am], b[i&bm]
				z := x - y
				if (x^y)&(x^z) < 0 {
					over(ctx, out, i, x, y)
					continue
				}
				o[i] = z
			}
		case '*':
			for _, i := range sel {
				x, y := a[i&am], b[i&bm]
				z, ok := mulInt(int64(x), int64(y))
				if !ok || int64(T(z)) != z {
					over(ctx, out, i, x, y)
					continue
				}
				o[i] = T(z)
			}
		case '/':
			for _, i := range sel {
				x, y := a[i&am], b[i&bm]
				if y == 0 {
					zero(ctx, out, i, x)
				} else if z := x / y; y == -1 && x < 0 && z < 0 {
					over(ctx, out, i, x, y) // the minimum has no positive counterpart
				} else {
					o[i] = z
				}
			}
		case '%':
			for _, i := range sel {
				x, y := a[i&am], b[i&bm]
				if y == 0 {
					zero(ctx, out, i, x)
				} else {
					o[i] = x % y
				}
			}
		}
	}
}

// mulInt is the checked product.
func mulInt(x, y int64) (int64, bool) {
	hi, lo := bits.Mul64(uint64(x), uint64(y))
	// Signed correction of the unsigned high word.
	h := int64(hi)
	if x < 0 {
		h -= y
	}
	if y < 0 {
		h -= x
	}
	return int64(lo), h == int64(lo)>>63
}

func floatArith[T float32 | float64](op byte) Kernel {
	return func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		a, b, o := values[T](args[0]), values[T](args[1]), values[T](out)
		am, bm := mask(args[0]), mask(args[1])
		switch op {
		case '+':
			for _, i := range sel {
				o[i] = a[i&am] + b[i&bm]
			}
		case '-':
			for _, i := range sel {
				o[i] = a[i&am] - b[i&bm]
			}
		case '*':
			for _, i := range sel {
				o[i] = a[i&am] * b[i&bm]
			}
		case '/':
			for _, i := range sel {
				o[i] = a[i&am] / b[i&bm]
			}
		case '%':
			for _, i := range sel {
				o[i] = T(math.Mod(float64(a[i&am]), float64(b[i&bm])))
			}
		}
	}
}

func decimalArith(op byte, at, bt, rt types.Type) Kernel {
	as, bs, rs := at.Scale, bt.Scale, rt.Scale
	if (op == '+' || op == '-') && rt.Precision <= 18 {
		return smallDecimalAdd(op, types.Pow10Int64(rs-as), types.Pow10Int64(rs-bs))
	}
	if op == '*' && rs == as+bs && at.Precision <= 18 && bt.Precision <= 18 {
		return smallDecimalMul
	}
	compute := func(a, b types.Decimal128) (types.Decimal128, bool) {
		switch op {
		case '+':
			return types.AddScaled(a, as, b, bs, rs)
		case '-':
			return types.AddScaled(a, as, b.Neg(), bs, rs)
		case '*':
			return a.MulScaled(b, as+bs-rs)
		case '/':
			return a.DivScaled(b, rs-as+bs)
		}
		return types.RemScaled(a, as, b, bs, rs)
	}
	divides := op == '/' || op == '%'
	return func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			a, b := args[0].Decimal(int(i)), args[1].Decimal(int(i))
			if divides && b.Sign() == 0 {
				ctx.Fail(out, i, batch.CodeDivisionByZero, "%s %c 0", types.FormatDecimal(a, as), op)
				continue
			}
			d, ok := compute(a, b)
			if !ok || !d.FitsPrecision(rt.Precision) {
				ctx.Fail(out, i, batch.CodeOverflow, "%s %c %s is out of range of %s",
					types.FormatDecimal(a, as), op, types.FormatDecimal(b, bs), rt.WithNullable(true))
				continue
			}
			out.SetDecimal(int(i), d)
		}
	}
}

// smallDecimalAdd adds decimals whose result has at most 18 digits: the result
// rules leave room for every sum, so nothing can overflow.
func smallDecimalAdd(op byte, ap, bp int64) Kernel {
	if op == '-' {
		bp = -bp
	}
	return func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		a, b := args[0].I64, args[1].I64
		am, bm := mask(args[0]), mask(args[1])
		for _, i := range sel {
			out.I64[i] = a[i&am]*ap + b[i&bm]*bp
		}
	}
}

// smallDecimalMul multiplies decimals of at most 18 digits each; the result
// type has room for every product, and no digit is dropped.
func smallDecimalMul(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	a, b := args[0].I64, args[1].I64
	am, bm := mask(args[0]), mask(args[1])
	if out.Type.Precision <= 18 {
		for _, i := range sel {
			out.I64[i] = a[i&am] * b[i&bm]
		}
		return
	}
	for _, i := range sel {
		x, y := a[i&am], b[i&bm]
		hi, lo := bits.Mul64(uint64(x), uint64(y))
		// Signed correction of the unsigned high word.
		out.D128[i] = types.Decimal128{Lo: lo, Hi: int64(hi) - (x>>63)&y - (y>>63)&x}
	}
}

func negate() *Function {
	return &Function{Name: "NEGATE", Syntax: []string{"-a"}, Category: CatArithmetic,
		Doc:      "The value with its sign changed. The smallest integer has no opposite: an error.",
		Examples: []Example{{"-(3)", "-3"}, {"-(1.50)", "-1.50"}},
		Bind: func(args []Arg) (Bound, error) {
			return bindSign("NEGATE", args, func(neg bool) bool { return true })
		}}
}

// bindSign is -a and ABS: flip says whether a value of a sign is negated.
func bindSign(name string, args []Arg, flip func(negative bool) bool) (Bound, error) {
	if err := count(name, args, 1, 1); err != nil {
		return Bound{}, err
	}
	ok := func(t types.Type) bool {
		return t.IsNumeric() || t.Kind == types.IntervalDaySecond || t.Kind == types.IntervalYearMonth
	}
	if err := want(name, args, 0, "a number", ok); err != nil {
		return Bound{}, err
	}
	t := args[0].Type
	if t.Kind == types.Null {
		t = tInt
	}
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		a := args[0]
		for _, i := range sel {
			switch {
			case t.Kind == types.Float || t.Kind == types.Double:
				f := a.Float64(int(i))
				if flip(math.Signbit(f)) {
					f = -f
				}
				out.SetFloat64(int(i), f)
			case t.Kind == types.Decimal:
				d := a.Decimal(int(i))
				if flip(d.Sign() < 0) {
					d = d.Neg()
				}
				out.SetDecimal(int(i), d)
			default:
				x := a.Int64(int(i))
				if flip(x < 0) {
					lo, _ := intRange(physicalInt(t))
					if x == lo {
						ctx.Fail(out, i, batch.CodeOverflow, "the opposite of %d is out of range of %s", x, t.WithNullable(true))
						continue
					}
					x = -x
				}
				out.SetInt64(int(i), x)
			}
		}
	}
	return Bound{Params: []types.Type{t}, Return: t.WithNullable(anyNullable(args)), Kernel: k}, nil
}

// physicalInt is the integer kind with a type's layout.
func physicalInt(t types.Type) types.Kind {
	switch t.Physical() {
	case types.PhysInt8:
		return types.TinyInt
	case types.PhysInt16:
		return types.SmallInt
	case types.PhysInt32:
		return types.Int
	}
	return types.BigInt
}
