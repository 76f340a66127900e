package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// number types a number literal as Flink does: INT, BIGINT, else DECIMAL; with
// a point DECIMAL of the digits written; with an exponent DOUBLE.
func (eb *exprBinder) number(n *syntax.NumberLit, negative bool) expr.Expr {
	text := n.Text
	if negative {
		text = "-" + text
	}
	switch n.Kind {
	case syntax.DoubleNumber:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(f, 0) {
			return eb.badLiteral(n.Span(), "%s is out of the range of DOUBLE", text)
		}
		return expr.Float(rt.NewDouble(), f)
	case syntax.IntegerNumber:
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			if v == int64(int32(v)) {
				return expr.Int(rt.NewInt(), v)
			}
			return expr.Int(rt.NewBigInt(), v)
		}
	}
	digits, fraction, _ := strings.Cut(n.Text, ".")
	p, s := len(digits)+len(fraction), len(fraction)
	if p > rt.MaxPrecision {
		trimmed := strings.TrimLeft(digits, "0")
		p = len(trimmed) + s
	}
	p = max(p, 1)
	if p > rt.MaxPrecision {
		return eb.badLiteral(n.Span(), "%s has more than %d digits", n.Text, rt.MaxPrecision)
	}
	d, _, err := rt.ParseDecimal(text, p, s)
	if err != nil {
		return eb.badLiteral(n.Span(), "%s is not a number: %s", n.Text, err)
	}
	return expr.Decimal(rt.NewDecimal(p, s), d)
}

func (eb *exprBinder) badLiteral(span diag.Span, format string, args ...any) expr.Expr {
	eb.b.errorf(diag.CodeBadLiteral, span, format, args...)
	return nil
}

// dateTime types DATE, TIME and TIMESTAMP literals; a TIMESTAMP has the
// precision of the fraction written.
func (eb *exprBinder) dateTime(n *syntax.DateTimeLit) expr.Expr {
	text := n.Value.Value
	var t rt.Type
	precision := 0
	if _, frac, ok := strings.Cut(text, "."); ok {
		precision = len(frac)
	}
	switch n.Kind {
	case syntax.DateLit:
		t = rt.NewDate()
		if d, err := rt.ParseDate(text); err == nil {
			return expr.Int(t, int64(d))
		}
	case syntax.TimeLit:
		t = rt.NewTime(min(precision, 3))
		if v, err := rt.ParseTime(text, min(precision, 3)); err == nil {
			return expr.Int(t, int64(v))
		}
	case syntax.TimestampLit:
		t = rt.NewTimestamp(min(precision, 9))
		if v, err := rt.ParseTimestampForm(text, rt.FormSQL, t); err == nil {
			return expr.Int(t, v)
		}
	}
	return eb.badLiteral(n.Value.Span(), "%q is not a %s", n.Value.Display(), t.Kind)
}

// interval types an INTERVAL literal: months for YEAR and MONTH, else ms.
func (eb *exprBinder) interval(n *syntax.IntervalLit) expr.Expr {
	v, err := parseInterval(strings.TrimSpace(n.Value.Value), n.Qualifier)
	if err != nil {
		return eb.badLiteral(n.Value.Span(), "%s", err)
	}
	if n.Negative {
		v = -v
	}
	if n.Qualifier.From <= syntax.UnitMonth {
		if v != int64(int32(v)) {
			return eb.badLiteral(n.Value.Span(), "the interval is too long")
		}
		return expr.Int(rt.Simple(rt.IntervalYearMonth), v)
	}
	return expr.Int(rt.Simple(rt.IntervalDaySecond), v)
}

var unitMillis = map[syntax.Unit]int64{
	syntax.UnitDay: 86_400_000, syntax.UnitHour: 3_600_000, syntax.UnitMinute: 60_000, syntax.UnitSecond: 1000,
}

// below are how many of a unit make one of the next larger.
var unitLimit = map[syntax.Unit]int64{
	syntax.UnitMonth: 12, syntax.UnitHour: 24, syntax.UnitMinute: 60, syntax.UnitSecond: 60,
}

// parseInterval reads the text of an interval: months, or ms.
func parseInterval(text string, q *syntax.IntervalQualifier) (int64, error) {
	bad := func() (int64, error) {
		return 0, fmt.Errorf("%q is not an interval of %s", text, qualifierText(q))
	}
	s := text
	sign := int64(1)
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		if s[0] == '-' {
			sign = -1
		}
		s = s[1:]
	}
	var total int64
	for u := q.From; ; u++ {
		field := s
		if u != q.To {
			sep := ":"
			switch u {
			case syntax.UnitYear:
				sep = "-"
			case syntax.UnitDay:
				sep = " "
			}
			var ok bool
			if field, s, ok = strings.Cut(s, sep); !ok {
				return bad()
			}
		}
		v, err := intervalField(field, u)
		if err != nil || u != q.From && unitLimit[u] > 0 && v >= unitLimit[u]*scaleOf(u) {
			return bad()
		}
		if total > math.MaxInt64-v {
			return 0, fmt.Errorf("the interval is too long")
		}
		total += v
		if u == q.To {
			return sign * total, nil
		}
	}
}

func scaleOf(u syntax.Unit) int64 {
	if m, ok := unitMillis[u]; ok {
		return m
	}
	if u == syntax.UnitYear {
		return 12
	}
	return 1
}

// intervalField reads one field in months or ms; seconds may have a fraction.
func intervalField(field string, u syntax.Unit) (int64, error) {
	whole, frac := field, ""
	if u == syntax.UnitSecond {
		whole, frac, _ = strings.Cut(field, ".")
	}
	v, err := strconv.ParseUint(whole, 10, 62)
	if err != nil {
		return 0, err
	}
	scale := scaleOf(u)
	if int64(v) > math.MaxInt64/scale {
		return 0, strconv.ErrRange
	}
	out := int64(v) * scale
	if frac != "" {
		for len(frac) < 3 {
			frac += "0"
		}
		ms, err := strconv.ParseUint(frac[:3], 10, 16)
		if err != nil {
			return 0, err
		}
		if strings.Trim(frac[3:], "0123456789") != "" {
			return 0, strconv.ErrSyntax
		}
		out += int64(ms)
	}
	return out, nil
}

func qualifierText(q *syntax.IntervalQualifier) string {
	names := [...]string{"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"}
	if q.From == q.To {
		return names[q.From]
	}
	return names[q.From] + " TO " + names[q.To]
}
