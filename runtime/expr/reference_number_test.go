package expr_test

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/runtime/types"
)

// exact draws an integer or a DECIMAL.
func (d *drawer) exact(depth int) term {
	if depth == 0 {
		if d.of(3) == 2 {
			n := int64(d.of(12)) - 3
			return constant(fmt.Sprintf("(%d)", n), types.NewInt(), integer(n))
		}
		return d.column(types.SmallInt, types.Int, types.BigInt, types.Decimal)
	}
	switch d.of(14) {
	case 0, 1, 2:
		return arithmetic(pick(&d.choices, []byte("+-*/%")), d.exact(depth-1), d.exact(depth-1))
	case 3:
		a := d.exact(depth - 1)
		return strict(a.typ, "NEGATE("+a.sql+")", func(v []scalar) scalar { return fit(new(big.Rat).Neg(v[0].n), a.typ) }, a)
	case 4:
		a := d.exact(depth - 1)
		return strict(a.typ, "ABS("+a.sql+")", func(v []scalar) scalar { return fit(new(big.Rat).Abs(v[0].n), a.typ) }, a)
	case 5:
		return choice(d.boolean(depth-1), d.exact(depth-1), d.exact(depth-1))
	case 6:
		return coalesce(d.exact(depth-1), d.exact(depth-1))
	case 7:
		return d.cast(depth)
	case 8:
		a := d.text(depth - 1)
		return strict(types.NewInt(), "CHAR_LENGTH("+a.sql+")", func(v []scalar) scalar { return integer(int64(utf8.RuneCountInString(v[0].s))) }, a)
	case 9:
		part, s := d.text(depth-1), d.text(depth-1)
		return strict(types.NewInt(), "POSITION("+part.sql+", "+s.sql+")", func(v []scalar) scalar {
			at := strings.Index(v[1].s, v[0].s)
			if at < 0 {
				return integer(0)
			}
			return integer(int64(utf8.RuneCountInString(v[1].s[:at])) + 1)
		}, part, s)
	case 10:
		return d.timeField(depth)
	case 11:
		return d.exactPair(depth)
	case 12:
		return d.round(depth)
	}
	return d.exact(0)
}

// cast draws a cast to an integer or DECIMAL.
func (d *drawer) cast(depth int) term {
	to := pick(&d.choices, []types.Type{types.NewInt(), types.NewBigInt(), types.NewSmallInt(), types.NewDecimal(12, 3), types.NewDecimal(38, 10), types.NewDecimal(5, 0)})
	var a term
	var f func(v scalar) scalar
	switch d.of(3) {
	case 0:
		a = d.exact(depth - 1)
		f = func(v scalar) scalar { return fit(v.n, to) }
	case 1:
		a = d.text(depth - 1)
		form := regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?)$`)
		if to.Kind == types.Decimal {
			form = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$`)
		}
		f = func(v scalar) scalar {
			s := strings.Trim(v.s, " \t\r\n")
			if !form.MatchString(s) {
				return failure
			}
			n, ok := new(big.Rat).SetString(strings.TrimSuffix(s, "."))
			if !ok {
				return failure
			}
			return fit(n, to)
		}
	default:
		a = d.boolean(depth - 1)
		f = func(v scalar) scalar {
			if v.b {
				return integer(1)
			}
			return integer(0)
		}
	}
	if d.of(2) == 1 {
		t := strict(to, "TRY_CAST("+a.sql+" AS "+to.WithNullable(true).String()+")", func(v []scalar) scalar {
			if x := f(v[0]); !x.err {
				return x
			}
			return null
		}, a)
		return t
	}
	return strict(to, "CAST("+a.sql+" AS "+to.WithNullable(true).String()+")", func(v []scalar) scalar { return f(v[0]) }, a)
}

// double draws a DOUBLE.
func (d *drawer) double(depth int) term {
	if depth == 0 {
		return d.column(types.Double)
	}
	switch d.of(4) {
	case 0:
		return floating(pick(&d.choices, []byte("+-*/")), d.double(depth-1), d.double(depth-1))
	case 1:
		a := d.exact(depth - 1)
		return strict(types.NewDouble(), "CAST("+a.sql+" AS DOUBLE)", func(v []scalar) scalar { return converted(v[0], a.typ, types.NewDouble()) }, a)
	case 2:
		return choice(d.boolean(depth-1), d.double(depth-1), d.double(depth-1))
	}
	a := d.double(depth - 1)
	return strict(types.NewDouble(), "ABS("+a.sql+")", func(v []scalar) scalar { return scalar{f: math.Abs(v[0].f)} }, a)
}

// exactPair draws a call of two exact numbers that gives one of them.
func (d *drawer) exactPair(depth int) term {
	a, b := d.exact(depth-1), d.exact(depth-1)
	switch d.of(3) {
	case 0, 1:
		name, sign := "GREATEST", 1
		if d.of(2) == 1 {
			name, sign = "LEAST", -1
		}
		typ, _ := types.Common(a.typ, b.typ)
		return strict(typ, name+"("+a.sql+", "+b.sql+")", func(v []scalar) scalar {
			x, y := converted(v[0], a.typ, typ), converted(v[1], b.typ, typ)
			switch {
			case x.err || y.err:
				return failure
			case x.n.Cmp(y.n)*sign >= 0:
				return x
			}
			return y
		}, a, b)
	}
	return term{sql: "NULLIF(" + a.sql + ", " + b.sql + ")", typ: a.typ, eval: func(row []scalar) scalar {
		x, y := a.eval(row), b.eval(row)
		switch {
		case x.err || y.err:
			return failure
		case !x.null && !y.null && order(x, y) == 0:
			return null
		}
		return x
	}}
}

// round draws ROUND of an exact number, half away from zero; its type is Flink's.
func (d *drawer) round(depth int) term {
	a, n := d.exact(depth-1), d.of(8)-3
	typ := a.typ
	if typ.Kind == types.Decimal && n < typ.Scale {
		typ = types.NewDecimal(min(38, 1+typ.Precision-typ.Scale+max(n, 0)), max(n, 0))
	}
	return strict(typ, fmt.Sprintf("ROUND(%s, %d)", a.sql, n), func(v []scalar) scalar {
		x := new(big.Rat).Set(v[0].n)
		if n >= 0 {
			return fit(rounded(x, n), typ)
		}
		p := new(big.Rat).SetInt(pow10(-n))
		return fit(x.Mul(rounded(x.Quo(x, p), 0), p), typ)
	}, a)
}
