package syntax

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/diag"
)

// Semicolons inside strings and comments do not end statements, and empty statements are none.
func TestSemicolonsInStringsAndComments(t *testing.T) {
	text := "SELECT 'a;b' AS x; -- one; two\n/* c; d */ SELECT CONCAT(';',CHR(10)) ;;\nSELECT 1"
	s := mustParse(t, text)
	want := []string{"SELECT 'a;b' AS x", "SELECT CONCAT(';', CHR(10))", "SELECT 1"}
	if len(s.Stmts) != len(want) {
		t.Fatalf("%d statements, want %d", len(s.Stmts), len(want))
	}
	for i, w := range want {
		if got := Print(s.Stmts[i]); got != w {
			t.Errorf("statement %d is %q, want %q", i, got, w)
		}
	}
	if p := s.Stmts[2].Span().StartPos(); p.Line != 3 || p.Col != 1 {
		t.Errorf("third statement at %d:%d, want 3:1", p.Line, p.Col)
	}
}

// Quoted names keep every character and their case; the same names without quotes are refused by name.
func TestOddNames(t *testing.T) {
	s := mustParse(t, "CREATE TABLE `my-topic.v1` (`timestamp` BIGINT, `value` DOUBLE, `user` STRING, `@ts` STRING, `地区` STRING, `a``b` INT, 用户名 INT, MixedCase INT) WITH ('a' = 'b')")
	ct := s.Stmts[0].(*CreateTable)
	if ct.Name.Last().Name != "my-topic.v1" {
		t.Errorf("table name %q", ct.Name.Last().Name)
	}
	want := []string{"timestamp", "value", "user", "@ts", "地区", "a`b", "用户名", "MixedCase"}
	for i, w := range want {
		if got := ct.Elements[i].(*ColumnDef).Name.Name; got != w {
			t.Errorf("column %d is %q, want %q", i, got, w)
		}
	}
	_, errs := Parse(diag.NewFile("f", "CREATE TABLE t (timestamp BIGINT,\n value DOUBLE, user STRING)"), Options{})
	var got []string
	for _, d := range errs {
		p := d.Span.StartPos()
		got = append(got, fmt.Sprintf("%d:%d %s %s", p.Line, p.Col, d.Code, d.Span.Text()))
	}
	if s := strings.Join(got, ", "); s != "1:17 reserved_word timestamp, 2:2 reserved_word value, 2:16 reserved_word user" {
		t.Errorf("got %s", s)
	}
}

// Keywords are case-insensitive, and words that Flink accepts bare are names.
func TestKeywordCase(t *testing.T) {
	a := mustParse(t, "sElEcT a fRoM t wHeRe NoT b")
	b := mustParse(t, "SELECT a FROM t WHERE NOT b")
	if shape(a.Stmts) != shape(b.Stmts) {
		t.Error("trees differ by the case of keywords")
	}
	mustParse(t, "SELECT name, type, data, size, public, source, state, level, label, version, path, key, json, length, number, view, role, c, a, k FROM t")
	for _, w := range []string{"ref", "timestamp", "value", "date", "user", "order", "group", "comment", "offset", "hash", "start", "end", "time", "year", "day", "count", "rank", "position", "method", "result", "table"} {
		if !IsReserved(w) {
			t.Errorf("%s is not reserved", w)
		}
	}
}

// A byte order mark, CRLF and trailing blanks change nothing, and all errors of the file come with the
// lines of the original.
func TestScriptFileDetails(t *testing.T) {
	unix := "CREATE TABLE ok (a INT) WITH ('a' = 'b');\nSET 'a' = 'b';\nINSERT INTO good SELECT 1;\nINSERT INTO bad SELECT nope FORM x;  \n\n"
	win := "\ufeff" + strings.ReplaceAll(unix, "\n", "\r\n")
	s1, e1 := Parse(diag.NewFile("job.sql", unix), Options{})
	s2, e2 := Parse(diag.NewFile("job.sql", win), Options{})
	if shape(s1.Stmts[:3]) != shape(s2.Stmts[:3]) {
		t.Error("trees differ by line ends")
	}
	if a, b := (diag.Renderer{}).String(e1), (diag.Renderer{}).String(e2); a != b || len(e1) != 1 {
		t.Errorf("diagnostics differ by line ends:\n%s\n%s", a, b)
	}
	if len(s2.Stmts) != 4 {
		t.Errorf("%d statements, want 4", len(s2.Stmts))
	}
	if p := e2[0].Span.StartPos(); p.Line != 4 || p.Col != 29 {
		t.Errorf("error at %d:%d, want 4:29", p.Line, p.Col)
	}
}

