package syntax

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/millrace/millrace/sql/diag"
)

// TestGolden runs the scripts in testdata/golden. Commands:
//
//	parse    prints each statement again, and checks that it parses to the same tree
//	errors   prints the diagnostics and how the statements came out
//	group    prints expressions, one a line, with brackets around each operator
//	format   prints the tidied file
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			f := diag.NewFile("job.sql", d.Input)
			switch d.Cmd {
			case "parse":
				s := mustParse(t, d.Input)
				checkRoundTrip(t, s)
				checkSpans(t, s)
				return Print(s)
			case "errors":
				s, errs := Parse(f, Options{})
				return diag.Renderer{Width: 100}.String(errs) + outcome(s)
			case "group":
				var out []string
				for line := range strings.Lines(d.Input) {
					e := mustParseExpr(t, line)
					out = append(out, grouped(e))
					if again := mustParseExpr(t, Print(e)); shape(e) != shape(again) {
						t.Errorf("%s printed as %s", strings.TrimSpace(line), Print(e))
					}
				}
				return strings.Join(out, "\n")
			case "format":
				text, errs := Format(f)
				return text + diag.Renderer{}.String(errs)
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

// outcome lists what became of the statements.
func outcome(s *Script) string {
	var b strings.Builder
	b.WriteString("--\n")
	for _, st := range s.Stmts {
		line, _, _ := strings.Cut(Print(st), "\n")
		switch st := st.(type) {
		case *BadStmt:
			b.WriteString("bad")
			if st.Declares != nil {
				b.WriteString(" (declares " + st.Declares.String() + ")")
			}
			b.WriteString(": " + clip(line) + "\n")
		default:
			b.WriteString("ok: " + clip(line) + "\n")
		}
	}
	return b.String()
}

func checkRoundTrip(t testing.TB, s *Script) {
	t.Helper()
	printed := Print(s)
	again, errs := Parse(diag.NewFile("printed.sql", printed), Options{})
	if errs.HasErrors() {
		t.Fatalf("printed text does not parse:\n%s\n%s", printed, diag.Renderer{}.String(errs))
	}
	if a, b := shape(s.Stmts), shape(again.Stmts); a != b {
		t.Fatalf("tree changed by printing:\n%s\nfirst:  %s\nsecond: %s", printed, a, b)
	}
	if p := Print(again); p != printed {
		t.Fatalf("printing is not stable:\nfirst:\n%s\nsecond:\n%s", printed, p)
	}
}

// checkSpans checks that children lie inside their parents.
func checkSpans(t testing.TB, s *Script) {
	t.Helper()
	var visit func(parent Node)
	visit = func(parent Node) {
		p := parent.Span()
		if p.IsZero() || p.Start > p.End {
			t.Fatalf("%T has the span %d-%d", parent, p.Start, p.End)
		}
		Children(parent, func(c Node) {
			if s := c.Span(); s.Start < p.Start || s.End > p.End {
				t.Fatalf("%T %q lies outside of its %T %q", c, s.Text(), parent, p.Text())
			}
			visit(c)
		})
	}
	visit(s)
}

// corpus returns the inputs of all golden tests, as seeds and for tests over many texts.
func corpus(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/golden/*")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(b), "\n\n") {
			if _, rest, ok := strings.Cut(block, "\n"); ok {
				input, _, _ := strings.Cut(rest, "\n----")
				all = append(all, input)
			}
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d inputs in the corpus", len(all))
	}
	return all
}
