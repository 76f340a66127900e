package syntax

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/diag"
)

var testVars = MapVars{
	Values:  map[string]string{"DIR": "/data/it's; -- x", "T": "events", "t": "from environment"},
	Secrets: map[string]string{"PW": "hunter2"},
}

func parseVars(t *testing.T, text string) (*Script, diag.List) {
	t.Helper()
	return Parse(diag.NewFile("job.sql", text), Options{Vars: testVars})
}

// A value is never lexed: quotes, semicolons and comments in it are plain characters.
func TestVariablesAreNotLexed(t *testing.T) {
	s, errs := parseVars(t, "CREATE TABLE `${T}_copy` (a INT) WITH ('path' = '${DIR}/x', 'd' = '${NONE:-dflt}', 'e' = '$${T}', 'p' = '${secret:PW}');SELECT 1")
	if errs.HasErrors() {
		t.Fatal(diag.Renderer{}.String(errs))
	}
	ct := s.Stmts[0].(*CreateTable)
	if ct.Name.String() != "events_copy" {
		t.Errorf("name %q", ct.Name)
	}
	want := []string{"/data/it's; -- x/x", "dflt", "${T}", "hunter2"}
	for i, w := range want {
		if got := ct.Options[i].Value.Value; got != w {
			t.Errorf("option %d is %q, want %q", i, got, w)
		}
	}
	if len(s.Stmts) != 2 {
		t.Errorf("%d statements", len(s.Stmts))
	}
	if got := ct.Options[3].Value.Display(); got != "***" {
		t.Errorf("secret shows as %q", got)
	}
	printed := Print(s)
	if strings.Contains(printed, "hunter2") || !strings.Contains(printed, "'${secret:PW}'") {
		t.Errorf("printed with the secret:\n%s", printed)
	}
	again := mustParse(t, printed)
	if again.Stmts[0].(*CreateTable).Options[0].Value.Value != want[0] || again.Stmts[0].(*CreateTable).Options[2].Value.Value != want[2] {
		t.Errorf("printed values differ:\n%s", printed)
	}
	if m := Mask(ct, "login with hunter2 failed"); m != "login with *** failed" {
		t.Errorf("masked as %q", m)
	}
}

func TestVariableErrors(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT '${TT}'":            "1:9 unknown_variable",
		"SELECT '${secret:PW}'":     "1:8 secret_not_allowed",
		"SELECT `${secret:PW}`":     "1:8 secret_not_allowed",
		"SELECT '${secret:X}'":      "1:8 secret_not_allowed, 1:9 unknown_variable",
		"SELECT '${A B}'":           "1:9 bad_variable",
		"SELECT '${A'":              "1:9 bad_variable",
		"SELECT '${secret:X:-y}'":   "1:9 bad_variable",
		"SELECT ${T}":               "1:8 variable_outside_literal",
		"SELECT 1 -- ${T} '${A B}'": "",
	} {
		_, errs := parseVars(t, text)
		var got []string
		for _, d := range errs {
			got = append(got, strings.TrimPrefix(strings.Split(d.Headline(), ": ")[0], "job.sql:")+" "+string(d.Code))
		}
		if s := strings.ReplaceAll(strings.Join(got, ", "), "1:", "1:"); s != want {
			t.Errorf("%s: got %q, want %q", text, s, want)
		}
	}
}

// Loop variables win over others of the same name and stay open until the loop is unrolled, also in
// templates outside of the loop.
func TestLoopVariables(t *testing.T) {
	s, errs := parseVars(t, `CREATE TABLE tmpl (dt STRING) WITH ('path' = '/lake/${t}/${T}');
FOR EACH TABLE t IN (SHOW TABLES) BEGIN
  INSERT INTO `+"`ods_${t}`"+` SELECT *, '${t}', '${T}' FROM `+"`${t}`"+`;
END FOR`)
	if errs.HasErrors() {
		t.Fatal(diag.Renderer{}.String(errs))
	}
	path := s.Stmts[0].(*CreateTable).Options[0].Value
	if path.Value != "/lake/${t}/events" {
		t.Errorf("template option is %q", path.Value)
	}
	if at := path.SpanOf(len("/lake/")).Span().Text(); at != "${t}" {
		t.Errorf("span of the value is %q", at)
	}
	body := s.Stmts[1].(*ForEach).Body[0].(*Insert)
	if n := len(Pending(body)); n != 3 {
		t.Errorf("%d pending variables, want 3", n)
	}
	before := Print(body)
	bound := Substitute(body, func(name string) (string, bool) { return "o'neil`", name == "t" })
	if got := Print(bound); got != "INSERT INTO `ods_o'neil```\nSELECT *, 'o''neil`', 'events'\nFROM `o'neil```" {
		t.Errorf("bound: %s", got)
	}
	if bound.Target.Last().Name != "ods_o'neil`" || len(Pending(bound)) != 0 {
		t.Errorf("target %q", bound.Target)
	}
	if bound.Target.Last().Src != body.Target.Last().Src {
		t.Error("the span moved")
	}
	if Print(body) != before {
		t.Error("the original changed")
	}
	if set := s.Stmts[1].(*ForEach).Set; Substitute(set, testVars.Lookup) != set {
		t.Error("a tree without variables was copied")
	}
}

// A dollar before a placeholder survives printing.
func TestDollarBeforePlaceholder(t *testing.T) {
	vars := MapVars{Values: map[string]string{"D": "$"}}
	s, errs := Parse(diag.NewFile("f", "SELECT '${D}${t}'"), Options{Vars: vars, LoopVars: []string{"t"}})
	if errs.HasErrors() {
		t.Fatal(errs)
	}
	again := mustParse(t, Print(s))
	bound := Substitute(again, func(string) (string, bool) { return "x", true })
	item := bound.Stmts[0].(*QueryStmt).Query.Body.(*Select).Items[0].(*SelectExpr)
	if got := item.Expr.(*StringLit).Value; got != "$x" {
		t.Errorf("got %s", got)
	}
}
