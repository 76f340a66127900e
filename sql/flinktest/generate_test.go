package flinktest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
	"github.com/millrace/millrace/sql/syntax"
)

// generated are the cases that come from the declarations of functions.
func generated(t *testing.T) []*suite {
	t.Helper()
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	functions := &suite{name: "functions", exprs: true}
	for _, f := range lib.Functions() {
		functions.queries = append(functions.queries, functionCases(t, f)...)
	}
	aggregates := &suite{name: "aggregates"}
	for _, a := range lib.Aggregates() {
		aggregates.queries = append(aggregates.queries, aggregateCases(a)...)
	}
	casts := &suite{name: "casts", exprs: true, queries: castCases()}
	for _, s := range []*suite{functions, aggregates, casts} {
		s.queries = distinct(s.queries)
	}
	return []*suite{functions, aggregates, casts}
}

func distinct(list []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// functionCases are the examples of a function, and its first one of each number
// of arguments with NULL and bounds in place of each argument. Clocks and random
// numbers have no answer that stays.
func functionCases(t *testing.T, f *fn.Function) []string {
	t.Helper()
	if f.Determinism != fn.Deterministic {
		return nil
	}
	var out []string
	varied := map[int]bool{}
	for _, ex := range f.Examples {
		sql := f.SQL(ex)
		if strings.Contains(sql, "UUID(") || sql == "UNIX_TIMESTAMP()" {
			continue
		}
		out = append(out, sql)
		args := arguments(t, sql)
		if varied[len(args)] || len(args) == 0 || strings.Contains(strings.ReplaceAll(sql, "CAST(NULL", ""), "NULL") {
			// A bare NULL is refused by Flink, whatever stands beside it.
			continue
		}
		varied[len(args)] = true
		for _, a := range args {
			for _, other := range bounds(a.typ) {
				out = append(out, sql[:a.start]+other+sql[a.end:])
			}
		}
	}
	return out
}

// argument is a place in an expression that holds a value of a type.
type argument struct {
	start, end int
	typ        types.Type
}

// arguments are the direct operands of an expression that have a type of their own.
func arguments(t *testing.T, sql string) []argument {
	t.Helper()
	e, ds := syntax.ParseExpr(diag.NewFile("example", sql), syntax.Options{})
	if ds.HasErrors() {
		t.Errorf("%s\n%s", sql, diag.Renderer{}.String(ds))
		return nil
	}
	var out []argument
	syntax.Children(e, func(n syntax.Node) {
		if _, ok := n.(syntax.Expr); !ok {
			return
		}
		sp := n.Span()
		if typ, ok := typeOf(sql[sp.Start:sp.End]); ok {
			out = append(out, argument{sp.Start, sp.End, typ})
		}
	})
	return out
}

func typeOf(sql string) (types.Type, bool) {
	s := compile.NewSession()
	u, ds := compile.Compile([]compile.Source{{Name: "argument", Text: "SELECT " + sql}}, compile.Options{
		Registry: sqltest.Registry(), Mode: compile.ModeSQL, Session: s})
	if ds.HasErrors() || len(u.Statements) == 0 || u.Statements[0].Schema == nil {
		return types.Type{}, false
	}
	return u.Statements[0].Schema.Fields[0].Type, true
}

// bounds are NULL and the values at the edges of a type.
func bounds(t types.Type) []string {
	null := "CAST(NULL AS " + t.WithNullable(true).String() + ")"
	switch t.Kind {
	case types.Boolean:
		return []string{null, "FALSE", "TRUE"}
	case types.TinyInt, types.SmallInt, types.Int:
		return []string{null, "0", "(-1)", "2147483647", "CAST(-2147483648 AS INT)"}
	case types.BigInt:
		return []string{null, "CAST(0 AS BIGINT)", "CAST(-1 AS BIGINT)", "9223372036854775807"}
	case types.Float, types.Double:
		return []string{null, "CAST(0 AS DOUBLE)", "CAST(-1.5 AS DOUBLE)", "1E308"}
	case types.Decimal:
		return []string{null, "0.00", "(-0.05)", "CAST('99999999999999999999.999' AS DECIMAL(23, 3))"}
	case types.Char, types.Varchar:
		return []string{"CAST(NULL AS STRING)", "''", "'日本😀'", "' a,b '"}
	case types.Binary, types.Varbinary:
		return []string{"CAST(NULL AS BYTES)", "X''", "X'00ff'"}
	case types.Date:
		return []string{null, "DATE '0001-01-01'", "DATE '9999-12-31'", "DATE '1969-12-31'"}
	case types.Timestamp:
		return []string{null, "TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999'", "TIMESTAMP '1969-12-31 23:59:59.999'"}
	case types.Array:
		elem := t.Elem.WithNullable(true).String()
		return []string{null, "ARRAY[CAST(NULL AS " + elem + ")]"}
	case types.Null, types.Row:
		return nil
	}
	return []string{null}
}

// aggregateCases are an aggregate over the rows of its examples, over NULL alone,
// and over no rows.
func aggregateCases(a *fn.Aggregate) []string {
	var out []string
	for _, ex := range a.Examples {
		over := func(rows []string, where string) {
			var values []string
			for _, r := range rows {
				if ex.Type == "STRING" && r != "NULL" {
					r = "'" + r + "'"
				}
				values = append(values, fmt.Sprintf("(CAST(%s AS %s))", r, ex.Type))
			}
			out = append(out, "SELECT "+ex.SQL+" FROM (VALUES "+strings.Join(values, ", ")+") AS v(x)"+where)
		}
		over(ex.Rows, "")
		over([]string{"NULL", "NULL"}, "")
		over(ex.Rows[:1], " WHERE x IS NULL AND x IS NOT NULL")
		over(ex.Rows, " GROUP BY x")
	}
	return out
}

// castCases cast values of each type to each type.
func castCases() []string {
	values := []string{
		"TRUE", "CAST(7 AS TINYINT)", "CAST(-300 AS SMALLINT)", "70000", "CAST(-5000000000 AS BIGINT)", "CAST(1.5 AS FLOAT)",
		"CAST(-2.75 AS DOUBLE)", "1E20", "12.345", "CAST(-0.5 AS DECIMAL(38, 18))", "'abc'", "' 12 '", "'-3.7'", "'true'", "'2024-02-29'",
		"'2024-02-29 12:34:56.789'", "'10:11:12'", "''", "X'616263'", "DATE '2024-02-29'", "TIME '10:11:12'", "TIMESTAMP '2024-02-29 12:34:56.789'",
		"TO_TIMESTAMP_LTZ(1709210096789, 3)", "INTERVAL '1' DAY", "INTERVAL '14' MONTH", "ARRAY[1, 2]", "MAP['a', 1]", "ROW(1, 'x')",
	}
	targets := []string{
		"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 1)", "DECIMAL(38, 6)", "CHAR(4)", "VARCHAR(3)", "STRING",
		"BINARY(2)", "BYTES", "DATE", "TIME", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP_LTZ(3)", "ARRAY<STRING>",
		"MAP<STRING, STRING>", "ROW<a BIGINT, b STRING>",
	}
	var out []string
	for _, v := range values {
		for _, t := range targets {
			out = append(out, "CAST("+v+" AS "+t+")", "TRY_CAST("+v+" AS "+t+")")
		}
	}
	for _, t := range targets {
		out = append(out, "CAST(CAST(NULL AS STRING) AS "+t+")")
	}
	return out
}
