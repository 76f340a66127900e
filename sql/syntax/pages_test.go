package syntax

import (
	"testing"

	"github.com/millrace/millrace/sql/diag"
)

// The examples on the pages of syntax errors do what the pages say.
func TestErrorPages(t *testing.T) {
	var pages []diag.Page
	for _, p := range diag.Pages() {
		if p.Phase == diag.PhaseSyntax {
			pages = append(pages, p)
		}
	}
	vars := MapVars{Secrets: map[string]string{"PASSWORD": "x"}}
	for _, problem := range diag.CheckPages(pages, func(f *diag.File) diag.List {
		_, errs := Parse(f, Options{Vars: vars})
		return errs
	}) {
		t.Error(problem)
	}
}

// The examples on the other pages are at least free of syntax errors, so that what they show is theirs.
func TestOtherPagesParse(t *testing.T) {
	for _, p := range diag.Pages() {
		if p.Phase == diag.PhaseSyntax {
			continue
		}
		for _, text := range []string{p.Wrong, p.Right} {
			if _, errs := parseQuiet(text); len(errs) > 0 {
				t.Errorf("%s: %s", p.Code, errs.Error())
			}
		}
	}
}
