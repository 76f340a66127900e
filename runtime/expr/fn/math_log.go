package fn

import (
	"math"
	"strconv"

	"github.com/millrace/millrace/runtime/batch"
)

// The factors of DEGREES and RADIANS, as Java's Math has them.
const (
	degreesPerRadian = 57.29577951308232
	radiansPerDegree = 0.017453292519943295
)

// moreMath are the functions of analysis: angles in radians, results DOUBLE.
func moreMath() []*Function {
	return []*Function{
		double1("LOG2", "Logarithm to base 2; NaN for a negative number, -Infinity for 0.", func(x float64) float64 { return math.Log(x) / math.Ln2 }, Example{"LOG2(8)", "3.0"}),
		logFn(),
		double1("SIN", "Sine of an angle in radians.", math.Sin, Example{"SIN(0)", "0.0"}),
		double1("COS", "Cosine of an angle in radians.", math.Cos, Example{"COS(0)", "1.0"}),
		double1("TAN", "Tangent of an angle in radians.", math.Tan, Example{"TAN(0)", "0.0"}),
		double1("COT", "Cotangent of an angle in radians, 1 / TAN(x); Infinity for 0.", func(x float64) float64 { return 1 / math.Tan(x) }, Example{"COT(0)", "Infinity"}),
		double1("ASIN", "Angle in radians whose sine is x; NaN outside -1 to 1.", math.Asin, Example{"ASIN(0)", "0.0"}),
		double1("ACOS", "Angle in radians whose cosine is x; NaN outside -1 to 1.", math.Acos, Example{"ACOS(1)", "0.0"}),
		double1("ATAN", "Angle in radians whose tangent is x.", math.Atan, Example{"ATAN(0)", "0.0"}),
		atan2(),
		double1("SINH", "Hyperbolic sine.", math.Sinh, Example{"SINH(0)", "0.0"}),
		double1("COSH", "Hyperbolic cosine.", math.Cosh, Example{"COSH(0)", "1.0"}),
		double1("TANH", "Hyperbolic tangent.", math.Tanh, Example{"TANH(0)", "0.0"}),
		double1("DEGREES", "An angle in radians as degrees.", func(x float64) float64 { return x * degreesPerRadian }, Example{"DEGREES(PI())", "180.0"}),
		double1("RADIANS", "An angle in degrees as radians.", func(x float64) float64 { return x * radiansPerDegree }, Example{"RADIANS(180)", "3.141592653589793"}),
		constant("PI", "The DOUBLE nearest to pi.", math.Pi, "3.141592653589793"),
		constant("E", "The DOUBLE nearest to e, the base of the natural logarithm.", math.E, "2.718281828459045"),
		randInteger(), bin(),
	}
}

func logFn() *Function {
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			if len(args) == 1 {
				out.F64[i] = math.Log(args[0].Float64(int(i)))
			} else {
				out.F64[i] = math.Log(args[1].Float64(int(i))) / math.Log(args[0].Float64(int(i)))
			}
		}
	}
	return &Function{Name: "LOG", Syntax: []string{"LOG(x)", "LOG(base, x)"}, Category: CatArithmetic,
		Doc:      "Natural logarithm of x, or its logarithm to a base. NaN for a negative number. DOUBLE.",
		Examples: []Example{{"LOG(1)", "0.0"}, {"LOG(2, 8)", "3.0"}},
		Bind: func(args []Arg) (Bound, error) {
			if err := count("LOG", args, 1, 2); err != nil {
				return Bound{}, err
			}
			return bindDouble("LOG", len(args), k)(args)
		}}
}

func atan2() *Function {
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			out.F64[i] = math.Atan2(args[0].Float64(int(i)), args[1].Float64(int(i)))
		}
	}
	return &Function{Name: "ATAN2", Syntax: []string{"ATAN2(y, x)"}, Category: CatArithmetic, Doc: "Angle in radians of the point (x, y). DOUBLE.",
		Examples: []Example{{"ATAN2(0, 1)", "0.0"}, {"ATAN2(0, -1)", "3.141592653589793"}}, Bind: bindDouble("ATAN2", 2, k)}
}

func constant(name, doc string, x float64, text string) *Function {
	k := func(_ *Context, _ []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			out.F64[i] = x
		}
	}
	return &Function{Name: name, Syntax: []string{name + "()"}, Category: CatArithmetic, Doc: doc,
		Examples: []Example{{name + "()", text}}, Bind: bindDouble(name, 0, k)}
}

func randInteger() *Function {
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			n := args[0].Int64(int(i))
			if n < 1 || n > math.MaxInt32 {
				ctx.Fail(out, i, batch.CodeArgument, "RAND_INTEGER of %d: the bound must be an INT greater than 0", n)
				continue
			}
			out.I32[i] = ctx.Rand.Int32N(int32(n))
		}
	}
	return &Function{Name: "RAND_INTEGER", Syntax: []string{"RAND_INTEGER(n)"}, Category: CatArithmetic, Determinism: PerCall,
		Doc:      "A random INT, at least 0 and less than n, another one for each row and each call.",
		Examples: []Example{{"RAND_INTEGER(1)", "0"}, {"RAND_INTEGER(0)", "error:invalid_argument"}},
		Bind:     fixed("RAND_INTEGER", tInt.NotNull(), 0, k, pInt)}
}

func bin() *Function {
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			out.BeginBytes(int(i))
			out.Data = strconv.AppendUint(out.Data, uint64(args[0].Int64(int(i))), 2)
			out.EndBytes()
		}
	}
	return &Function{Name: "BIN", Syntax: []string{"BIN(n)"}, Category: CatHash,
		Doc:      "Binary digits of an integer, two's complement of 64 bits when negative.",
		Examples: []Example{{"BIN(4)", "100"}, {"BIN(12)", "1100"}}, Bind: fixed("BIN", notNullString, 0, k, pInt)}
}
