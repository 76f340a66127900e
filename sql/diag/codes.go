package diag

import (
	"fmt"
	"slices"
	"strings"
)

// Phase is the step that finds a kind of error.
type Phase string

// The phases.
const (
	PhaseSyntax Phase = "syntax" // lexer and parser
	PhaseBind   Phase = "bind"   // names, types, options
	PhasePlan   Phase = "plan"   // changelog, windows, partitions
	PhaseLint   Phase = "lint"   // warnings about what is allowed
	PhaseRun    Phase = "run"    // found by a running job; has no example to check
)

// Page explains a code. Wrong is a whole job file that gives a diagnostic of the code, Right one that
// mends it; a test checks both (not for PhaseRun, where they may be empty).
type Page struct {
	Code        Code
	Phase       Phase
	Title       string // a few words, lower case
	Explanation string // paragraphs of plain text, separated by blank lines
	Wrong       string
	Right       string
}

// Pages returns the pages of all codes, sorted by code. To declare a code, add its page to the list of its
// phase in pages_*.go, and a constant in codes_*.go.
func Pages() []Page {
	all := slices.Concat(syntaxPages(), bindPages(), planPages(), lintPages(), runPages())
	slices.SortFunc(all, func(a, b Page) int { return strings.Compare(string(a.Code), string(b.Code)) })
	return all
}

// Explain returns the page of a code. If there is none, the nearest code is returned instead and ok is
// false; near is empty if none is near.
func Explain(code string) (page Page, near string, ok bool) {
	var names []string
	for _, p := range Pages() {
		if string(p.Code) == code {
			return p, "", true
		}
		names = append(names, string(p.Code))
	}
	near, _ = Nearest(code, names)
	return Page{}, near, false
}

// Text renders the page for a terminal.
func (p Page) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n%s\n", p.Code, p.Title, strings.TrimSpace(p.Explanation))
	for _, ex := range p.examples() {
		fmt.Fprintf(&b, "\n%s:\n", ex.name)
		for line := range strings.Lines(strings.TrimSpace(ex.sql) + "\n") {
			b.WriteString("    " + line)
		}
	}
	return b.String()
}

// Markdown renders the page for docs/errors.
func (p Page) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s. Found by: %s.\n\n%s\n", p.Code, capitalize(p.Title), p.Phase, strings.TrimSpace(p.Explanation))
	for _, ex := range p.examples() {
		fmt.Fprintf(&b, "\n%s:\n\n```sql\n%s\n```\n", ex.name, strings.TrimSpace(ex.sql))
	}
	return b.String()
}

// Index renders the list of all pages for docs/errors/README.md.
func Index(pages []Page) string {
	var b strings.Builder
	b.WriteString("# Errors and warnings\n\nOne page per code; `millrace explain-error CODE` prints the same.\n\n")
	b.WriteString("| code | meaning | found by |\n|---|---|---|\n")
	for _, p := range pages {
		fmt.Fprintf(&b, "| [%s](%s.md) | %s | %s |\n", p.Code, p.Code, p.Title, p.Phase)
	}
	return b.String()
}

func capitalize(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

type example struct{ name, sql string }

func (p Page) examples() []example {
	var out []example
	if p.Wrong != "" {
		out = append(out, example{"Wrong", p.Wrong})
	}
	if p.Right != "" {
		out = append(out, example{"Right", p.Right})
	}
	return out
}

// CheckPages checks the examples of the pages: Wrong must give a diagnostic of the page's code and no error
// of another one, Right must give neither the code nor any error. diagnose runs a job file; the caller
// picks the pages whose phase it can reach. The result lists what is wrong.
func CheckPages(pages []Page, diagnose func(f *File) List) []string {
	var problems []string
	bad := func(p Page, format string, args ...any) {
		problems = append(problems, string(p.Code)+": "+fmt.Sprintf(format, args...))
	}
	for _, p := range pages {
		if p.Phase == PhaseRun {
			continue
		}
		if p.Title == "" || p.Explanation == "" || p.Wrong == "" || p.Right == "" {
			bad(p, "page is not complete")
		}
		found := false
		for _, d := range diagnose(NewFile("wrong.sql", p.Wrong)) {
			found = found || d.Code == p.Code
			if d.Severity == Error && d.Code != p.Code {
				bad(p, "wrong example also gives: %s", d.Headline())
			}
		}
		if !found {
			bad(p, "wrong example does not give the code")
		}
		for _, d := range diagnose(NewFile("right.sql", p.Right)) {
			if d.Severity == Error || d.Code == p.Code {
				bad(p, "right example gives: %s", d.Headline())
			}
		}
	}
	return problems
}
