package compile

import (
	"testing"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

// TestErrorPages checks the examples of the error pages: the wrong one gives
// the code, the right one mends it.
func TestErrorPages(t *testing.T) {
	var pages []diag.Page
	for _, p := range diag.Pages() {
		if p.Phase != diag.PhaseSyntax {
			pages = append(pages, p)
		}
	}
	for _, problem := range diag.CheckPages(pages, func(f *diag.File) diag.List {
		_, ds := Compile([]Source{{Name: f.Name(), Text: f.Text()}}, Options{Registry: sqltest.Registry()})
		return ds
	}) {
		t.Error(problem)
	}
}
