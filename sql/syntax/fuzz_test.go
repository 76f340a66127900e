package syntax

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/diag"
)

func parseQuiet(text string) (*Script, diag.List) {
	return Parse(diag.NewFile("f.sql", text), Options{})
}

func seed(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add(text)
		for stmt := range strings.SplitSeq(text, ";") {
			f.Add(stmt)
		}
	}
	for _, text := range []string{"", ";", "'", "`", "/*", "/*+", "--", "${", "'${a", "\xff", "\ufeff", "U&'\\d83d\\de00'", "N'", "X'0", "1e", ".", "SELECT 1 .f"} {
		f.Add(text)
	}
}

// FuzzParse: whatever the text, Parse returns, each diagnostic lies in the file, statements cover their
// text in order, and everything renders.
func FuzzParse(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string) {
		s, errs := parseQuiet(text)
		size := len(strings.TrimPrefix(text, "\ufeff"))
		for _, d := range errs {
			if d.Span.Start < 0 || d.Span.End > size || d.Span.Start > d.Span.End {
				t.Fatalf("span %d-%d of a file of %d bytes: %s", d.Span.Start, d.Span.End, size, d.Headline())
			}
		}
		diag.Renderer{Width: 40}.String(errs)
		end := 0
		bad := false
		for _, st := range s.Stmts {
			sp := st.Span()
			if sp.Start < end || sp.End < sp.Start {
				t.Fatalf("statement at %d-%d after %d", sp.Start, sp.End, end)
			}
			end = sp.End
			_, isBad := st.(*BadStmt)
			bad = bad || isBad
		}
		if bad && !errs.HasErrors() {
			t.Fatal("bad statement without an error")
		}
		if !errs.HasErrors() {
			checkSpans(t, s)
		}
	})
}

// FuzzRoundTrip: what parses prints to a text that parses to an equal tree.
func FuzzRoundTrip(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string) {
		if s, errs := parseQuiet(text); !errs.HasErrors() {
			checkRoundTrip(t, s)
		}
	})
}

// FuzzFormat: formatting keeps the tokens and is stable.
func FuzzFormat(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string) {
		file := diag.NewFile("f.sql", text)
		out, errs := Format(file)
		if errs.HasErrors() {
			return
		}
		a, _ := Lex(file, Options{})
		b, _ := Lex(diag.NewFile("g.sql", out), Options{})
		if x, y := tokenTexts(a), tokenTexts(b); x != y {
			t.Fatalf("tokens changed:\n%s\n%s", x, y)
		}
		if again, _ := Format(diag.NewFile("g.sql", out)); again != out {
			t.Fatalf("not stable:\n%q\n%q", out, again)
		}
	})
}
