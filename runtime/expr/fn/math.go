package fn

import (
	"math"
	"strconv"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func mathFunctions() []*Function {
	return []*Function{
		{Name: "ABS", Syntax: []string{"ABS(x)"}, Category: CatArithmetic, Doc: "Magnitude, in the type of x. ABS of the smallest integer is an error.",
			Examples: []Example{{"ABS(-5)", "5"}, {"ABS(-1.50)", "1.50"}},
			Bind:     func(args []Arg) (Bound, error) { return bindSign("ABS", args, func(n bool) bool { return n }) }},
		ceilFloor("CEIL", []string{"CEILING"}, true), ceilFloor("FLOOR", nil, false),
		round("ROUND", "Rounded half away from zero to n fraction digits (0 when left out; negative n rounds before the point).",
			Example{"ROUND(2.5)", "3"}, Example{"ROUND(-2.5)", "-3"}, Example{"ROUND(1.005, 2)", "1.01"}, Example{"ROUND(1234, -2)", "1200"}),
		round("TRUNCATE", "Cut towards zero to n fraction digits (0 when left out).",
			Example{"TRUNCATE(42.345, 2)", "42.34"}, Example{"TRUNCATE(-42.9)", "-42"}),
		sign(),
		double1("SQRT", "Square root; NaN for a negative number.", math.Sqrt, Example{"SQRT(16)", "4.0"}),
		double1("EXP", "e to the power of x.", math.Exp, Example{"EXP(0)", "1.0"}),
		double1("LN", "Natural logarithm; NaN for a negative number, -Infinity for 0.", math.Log, Example{"LN(1)", "0.0"}),
		double1("LOG10", "Logarithm to base 10.", math.Log10, Example{"LOG10(1000)", "3.0"}),
		power(), rand0(), hexFn(), extreme("GREATEST", opGt), extreme("LEAST", opLt),
	}
}

// bindDouble types a function of DOUBLEs.
func bindDouble(name string, n int, k Kernel) func([]Arg) (Bound, error) {
	return func(args []Arg) (Bound, error) {
		if err := count(name, args, n, n); err != nil {
			return Bound{}, err
		}
		params := make([]types.Type, n)
		for i := range args {
			if err := want(name, args, i, "a number", isNumeric); err != nil {
				return Bound{}, err
			}
			params[i] = tDouble
		}
		return Bound{Params: params, Return: tDouble.WithNullable(anyNullable(args)), Kernel: k}, nil
	}
}

func double1(name, doc string, f func(float64) float64, ex Example) *Function {
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		a, am := args[0].F64, mask(args[0])
		for _, i := range sel {
			out.F64[i] = f(a[i&am])
		}
	}
	return &Function{Name: name, Syntax: []string{name + "(x)"}, Category: CatArithmetic, Doc: doc + " DOUBLE.",
		Examples: []Example{ex}, Bind: bindDouble(name, 1, k)}
}

func power() *Function {
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			out.F64[i] = math.Pow(args[0].Float64(int(i)), args[1].Float64(int(i)))
		}
	}
	return &Function{Name: "POWER", Syntax: []string{"POWER(x, y)"}, Category: CatArithmetic, Doc: "x to the power of y. DOUBLE.",
		Examples: []Example{{"POWER(2, 10)", "1024.0"}}, Bind: bindDouble("POWER", 2, k)}
}

func rand0() *Function {
	return &Function{Name: "RAND", Syntax: []string{"RAND()"}, Category: CatArithmetic, Determinism: PerCall,
		Doc:      "A random DOUBLE, at least 0 and less than 1, another one for each row and each call.",
		Examples: []Example{{"RAND() < 1", "TRUE"}},
		Bind: func(args []Arg) (Bound, error) {
			if err := count("RAND", args, 0, 0); err != nil {
				return Bound{}, err
			}
			return Bound{Return: tDouble.NotNull(), Kernel: func(ctx *Context, _ []*batch.Vec, sel batch.Sel, out *batch.Vec) {
				for _, i := range sel {
					out.F64[i] = ctx.Rand.Float64()
				}
			}}, nil
		}}
}

