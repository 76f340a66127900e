package expr_test

import (
	"math/big"
	"strings"
	"time"

	"github.com/millrace/millrace/runtime/types"
)

// The reference evaluator: one row at a time, over boxed values and the
// standard library (math/big, strings, time, regexp). It shares no code with
// the kernels but the rules for the types of results, which have tests of
// their own.

// scalar is a value of the reference: n for integers and DECIMALs, f for
// DOUBLE, s for STRING, b for BOOLEAN, t for TIMESTAMP.
type scalar struct {
	null, err bool
	n         *big.Rat
	f         float64
	s         string
	b         bool
	t         time.Time
}

var (
	null    = scalar{null: true}
	failure = scalar{err: true}
)

func number(n *big.Rat) scalar { return scalar{n: n} }
func integer(n int64) scalar   { return scalar{n: new(big.Rat).SetInt64(n)} }
func text(s string) scalar     { return scalar{s: s} }
func boolean(b bool) scalar    { return scalar{b: b} }

// term is an expression: how SQL writes it, its type, and its value in a row.
type term struct {
	sql  string
	typ  types.Type
	eval func(row []scalar) scalar
}

// strict is a call that gives the error of its first argument that has one,
// else NULL if an argument is NULL.
func strict(typ types.Type, sql string, f func(v []scalar) scalar, args ...term) term {
	return term{sql: sql, typ: typ, eval: func(row []scalar) scalar {
		v := make([]scalar, len(args))
		bad, missing := false, false
		for i, a := range args {
			v[i] = a.eval(row)
			bad, missing = bad || v[i].err, missing || v[i].null
		}
		switch {
		case bad:
			return failure
		case missing:
			return null
		}
		return f(v)
	}}
}

var ten = big.NewInt(10)

func pow10(n int) *big.Int { return new(big.Int).Exp(ten, big.NewInt(int64(n)), nil) }

// truncated is x without its fraction.
func truncated(x *big.Rat) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Quo(x.Num(), x.Denom()))
}

// rounded is x at a scale, half away from zero.
func rounded(x *big.Rat, scale int) *big.Rat {
	p := new(big.Rat).SetInt(pow10(scale))
	y := new(big.Rat).Mul(x, p)
	half := big.NewRat(1, 2)
	if y.Sign() < 0 {
		half.Neg(half)
	}
	return new(big.Rat).Quo(truncated(y.Add(y, half)), p)
}

// fit makes an exact number a value of an integer or DECIMAL type: integers
// lose their fraction, DECIMALs are rounded, what is out of range fails.
func fit(x *big.Rat, typ types.Type) scalar {
	if typ.IsInteger() {
		x = truncated(x)
		bits := map[types.Kind]uint{types.TinyInt: 7, types.SmallInt: 15, types.Int: 31, types.BigInt: 63}[typ.Kind]
		limit := new(big.Int).Lsh(big.NewInt(1), bits)
		if v := x.Num(); v.Cmp(limit) >= 0 || v.Cmp(new(big.Int).Neg(limit)) < 0 {
			return failure
		}
		return number(x)
	}
	x = rounded(x, typ.Scale)
	if new(big.Rat).Abs(x).Cmp(new(big.Rat).SetInt(pow10(typ.Precision-typ.Scale))) >= 0 {
		return failure
	}
	return number(x)
}

// converted is a value of one type where another of its kind is asked for.
func converted(v scalar, from, to types.Type) scalar {
	if v.err || v.null || from.EqualIgnoringNull(to) || !to.IsNumeric() {
		return v
	}
	if to.Kind == types.Double {
		if v.n != nil {
			f, _ := v.n.Float64()
			return scalar{f: f}
		}
		return v
	}
	return fit(v.n, to)
}

// arithmetic is a op b of integers and DECIMALs.
func arithmetic(op byte, a, b term) term {
	typ, exact := arithmeticType(op, a.typ, b.typ)
	return strict(typ, "("+a.sql+" "+string(op)+" "+b.sql+")", func(v []scalar) scalar {
		x, y := v[0].n, v[1].n
		z := new(big.Rat)
		switch op {
		case '+':
			z.Add(x, y)
		case '-':
			z.Sub(x, y)
		case '*':
			z.Mul(x, y)
		default:
			if y.Sign() == 0 {
				return failure
			}
			z.Quo(x, y)
			if op == '%' {
				z.Sub(x, new(big.Rat).Mul(y, truncated(z)))
			}
		}
		if typ.IsInteger() && exact {
			z = truncated(z)
		}
		return fit(z, typ)
	}, a, b)
}

