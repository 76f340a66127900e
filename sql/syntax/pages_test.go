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