func sign() *Function {
	return &Function{Name: "SIGN", Syntax: []string{"SIGN(x)"}, Category: CatArithmetic, Doc: "-1, 0 or 1, in the type of x.",
		Examples: []Example{{"SIGN(-7)", "-1"}, {"SIGN(2.50)", "1.00"}},
		Bind: func(args []Arg) (Bound, error) {
			if err := count("SIGN", args, 1, 1); err != nil {
				return Bound{}, err
			}
			if err := want("SIGN", args, 0, "a number", isNumeric); err != nil {
				return Bound{}, err
			}
			t := args[0].Type
			if t.Kind == types.Null {
				t = tInt
			}
			return Bound{Params: []types.Type{t}, Return: t.WithNullable(anyNullable(args)), Kernel: func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
				one := types.Decimal128{}
				if t.Kind == types.Decimal {
					one = types.Pow10(t.Scale)
				}
				for _, i := range sel {
					switch {
					case t.Kind == types.Decimal:
						d, _ := one.Mul(types.DecimalFromInt64(int64(args[0].Decimal(int(i)).Sign())))
						out.SetDecimal(int(i), d)
					case t.Kind == types.Float || t.Kind == types.Double:
						f := args[0].Float64(int(i))
						if f != 0 && f == f {
							f = math.Copysign(1, f)
						}
						out.SetFloat64(int(i), f)
					default:
						x := args[0].Int64(int(i))
						out.SetInt64(int(i), b2i(x > 0)-b2i(x < 0))
					}
				}
			}}, nil
		}}
}

// ceilFloor is CEIL and FLOOR of numbers and, with a unit, of dates and times.
func ceilFloor(name string, aliases []string, up bool) *Function {
	f := &Function{Name: name, Aliases: aliases, Syntax: []string{name + "(x)", name + "(t TO unit)"}, Category: CatArithmetic}
	if up {
		f.Doc = "The smallest integer not below x. With a unit (SECOND to YEAR) the next full unit of a date or timestamp, in the session zone for TIMESTAMP_LTZ."
		f.Examples = []Example{{"CEIL(1.2)", "2"}, {"CEIL(-1.2)", "-1"}, {"CEIL(TIMESTAMP '2024-05-01 10:20:30', 'HOUR')", "2024-05-01 11:00:00"}}
	} else {
		f.Doc = "The largest integer not above x. With a unit (SECOND to YEAR) the start of that unit of a date or timestamp, in the session zone for TIMESTAMP_LTZ."
		f.Examples = []Example{{"FLOOR(1.8)", "1"}, {"FLOOR(-1.2)", "-2"}, {"FLOOR(TIMESTAMP '1969-12-31 23:59:59', 'HOUR')", "1969-12-31 23:00:00"}}
	}
	f.Bind = func(args []Arg) (Bound, error) {
		if err := count(name, args, 1, 2); err != nil {
			return Bound{}, err
		}
		if len(args) == 2 {
			return bindTruncTime(name, args, up)
		}
		if err := want(name, args, 0, "a number", isNumeric); err != nil {
			return Bound{}, err
		}
		t := args[0].Type
		ret := t
		switch t.Kind {
		case types.Null:
			t, ret = tInt, tInt
		case types.Decimal:
			// As Flink types it; the carry has room where there was a fraction.
			ret = types.NewDecimal(t.Precision, 0)
		}
		return Bound{Params: []types.Type{t}, Return: ret.WithNullable(anyNullable(args)), Kernel: roundKernel(t, ret, 0, func(d types.Decimal128, s, n int) (types.Decimal128, bool) {
			return ceilDecimal(d, s, up), true
		}, func(x float64, _ int) float64 {
			if up {
				return math.Ceil(x)
			}
			return math.Floor(x)
		}, nil)}, nil
	}
	return f
}

func ceilDecimal(d types.Decimal128, scale int, up bool) types.Decimal128 {
	q, r := d.QuoRem(types.Pow10(scale))
	one := types.Decimal128{Lo: 1}
	switch {
	case up && r.Sign() > 0:
		q, _ = q.Add(one)
	case !up && r.Sign() < 0:
		q, _ = q.Sub(one)
	}
	return q
}