// arithmeticType is the type of a op b; exact: both are integers.
func arithmeticType(op byte, a, b types.Type) (types.Type, bool) {
	if a.IsInteger() && b.IsInteger() {
		if op == '%' || a.Kind < b.Kind {
			return b, true
		}
		return a, true
	}
	x, _ := types.AsDecimal(a)
	y, _ := types.AsDecimal(b)
	switch op {
	case '*':
		return types.MulDecimal(x, y), false
	case '/':
		return types.DivDecimal(x, y), false
	case '%':
		return types.ModDecimal(x, y), false
	}
	return types.AddDecimal(x, y), false
}

// floating is a op b of DOUBLEs.
func floating(op byte, a, b term) term {
	return strict(types.NewDouble(), "("+a.sql+" "+string(op)+" "+b.sql+")", func(v []scalar) scalar {
		x, y := v[0].f, v[1].f
		switch op {
		case '+':
			return scalar{f: x + y}
		case '-':
			return scalar{f: x - y}
		case '*':
			return scalar{f: x * y}
		}
		return scalar{f: x / y}
	}, a, b)
}

// order compares two values of one kind: -1, 0, 1, and 2 if one is NaN.
func order(a, b scalar) int {
	switch {
	case a.n != nil && b.n != nil:
		return a.n.Cmp(b.n)
	case !a.t.IsZero():
		return a.t.Compare(b.t)
	case a.s != "" || b.s != "":
		return strings.Compare(a.s, b.s)
	case a.b != b.b:
		if b.b {
			return -1
		}
		return 1
	case a.f != a.f || b.f != b.f:
		return 2
	case a.f < b.f:
		return -1
	case a.f > b.f:
		return 1
	}
	return 0
}

func holds(op string, c int) bool {
	switch op {
	case "=":
		return c == 0
	case "<>":
		return c != 0
	case "<":
		return c == -1
	case "<=":
		return c == -1 || c == 0
	case ">":
		return c == 1
	}
	return c == 1 || c == 0
}

// logic is AND and OR: the dominating value in any operand decides, then an
// error, then NULL.
func logic(op string, a, b term) term {
	dominant := op == "OR"
	return term{sql: "(" + a.sql + " " + op + " " + b.sql + ")", typ: types.NewBoolean(), eval: func(row []scalar) scalar {
		x, y := a.eval(row), b.eval(row)
		for _, v := range []scalar{x, y} {
			if !v.err && !v.null && v.b == dominant {
				return boolean(dominant)
			}
		}
		switch {
		case x.err || y.err:
			return failure
		case x.null || y.null:
			return null
		}
		return boolean(!dominant)
	}}
}

// choice is CASE WHEN cond THEN a ELSE b END: only the branch that is taken
// is evaluated.
func choice(cond, a, b term) term {
	typ, _ := types.Common(a.typ, b.typ)
	return term{sql: "CASE WHEN " + cond.sql + " THEN " + a.sql + " ELSE " + b.sql + " END", typ: typ, eval: func(row []scalar) scalar {
		c := cond.eval(row)
		switch {
		case c.err:
			return failure
		case !c.null && c.b:
			return converted(a.eval(row), a.typ, typ)
		}
		return converted(b.eval(row), b.typ, typ)
	}}
}

func coalesce(a, b term) term {
	typ, _ := types.Common(a.typ, b.typ)
	return term{sql: "COALESCE(" + a.sql + ", " + b.sql + ")", typ: typ, eval: func(row []scalar) scalar {
		if v := a.eval(row); v.err || !v.null {
			return converted(v, a.typ, typ)
		}
		return converted(b.eval(row), b.typ, typ)
	}}
}

// tested is a test of a value that sees NULL, but not an error.
func tested(sql string, a term, f func(v scalar) bool) term {
	return term{sql: sql, typ: types.NewBoolean(), eval: func(row []scalar) scalar {
		v := a.eval(row)
		if v.err {
			return failure
		}
		return boolean(f(v))
	}}
}

// distinct is a IS DISTINCT FROM b.
func distinct(a, b term) term {
	return term{sql: "(" + a.sql + " IS DISTINCT FROM " + b.sql + ")", typ: types.NewBoolean(), eval: func(row []scalar) scalar {
		x, y := a.eval(row), b.eval(row)
		switch {
		case x.err || y.err:
			return failure
		case x.null || y.null:
			return boolean(x.null != y.null)
		}
		return boolean(order(x, y) != 0)
	}}
}
