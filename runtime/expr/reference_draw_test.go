package expr_test

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/runtime/types"
)

// choices makes decisions out of bytes: when they have run out, always the
// first, so that every input ends.
type choices struct{ left []byte }

func (c *choices) of(n int) int {
	if len(c.left) == 0 {
		return 0
	}
	x := int(c.left[0]) % n
	c.left = c.left[1:]
	return x
}

func pick[T any](c *choices, of []T) T { return of[c.of(len(of))] }

// drawer draws expressions over the columns of referenceColumns.
type drawer struct{ choices }

func (d *drawer) column(kinds ...types.Kind) term {
	var at []int
	for i, c := range referenceColumns {
		for _, k := range kinds {
			if c.typ.Kind == k {
				at = append(at, i)
			}
		}
	}
	i := pick(&d.choices, at)
	return term{sql: referenceColumns[i].name, typ: referenceColumns[i].typ, eval: func(row []scalar) scalar { return row[i] }}
}

func constant(sql string, typ types.Type, v scalar) term {
	return term{sql: sql, typ: typ, eval: func([]scalar) scalar { return v }}
}

// any draws an expression of any type.
func (d *drawer) any(depth int) term {
	switch d.of(5) {
	case 0:
		return d.exact(depth)
	case 1:
		return d.boolean(depth)
	case 2:
		return d.text(depth)
	case 3:
		return d.double(depth)
	}
	return d.time(depth)
}

// same draws two expressions that compare.
func (d *drawer) same(depth int) (a, b term) {
	switch d.of(5) {
	case 0:
		return d.exact(depth), d.exact(depth)
	case 1:
		return d.boolean(depth), d.boolean(depth)
	case 2:
		return d.text(depth), d.text(depth)
	case 3:
		return d.double(depth), d.double(depth)
	}
	return d.time(depth), d.time(depth)
}

// boolean draws a BOOLEAN.
func (d *drawer) boolean(depth int) term {
	if depth == 0 {
		return d.column(types.Boolean)
	}
	switch d.of(10) {
	case 0, 1:
		return logic(pick(&d.choices, []string{"AND", "OR"}), d.boolean(depth-1), d.boolean(depth-1))
	case 2:
		a := d.boolean(depth - 1)
		return strict(types.NewBoolean(), "(NOT "+a.sql+")", func(v []scalar) scalar { return boolean(!v[0].b) }, a)
	case 3, 4:
		op := pick(&d.choices, []string{"=", "<>", "<", "<=", ">", ">="})
		a, b := d.same(depth - 1)
		return strict(types.NewBoolean(), "("+a.sql+" "+op+" "+b.sql+")", func(v []scalar) scalar { return boolean(holds(op, order(v[0], v[1]))) }, a, b)
	case 5:
		a := d.any(depth - 1)
		if d.of(2) == 0 {
			return tested("("+a.sql+" IS NULL)", a, func(v scalar) bool { return v.null })
		}
		return tested("("+a.sql+" IS NOT NULL)", a, func(v scalar) bool { return !v.null })
	case 6:
		a := d.boolean(depth - 1)
		want, negated := d.of(2) == 0, d.of(2) == 1
		words := map[bool]string{true: "NOT "}[negated] + strings.ToUpper(strconv.FormatBool(want))
		return tested("("+a.sql+" IS "+words+")", a, func(v scalar) bool { return (!v.null && v.b == want) != negated })
	case 7:
		return distinct(d.same(depth - 1))
	case 8:
		return d.among(depth)
	}
	return d.like(depth)
}

// time draws a TIMESTAMP(3).
func (d *drawer) time(depth int) term {
	if depth == 0 {
		return d.column(types.Timestamp)
	}
	ts := types.NewTimestamp(3)
	switch d.of(4) {
	case 0:
		a, n := d.time(depth-1), d.of(80)-40
		return strict(ts, fmt.Sprintf("TIMESTAMPADD('DAY', %d, %s)", n, a.sql), func(v []scalar) scalar { return scalar{t: v[0].t.AddDate(0, 0, n)} }, a)
	case 1:
		a, n := d.time(depth-1), d.of(60)-30
		return strict(ts, fmt.Sprintf("TIMESTAMPADD('MONTH', %d, %s)", n, a.sql), func(v []scalar) scalar {
			t := v[0].t
			first := time.Date(t.Year(), t.Month()+time.Month(n), 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
			last := first.AddDate(0, 1, -1).Day()
			return scalar{t: first.AddDate(0, 0, min(t.Day(), last)-1)}
		}, a)
	case 2:
		a := d.time(depth - 1)
		return strict(ts, "FLOOR("+a.sql+", 'MONTH')", func(v []scalar) scalar {
			return scalar{t: time.Date(v[0].t.Year(), v[0].t.Month(), 1, 0, 0, 0, 0, time.UTC)}
		}, a)
	}
	return choice(d.boolean(depth-1), d.time(depth-1), d.time(depth-1))
}

// timeField draws a field of a time, or a distance of two.
func (d *drawer) timeField(depth int) term {
	if d.of(3) == 2 {
		a, b := d.time(depth-1), d.time(depth-1)
		return strict(types.NewInt(), "TIMESTAMPDIFF('HOUR', "+a.sql+", "+b.sql+")", func(v []scalar) scalar {
			return fit(big.NewRat(v[1].t.UnixMilli()-v[0].t.UnixMilli(), 3_600_000), types.NewInt())
		}, a, b)
	}
	a := d.time(depth - 1)
	unit := pick(&d.choices, []string{"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "DOY", "ISODOW", "QUARTER", "WEEK"})
	return strict(types.NewBigInt(), "EXTRACT('"+unit+"', "+a.sql+")", func(v []scalar) scalar {
		t := v[0].t
		_, week := t.ISOWeek()
		return integer(int64(map[string]int{"YEAR": t.Year(), "MONTH": int(t.Month()), "DAY": t.Day(), "HOUR": t.Hour(), "MINUTE": t.Minute(), "SECOND": t.Second(),
			"DOY": t.YearDay(), "ISODOW": (int(t.Weekday())+6)%7 + 1, "QUARTER": (int(t.Month()) + 2) / 3, "WEEK": week}[unit]))
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