// roundKernel applies a rounding of decimals (d at scale s to n digits, result
// at ret's scale), doubles and integers; n comes from the second argument, or
// is n0.
func roundKernel(t, ret types.Type, n0 int, dec func(d types.Decimal128, s, n int) (types.Decimal128, bool),
	dbl func(float64, int) float64, in func(x int64, n int) (int64, bool)) Kernel {
	return func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		a := args[0]
		for _, i := range sel {
			n := n0
			if len(args) > 1 {
				n = int(max(-400, min(400, args[1].Int64(int(i)))))
			}
			ok := true
			switch {
			case t.Kind == types.Decimal:
				var d types.Decimal128
				if d, ok = dec(a.Decimal(int(i)), t.Scale, n); ok && d.FitsPrecision(ret.Precision) {
					out.SetDecimal(int(i), d)
				} else {
					ok = false
				}
			case t.Kind == types.Float || t.Kind == types.Double:
				out.SetFloat64(int(i), dbl(a.Float64(int(i)), n))
			default:
				x := a.Int64(int(i))
				if in != nil {
					x, ok = in(x, n)
				}
				lo, hi := intRange(t.Kind)
				if ok = ok && x >= lo && x <= hi; ok {
					out.SetInt64(int(i), x)
				}
			}
			if !ok {
				ctx.Fail(out, i, batch.CodeOverflow, "%s rounded is out of range of %s", a.Text(int(i)), ret.WithNullable(true))
			}
		}
	}
}

// round is ROUND and TRUNCATE.
func round(name, doc string, ex ...Example) *Function {
	cut := name == "TRUNCATE"
	f := &Function{Name: name, Syntax: []string{name + "(x)", name + "(x, n)"}, Category: CatArithmetic, Doc: doc, Examples: ex}
	f.Bind = func(args []Arg) (Bound, error) {
		if err := count(name, args, 1, 2); err != nil {
			return Bound{}, err
		}
		if err := want(name, args, 0, "a number", isNumeric); err != nil {
			return Bound{}, err
		}
		t := args[0].Type
		if t.Kind == types.Null {
			t = tInt
		}
		ret, params := t, []types.Type{t}
		n, literal := int64(0), true
		if len(args) == 2 {
			if err := want(name, args, 1, "an integer", isInteger); err != nil {
				return Bound{}, err
			}
			params = append(params, tInt)
			n, literal = args[1].Int()
		}
		if t.Kind == types.Decimal {
			// A number of digits that is not a literal keeps the scale.
			if literal {
				ret = types.RoundDecimal(t, int(max(-40, min(40, n))))
			}
		}
		dec := func(d types.Decimal128, s, n int) (types.Decimal128, bool) {
			return roundDecimal(d, s, n, ret.Scale, cut)
		}
		return Bound{Params: params, Return: ret.WithNullable(anyNullable(args)), Kernel: roundKernel(t, ret, 0, dec,
			func(x float64, n int) float64 { return roundFloat(x, n, cut, t.Kind == types.Float) },
			func(x int64, n int) (int64, bool) { return roundInt(x, n, cut) })}, nil
	}
	return f
}

// roundDecimal rounds d of scale s to n digits and gives it at scale rs.
func roundDecimal(d types.Decimal128, s, n, rs int, cut bool) (types.Decimal128, bool) {
	if n >= s {
		return d.Rescale(s, rs)
	}
	if s-n > 38 {
		return types.Decimal128{}, true
	}
	if cut {
		d, _ = d.QuoRem(types.Pow10(s - n))
	} else {
		d, _ = d.Rescale(s-n, 0)
	}
	return d.Rescale2(n, rs)
}

func roundInt(x int64, n int, cut bool) (int64, bool) {
	if n >= 0 {
		return x, true
	}
	if n < -18 {
		return 0, true
	}
	p := types.Pow10Int64(-n)
	r := x % p
	q := x - r
	if cut || r < (p+1)/2 && r > -(p+1)/2 {
		return q, true
	}
	if r > 0 {
		return q + p, q <= math.MaxInt64-p
	}
	return q - p, q >= math.MinInt64+p
}

// roundFloat rounds the shortest decimal form of x, as Java's
// BigDecimal.valueOf(x).setScale does.
func roundFloat(x float64, n int, cut, single bool) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) || x == 0 {
		return x
	}
	bits := 64
	if single {
		bits = 32
	}
	var buf [32]byte
	s := strconv.AppendFloat(buf[:0], x, 'e', -1, bits)
	// d.ddddde[+-]xx: the digits, and the place of the last one.
	neg := s[0] == '-'
	if neg {
		s = s[1:]
	}
	e := len(s) - 1
	for s[e] != 'e' {
		e--
	}
	exp, _ := strconv.Atoi(string(s[e+1:]))
	digits := append([]byte{s[0]}, s[min(2, e):e]...)
	keep := exp + 1 + n // digits kept
	if keep >= len(digits) {
		return x
	}
	up := !cut && keep >= 0 && digits[keep] >= '5'
	if keep <= 0 {
		digits = digits[:0]
	} else {
		digits = digits[:keep]
	}
	if up {
		k := len(digits) - 1
		for ; k >= 0 && digits[k] == '9'; k-- {
			digits[k] = '0'
		}
		if k >= 0 {
			digits[k]++
		} else {
			digits = append([]byte{'1'}, digits...)
		}
	}
	if len(digits) == 0 {
		return 0
	}
	out := append(digits, 'e')
	out = strconv.AppendInt(out, int64(-n), 10)
	f, _ := strconv.ParseFloat(string(out), bits)
	if neg {
		f = -f
	}
	return f
}

