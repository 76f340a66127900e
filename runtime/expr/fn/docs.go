package fn

import (
	"fmt"
	"slices"
	"strings"
)

// Docs writes the reference page of all functions in Markdown.
func (l *Library) Docs() []byte {
	var b strings.Builder
	b.WriteString("# Functions\n\nGenerated from the declarations in `runtime/expr/fn`; every example is run by a test. ")
	b.WriteString("Unless said otherwise a function gives NULL when an argument is NULL, lengths and positions count code points, and a value that cannot be computed is an error value (its reason stands behind `error`).\n")
	cats := []Category{CatComparison, CatLogical, CatConditional, CatArithmetic, CatString, CatHash, CatTemporal, CatJSON, CatCollection}
	for _, c := range cats {
		fmt.Fprintf(&b, "\n## %s\n", c)
		for _, f := range l.list {
			if f.Category == c {
				writeFunction(&b, f)
			}
		}
	}
	fmt.Fprintf(&b, "\n## %s\n\nAll take `FILTER (WHERE condition)`. The result does not depend on the order in which rows arrive.\n", CatAggregate)
	for _, a := range l.aggList {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n%s\n\n", a.Name, syntaxLine(a.Syntax), cell(a.Doc))
		for _, ex := range a.Examples {
			fmt.Fprintf(&b, "- `%s` over %s %s gives `%s`\n", ex.SQL, ex.Type, strings.Join(ex.Rows, ", "), ex.Want)
		}
	}
	b.WriteString("\n## Names of other dialects\n\nThese are refused, with the equivalent.\n\n| name | here |\n|---|---|\n")
	var rs []Refusal
	for _, r := range l.refusals {
		rs = append(rs, r)
	}
	slices.SortFunc(rs, func(x, y Refusal) int { return strings.Compare(x.Name, y.Name) })
	for _, r := range rs {
		fmt.Fprintf(&b, "| %s | %s |\n", r.Name, cell(r.Use))
	}
	return []byte(b.String())
}

func writeFunction(b *strings.Builder, f *Function) {
	fmt.Fprintf(b, "\n### %s\n\n%s", f.Name, syntaxLine(f.Syntax))
	if len(f.Aliases) > 0 {
		fmt.Fprintf(b, " (also %s)", strings.Join(f.Aliases, ", "))
	}
	fmt.Fprintf(b, "\n\n%s", cell(f.Doc))
	if f.Determinism != Deterministic {
		fmt.Fprintf(b, " *%s*", f.Determinism)
	}
	b.WriteString("\n\n")
	for _, ex := range f.Examples {
		want := "`" + ex.Want + "`"
		if ex.Want == "" {
			want = "the empty string"
		}
		fmt.Fprintf(b, "- `%s` gives %s\n", sqlSpelling(f, ex.SQL), want)
	}
}

// SQL is an example of f as SQL writes it: some declarations take keywords as
// strings.
func (f *Function) SQL(ex Example) string { return sqlSpelling(f, ex.SQL) }

// sqlSpelling turns a call by operator or keyword name into the way SQL writes
// it where the declaration takes keywords as strings.
func sqlSpelling(f *Function, s string) string {
	switch f.Name {
	case "EXTRACT":
		s = strings.Replace(s, "', ", " FROM ", 1)
		return strings.Replace(s, "('", "(", 1)
	case "TIMESTAMPADD", "TIMESTAMPDIFF":
		s = strings.Replace(s, "', ", ", ", 1)
		return strings.Replace(s, "('", "(", 1)
	case "IN", "BETWEEN":
		not := ""
		if rest, ok := strings.CutPrefix(s, "NOT "); ok {
			not, s = "NOT ", rest
		}
		in, ok := strings.CutPrefix(s, f.Name+"(")
		x, list, ok2 := strings.Cut(strings.TrimSuffix(in, ")"), ", ")
		if !ok || !ok2 {
			return not + s
		}
		if f.Name == "BETWEEN" {
			return x + " " + not + "BETWEEN " + strings.Replace(list, ", ", " AND ", 1)
		}
		return x + " " + not + "IN (" + list + ")"
	case "OVERLAY":
		return strings.Replace(strings.Replace(strings.Replace(s, ", ", " PLACING ", 1), ", ", " FROM ", 1), ", ", " FOR ", 1)
	case "TRIM":
		if in, ok := strings.CutPrefix(s, "TRIM("); ok {
			if text, chars, ok := strings.Cut(strings.TrimSuffix(in, ")"), ", "); ok {
				return "TRIM(BOTH " + chars + " FROM " + text + ")"
			}
		}
	case "POSITION":
		return strings.Replace(s, ", ", " IN ", 1)
	case "CEIL", "FLOOR":
		if i := strings.LastIndex(s, ", '"); i >= 0 {
			return s[:i] + " TO " + strings.TrimSuffix(s[i+3:], "')") + ")"
		}
	case "LIKE":
		if in, ok := strings.CutPrefix(s, "LIKE("); ok {
			p := strings.Split(strings.TrimSuffix(in, ")"), ", ")
			s = p[0] + " LIKE " + p[1]
			if len(p) > 2 {
				s += " ESCAPE " + p[2]
			}
		}
	case "JSON_OBJECT", "JSON_ARRAY":
		return constructorSpelling(f.Name, s)
	case "JSON_VALUE":
		return strings.Replace(s, ", 'DEFAULT', 'none', 'NULL', '')", " DEFAULT 'none' ON EMPTY)", 1)
	case "JSON_QUERY":
		return strings.Replace(s, ", 'CONDITIONAL', 'NULL', 'NULL')", " WITH CONDITIONAL ARRAY WRAPPER)", 1)
	}
	return s
}

// constructorSpelling turns the clauses of a JSON constructor into keywords.
func constructorSpelling(name, s string) string {
	p := strings.Split(strings.TrimSuffix(strings.TrimPrefix(s, name+"("), ")"), ", ")
	onNull := strings.Trim(p[len(p)-2], "'")
	p = p[:len(p)-2]
	def := "ABSENT"
	if name == "JSON_OBJECT" {
		def = "NULL"
		var pairs []string
		for k := 0; k < len(p); k += 2 {
			pairs = append(pairs, p[k]+" VALUE "+p[k+1])
		}
		p = pairs
	}
	s = name + "(" + strings.Join(p, ", ")
	if onNull != def {
		s += " " + onNull + " ON NULL"
	}
	return s + ")"
}

func syntaxLine(syntax []string) string {
	parts := make([]string, len(syntax))
	for i, s := range syntax {
		parts[i] = "`" + s + "`"
	}
	return strings.Join(parts, " · ")
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
