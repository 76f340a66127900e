package plan

import (
	"strings"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// lintClock warns of a condition that depends on when it is evaluated.
func (b *Binder) lintClock(p expr.Expr, at diag.Span) {
	if expr.DeterminismOf(p) == fn.Deterministic {
		return
	}
	b.Diags.Add(diag.Warnf(diag.CodeClockInFilter, at,
		"this condition depends on the clock or on chance: a replay or a backfill may keep other rows").
		WithHelp("compare with the row's own time, or with a variable: ${SINCE}"))
}

// patternArgs is, for functions that take a pattern of Java's, its argument.
var patternArgs = map[string]int{
	"DATE_FORMAT": 1, "TO_TIMESTAMP": 1, "TO_TIMESTAMP_LTZ": 1, "TO_DATE": 1, "FROM_UNIXTIME": 1, "UNIX_TIMESTAMP": 1,
}

// lintPattern looks for letters that are nearly always meant otherwise.
func (eb *exprBinder) lintPattern(name string, c *syntax.Call) {
	at, ok := patternArgs[strings.ToUpper(name)]
	if !ok || at >= len(c.Args) {
		return
	}
	lit, ok := c.Args[at].(*syntax.StringLit)
	if !ok {
		return
	}
	letters := unquoted(lit.Value)
	warn := func(format string, args ...any) {
		eb.b.Diags.Add(diag.Warnf(diag.CodeDatePattern, lit.Span(), format, args...))
	}
	if strings.Contains(letters, "DD") {
		warn("DD is the day of the year; the day of the month is dd")
	}
	if strings.Contains(letters, "hh") && !strings.Contains(letters, "a") {
		warn("hh is the hour of 1 to 12; without a (AM or PM) morning and evening look alike; the hour of 0 to 23 is HH")
	}
}

// unquoted takes text in quotes out of a pattern.
func unquoted(pattern string) string {
	var b strings.Builder
	for i, part := range strings.Split(pattern, "'") {
		if i%2 == 0 {
			b.WriteString(part)
			b.WriteByte(' ')
		}
	}
	return b.String()
}
