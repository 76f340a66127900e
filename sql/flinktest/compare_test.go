package flinktest

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	notNull   = regexp.MustCompile(` NOT NULL| \*ROWTIME\*`)
	text      = regexp.MustCompile(`\b(VAR)?CHAR\(\d+\)`)
	bytesType = regexp.MustCompile(`\b(VAR)?BINARY\(\d+\)`)
	interval  = regexp.MustCompile(`INTERVAL (DAY|HOUR|MINUTE|SECOND)\b[^,>]*`)
	months    = regexp.MustCompile(`INTERVAL (YEAR|MONTH)\b[^,>]*`)
)

// plainTypes are types without nullability and lengths, which are not compared:
// Millrace keeps no lengths of results.
func plainTypes(types []string) string {
	s := notNull.ReplaceAllString(strings.Join(types, ", "), "")
	s = bytesType.ReplaceAllString(text.ReplaceAllString(s, "STRING"), "BYTES")
	return months.ReplaceAllString(interval.ReplaceAllString(s, "INTERVAL SECOND"), "INTERVAL MONTH")
}

// canonical is a value in the form that is compared.
func canonical(value, typ string) string {
	switch {
	case value == "NULL":
		return value
	case strings.HasPrefix(typ, "DOUBLE"), strings.HasPrefix(typ, "FLOAT"):
		bits, digits := 64, 15
		if typ[0] == 'F' {
			bits, digits = 32, 7
		}
		x, err := strconv.ParseFloat(value, bits)
		if err != nil {
			return value
		}
		// What stands for zero has no digits in common, and constants of Flink no
		// negative zero.
		if x == 0 || bits == 64 && math.Abs(x) < 1e-15 && math.Abs(x) > 1e-18 {
			return "0"
		}
		return strconv.FormatFloat(x, 'g', digits, 64)
	case strings.HasPrefix(typ, "MAP"), strings.HasPrefix(typ, "MULTISET"):
		entries := strings.Split(strings.Trim(value, "{}"), ", ")
		slices.Sort(entries)
		return "{" + strings.Join(entries, ", ") + "}"
	}
	return value
}

func equalRows(a, b *answer, ordered bool) bool {
	return slices.Equal(canonicalRows(a, ordered), canonicalRows(b, ordered))
}

func canonicalRows(a *answer, ordered bool) []string {
	var out []string
	for _, r := range a.rows {
		cells := splitRow(r)
		for i := range cells {
			if i < len(a.types) {
				cells[i] = canonical(cells[i], a.types[i])
			}
		}
		out = append(out, strings.Join(cells, "|"))
	}
	if !ordered {
		slices.Sort(out)
	}
	return out
}

// splitRow cuts a row at bars that are not escaped.
func splitRow(row string) []string {
	var out []string
	start := 0
	for i := 0; i < len(row); i++ {
		switch row[i] {
		case '\\':
			i++
		case '|':
			out = append(out, row[start:i])
			start = i + 1
		}
	}
	return append(out, row[start:])
}

func escapeCell(s string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "\n", `\n`, "\r", `\r`).Replace(s)
}

func TestComparison(t *testing.T) {
	for _, c := range []struct {
		a, b answer
		want string
	}{
		{answer{types: []string{"CHAR(3) NOT NULL"}, rows: []string{"a"}}, answer{types: []string{"STRING"}, rows: []string{"a"}}, ""},
		{answer{types: []string{"INT"}, rows: []string{"1"}}, answer{types: []string{"BIGINT"}, rows: []string{"1"}}, "types"},
		{answer{types: []string{"INT"}, rows: []string{"1"}}, answer{types: []string{"INT"}, rows: []string{"2"}}, "rows"},
		{answer{types: []string{"DOUBLE"}, rows: []string{"1.0E-5"}}, answer{types: []string{"DOUBLE"}, rows: []string{"0.00001"}}, ""},
		{answer{types: []string{"DECIMAL(3, 2)"}, rows: []string{"1.50"}}, answer{types: []string{"DECIMAL(3, 2)"}, rows: []string{"1.5"}}, "rows"},
		{answer{types: []string{"INT"}, rows: []string{"1", "2"}}, answer{types: []string{"INT"}, rows: []string{"2", "1"}}, ""},
		{answer{fault: "x"}, answer{fault: "y"}, ""},
		{answer{fault: "x"}, answer{types: []string{"INT"}}, "failure"},
	} {
		if got := c.a.differs(&c.b, false); got != c.want {
			t.Errorf("%v and %v: %q, want %q", c.a, c.b, got, c.want)
		}
	}
	ordered := answer{types: []string{"INT"}, rows: []string{"1", "2"}}
	if ordered.differs(&answer{types: []string{"INT"}, rows: []string{"2", "1"}}, true) == "" {
		t.Error("order does not matter")
	}
}
