package expr_test

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/millrace/millrace/runtime/types"
)

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

// among draws IN and BETWEEN, which are ORs and ANDs of comparisons.
func (d *drawer) among(depth int) term {
	x, a := d.same(depth - 1)
	compared := func(op string, b term) term {
		return strict(types.NewBoolean(), "", func(v []scalar) scalar { return boolean(holds(op, order(v[0], v[1]))) }, x, b)
	}
	if d.of(2) == 0 {
		t := logic("AND", compared(">=", a), compared("<=", x))
		t.sql = "BETWEEN(" + x.sql + ", " + a.sql + ", " + x.sql + ")"
		return t
	}
	t := logic("OR", compared("=", a), compared("=", x))
	t.sql = "IN(" + x.sql + ", " + a.sql + ", " + x.sql + ")"
	return t
}

// moreText draws functions of texts that fill, join and write dates.
func (d *drawer) moreText(depth int) term {
	str := types.NewString()
	switch d.of(3) {
	case 0:
		s, n := d.text(depth-1), d.of(8)-1
		p := pick(&d.choices, []string{"", "*", "ab", "日本"})
		left := d.of(2) == 0
		name := map[bool]string{true: "LPAD", false: "RPAD"}[left]
		return strict(str, fmt.Sprintf("%s(%s, %d, '%s')", name, s.sql, n, p), func(v []scalar) scalar {
			r, pad := []rune(v[0].s), []rune(p)
			switch {
			case n < 0 || len(pad) == 0:
				return null
			case n <= len(r):
				return text(string(r[:n]))
			}
			var fill []rune
			for len(fill) < n-len(r) {
				fill = append(fill, pad[len(fill)%len(pad)])
			}
			if left {
				return text(string(fill) + v[0].s)
			}
			return text(v[0].s + string(fill))
		}, s)
	case 1:
		sep, a, b := d.text(0), d.text(depth-1), d.text(depth-1)
		return term{sql: "CONCAT_WS(" + sep.sql + ", " + a.sql + ", " + b.sql + ")", typ: str, eval: func(row []scalar) scalar {
			by := sep.eval(row)
			var parts []string
			for _, v := range []scalar{a.eval(row), b.eval(row)} {
				if v.err {
					return failure
				}
				if !v.null {
					parts = append(parts, v.s)
				}
			}
			switch {
			case by.err:
				return failure
			case by.null:
				return null
			}
			return text(strings.Join(parts, by.s))
		}}
	}
	a := d.time(depth - 1)
	return strict(str, "CAST(CAST("+a.sql+" AS DATE) AS STRING)", func(v []scalar) scalar { return text(v[0].t.Format("2006-01-02")) }, a)
}