// Six mistakes of different kinds in one file are all reported, each at its place.
func TestManyErrorsAtOnce(t *testing.T) {
	text := `CREATE TABLE a (ref STRING, n INTT);
SELECT 1 +;
SELECT 'x' FORM t;
INSERT INTO b SELECT (1;
SELECT * FROM t WHERE a != 1;
SELECT 2;`
	s, errs := Parse(diag.NewFile("job.sql", text), Options{})
	var got []string
	for _, d := range errs {
		p := d.Span.StartPos()
		got = append(got, fmt.Sprintf("%d:%d:%s", p.Line, p.Col, d.Code))
	}
	want := "1:17:reserved_word 1:31:unknown_type 2:11:syntax_error 3:12:syntax_error 4:22:unclosed_bracket 5:25:unsupported_operator"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	if _, ok := s.Stmts[5].(*QueryStmt); !ok || len(s.Stmts) != 6 {
		t.Errorf("statement 6 is %T", s.Stmts[5])
	}
}

// Depth and length are limited; nothing runs out of stack or time.
func TestLimits(t *testing.T) {
	n := 60_000
	deep := map[string]string{
		"open brackets":    "SELECT " + strings.Repeat("(", n),
		"brackets":         "SELECT " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n),
		"queries":          "SELECT * FROM " + strings.Repeat("(SELECT * FROM ", 2000) + "t" + strings.Repeat(")", 2000),
		"NOT":              "SELECT " + strings.Repeat("NOT ", n) + "a",
		"minus":            "SELECT " + strings.Repeat("- ", n) + "a",
		"calls":            "SELECT " + strings.Repeat("f(", n) + "1" + strings.Repeat(")", n),
		"CASE":             "SELECT " + strings.Repeat("CASE WHEN ", n) + "1",
		"types":            "CREATE TABLE t (a " + strings.Repeat("ARRAY<", n) + "INT" + strings.Repeat(">", n) + ")",
		"postfix types":    "CREATE TABLE t (a INT " + strings.Repeat("ARRAY ", n) + ")",
		"AND chain":        "SELECT a" + strings.Repeat(" AND a", n),
		"UNION chain":      "SELECT 1" + strings.Repeat(" UNION SELECT 1", n),
		"JOIN chain":       "SELECT 1 FROM t" + strings.Repeat(" CROSS JOIN t", n),
		"comma chain":      "SELECT 1 FROM t" + strings.Repeat(", t", n),
		"index chain":      "SELECT a" + strings.Repeat("[1]", n),
		"field chain":      "SELECT f(a)" + strings.Repeat(".b", n),
		"IS chain":         "SELECT a" + strings.Repeat(" IS NULL", n),
		"explain":          strings.Repeat("EXPLAIN ", n) + "SELECT 1",
		"explain loops":    strings.Repeat("EXPLAIN FOR EACH TABLE t IN (SHOW TABLES) BEGIN ", n/10),
		"table brackets":   "SELECT * FROM " + strings.Repeat("(", n) + "a JOIN b ON TRUE" + strings.Repeat(")", n),
		"chains in chains": "SELECT " + strings.Repeat("(", 100) + "a" + strings.Repeat(strings.Repeat(" AND a", 400)+")", 100),
	}
	for name, text := range deep {
		t.Run(name, func(t *testing.T) {
			s, errs := Parse(diag.NewFile("f", text+"; SELECT 1"), Options{})
			if !errs.HasErrors() {
				t.Error("accepted")
			}
			last, ok := s.Stmts[len(s.Stmts)-1].(*QueryStmt)
			if strings.Contains(name, "open") || name == "CASE" || strings.HasPrefix(name, "explain loops") {
				return // there is no telling where the statement ends
			}
			if !ok || Print(last) != "SELECT 1" {
				t.Errorf("the next statement is lost: %T", s.Stmts[len(s.Stmts)-1])
			}
		})
	}
	wide := "SELECT " + strings.Repeat("a, ", 50_000) + "a FROM t WHERE a IN (" + strings.Repeat("1, ", 50_000) + "1) AND (" +
		strings.Repeat("a = 1 OR ", 5_000) + "b)"
	checkRoundTrip(t, mustParse(t, wide))
}

func TestFormatKeepsTokens(t *testing.T) {
	for _, text := range corpus(t) {
		f := diag.NewFile("f", text)
		out, errs := Format(f)
		if errs.HasErrors() {
			continue
		}
		a, _ := Lex(f, Options{})
		b, _ := Lex(diag.NewFile("g", out), Options{})
		if x, y := tokenTexts(a), tokenTexts(b); x != y {
			t.Errorf("tokens changed:\n%s\n%s", x, y)
		}
		if again, _ := Format(diag.NewFile("g", out)); again != out {
			t.Errorf("formatting twice differs:\n%q\n%q", out, again)
		}
	}
}

func tokenTexts(tokens []Token) string {
	var b strings.Builder
	for _, t := range tokens {
		text := t.Text
		if t.Kind == Word {
			text = t.Upper
		}
		fmt.Fprintf(&b, "%d:%q ", t.Kind, text)
	}
	return b.String()
}

func TestComments(t *testing.T) {
	f := diag.NewFile("f", "-- first\n/* second */ SELECT /* in */ 1 -- last\n")
	tokens, _ := Lex(f, Options{})
	var got []string
	for _, tok := range tokens {
		for _, c := range Comments(f, tok) {
			got = append(got, c.Text)
		}
	}
	if s := strings.Join(got, "|"); s != "-- first|/* second */|/* in */|-- last" {
		t.Errorf("comments: %s", s)
	}
}
