package compile

import (
	"testing"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

// TestErrorPages checks the examples of the error pages: the wrong one gives
// the code, the right one mends it.
func TestErrorPages(t *testing.T) {
	byMode := map[Mode][]diag.Page{}
	for _, p := range diag.Pages() {
		switch p.Phase {
		case diag.PhaseSyntax:
		case diag.PhaseLint:
			byMode[ModeCheck] = append(byMode[ModeCheck], p)
		default:
			byMode[ModeRun] = append(byMode[ModeRun], p)
		}
	}
	for mode, pages := range byMode {
		for _, problem := range diag.CheckPages(pages, func(f *diag.File) diag.List {
			_, ds := Compile([]Source{{Name: f.Name(), Text: f.Text()}}, Options{Registry: sqltest.Registry(), Mode: mode})
			return ds
		}) {
			t.Error(problem)
		}
	}
}
