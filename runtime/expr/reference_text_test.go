package expr_test

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/runtime/types"
)

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
