package expr_test

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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

// like draws s LIKE pattern, with a pattern that is known or one of the row.
func (d *drawer) like(depth int) term {
	s := d.text(depth - 1)
	var p term
	if d.of(2) == 0 {
		var b strings.Builder
		for range d.of(6) {
			b.WriteString(pick(&d.choices, []string{"%", "_", "a", "b", "日", `\%`, `\_`, "12"}))
		}
		p = constant("'"+b.String()+"'", types.NewString(), text(b.String()))
	} else {
		p = d.column(types.Varchar)
	}
	return strict(types.NewBoolean(), "("+s.sql+" LIKE "+p.sql+")", func(v []scalar) scalar {
		re := "(?s)^"
		for rest := v[1].s; rest != ""; {
			r, w := utf8.DecodeRuneInString(rest)
			switch {
			case r == '%':
				re += ".*"
			case r == '_':
				re += "."
			default:
				re += regexp.QuoteMeta(rest[:w])
			}
			rest = rest[w:]
		}
		return boolean(regexp.MustCompile(re + "$").MatchString(v[0].s))
	}, s, p)
}

// text draws a STRING.
func (d *drawer) text(depth int) term {
	str := types.NewString()
	if depth == 0 {
		if d.of(4) == 3 {
			s := pick(&d.choices, []string{"", "a", "ab", "日", " ", "12", "-"})
			return constant("'"+s+"'", str, text(s))
		}
		return d.column(types.Varchar)
	}
	one := func(name string, f func(s string) string) term {
		a := d.text(depth - 1)
		return strict(str, name+"("+a.sql+")", func(v []scalar) scalar { return text(f(v[0].s)) }, a)
	}
	switch d.of(16) {
	case 0:
		a, b := d.text(depth-1), d.text(depth-1)
		return strict(str, "("+a.sql+" || "+b.sql+")", func(v []scalar) scalar { return text(v[0].s + v[1].s) }, a, b)
	case 1:
		return one("UPPER", strings.ToUpper)
	case 2:
		return one("LOWER", strings.ToLower)
	case 3:
		return one("TRIM", func(s string) string { return strings.Trim(s, " ") })
	case 4:
		return one("REVERSE", func(s string) string {
			r := []rune(s)
			for i, j := 0, len(r)-1; i < j; i, j = i+1, j-1 {
				r[i], r[j] = r[j], r[i]
			}
			return string(r)
		})
	case 5:
		a, from, to := d.text(depth-1), d.text(0), d.text(0)
		return strict(str, "REPLACE("+a.sql+", "+from.sql+", "+to.sql+")", func(v []scalar) scalar { return text(strings.ReplaceAll(v[0].s, v[1].s, v[2].s)) }, a, from, to)
	case 6, 7:
		return d.substring(depth)
	case 8:
		return d.leftRight(depth)
	case 9:
		a, n := d.text(depth-1), d.of(4)-1
		sep := pick(&d.choices, []string{",", "a", "日", " "})
		return strict(str, fmt.Sprintf("SPLIT_INDEX(%s, '%s', %d)", a.sql, sep, n), func(v []scalar) scalar {
			parts := strings.Split(v[0].s, sep)
			if v[0].s == "" || n < 0 || n >= len(parts) {
				return null
			}
			return text(parts[n])
		}, a)
	case 10:
		return choice(d.boolean(depth-1), d.text(depth-1), d.text(depth-1))
	case 11:
		return coalesce(d.text(depth-1), d.text(depth-1))
	case 12:
		a := d.exact(depth - 1)
		return strict(str, "CAST("+a.sql+" AS STRING)", func(v []scalar) scalar { return text(v[0].n.FloatString(a.typ.Scale)) }, a)
	case 13, 14:
		return d.moreText(depth)
	}
	a := d.time(depth - 1)
	return strict(str, "DATE_FORMAT("+a.sql+", 'yyyy-MM-dd HH:mm:ss')", func(v []scalar) scalar { return text(v[0].t.Format("2006-01-02 15:04:05")) }, a)
}

func (d *drawer) substring(depth int) term {
	a, from := d.text(depth-1), int64(d.of(9)-4)
	if d.of(2) == 0 {
		return strict(types.NewString(), fmt.Sprintf("SUBSTRING(%s, %d)", a.sql, from), func(v []scalar) scalar { return substring(v[0].s, from, math.MaxInt64) }, a)
	}
	n := d.exact(0)
	small := strict(types.NewInt(), "CAST("+n.sql+" AS INT)", func(v []scalar) scalar { return fit(v[0].n, types.NewInt()) }, n)
	return strict(types.NewString(), fmt.Sprintf("SUBSTRING(%s, %d, %s)", a.sql, from, small.sql), func(v []scalar) scalar {
		return substring(v[0].s, from, v[1].n.Num().Int64())
	}, a, small)
}

// substring is by code points: from 0 is 1, a negative one counts from the end.
func substring(s string, from, n int64) scalar {
	if n < 0 {
		return null
	}
	r := []rune(s)
	switch {
	case from > 0:
		from--
	case from < 0 && from+int64(len(r)) < 0:
		return text("")
	case from < 0:
		from += int64(len(r))
	}
	from = min(from, int64(len(r)))
	return text(string(r[from : from+min(n, int64(len(r))-from)]))
}

func (d *drawer) leftRight(depth int) term {
	a, n := d.text(depth-1), d.of(6)-2
	left := d.of(2) == 0
	return strict(types.NewString(), fmt.Sprintf("%s(%s, %d)", map[bool]string{true: "LEFT", false: "RIGHT"}[left], a.sql, n), func(v []scalar) scalar {
		r := []rune(v[0].s)
		k := min(max(n, 0), len(r))
		if left {
			return text(string(r[:k]))
		}
		return text(string(r[len(r)-k:]))
	}, a)
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