func hexFn() *Function {
	const digits = "0123456789ABCDEF"
	return &Function{Name: "HEX", Syntax: []string{"HEX(n)", "HEX(s)"}, Category: CatHash,
		Doc:      "Hexadecimal digits of an integer (two's complement of 64 bits when negative), or of the bytes of a string.",
		Examples: []Example{{"HEX(20)", "14"}, {"HEX('hello,world')", "68656C6C6F2C776F726C64"}},
		Bind: func(args []Arg) (Bound, error) {
			if err := count("HEX", args, 1, 1); err != nil {
				return Bound{}, err
			}
			if err := want("HEX", args, 0, "an integer or a string", func(t types.Type) bool { return t.IsInteger() || t.IsString() || t.IsBinary() }); err != nil {
				return Bound{}, err
			}
			t := args[0].Type
			ret := tString.WithNullable(anyNullable(args))
			if t.IsString() || t.IsBinary() {
				return Bound{Params: []types.Type{t}, Return: ret, Kernel: func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
					for _, i := range sel {
						out.BeginBytes(int(i))
						for _, b := range text(args[0], i) {
							out.Data = append(out.Data, digits[b>>4], digits[b&15])
						}
						out.EndBytes()
					}
				}}, nil
			}
			return Bound{Params: []types.Type{tBigInt}, Return: ret, Kernel: func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
				for _, i := range sel {
					out.BeginBytes(int(i))
					n := len(out.Data)
					out.Data = strconv.AppendUint(out.Data, uint64(args[0].Int64(int(i))), 16)
					for k := n; k < len(out.Data); k++ {
						if out.Data[k] >= 'a' {
							out.Data[k] -= 'a' - 'A'
						}
					}
					out.EndBytes()
				}
			}}, nil
		}}
}

// extreme is GREATEST and LEAST.
func extreme(name string, op cmpOp) *Function {
	f := &Function{Name: name, Syntax: []string{name + "(a, b, ...)"}, Category: CatConditional,
		Doc: "The " + map[cmpOp]string{opGt: "greatest", opLt: "least"}[op] + " of the arguments, NULL if one is NULL."}
	if op == opGt {
		f.Examples = []Example{{"GREATEST(1, 3, 2)", "3"}, {"GREATEST('a', 'b')", "b"}, {"GREATEST(1, NULL)", "NULL"}}
	} else {
		f.Examples = []Example{{"LEAST(1, 3, 2)", "1"}, {"LEAST(1.5, 2)", "1.5"}}
	}
	f.Bind = func(args []Arg) (Bound, error) {
		if err := count(name, args, 1, -1); err != nil {
			return Bound{}, err
		}
		b, err := bindSame(name, args, func(t types.Type) types.Type { return t.WithNullable(anyNullable(args)) })
		if err != nil {
			return b, err
		}
		t := b.Params[0]
		if t.Kind == types.Null {
			t = tInt
			for i := range b.Params {
				b.Params[i] = t
			}
			b.Return = t
		}
		if t.IsNested() {
			return b, argErrf(-1, "%s values have no order", t.Kind)
		}
		cmp := compareKernel(op, []types.Type{t, t})
		b.Kernel = func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
			best := make([]int32, out.Len)
			var got batch.Vec
			for k := 1; k < len(args); k++ {
				// Compare with each earlier best by groups of rows.
				for j := 0; j < k; j++ {
					var rows batch.Sel
					for _, i := range sel {
						if best[i] == int32(j) {
							rows = append(rows, i)
						}
					}
					if len(rows) == 0 {
						continue
					}
					got.Reset(tBool, out.Len)
					cmp(ctx, []*batch.Vec{args[k], args[j]}, rows, &got)
					for _, i := range rows {
						if got.Bools.Get(int(i)) {
							best[i] = int32(k)
						}
					}
				}
			}
			for _, i := range sel {
				out.Put(int(i), args[best[i]], int(i))
			}
		}
		return b, nil
	}
	return f
}
