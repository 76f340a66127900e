package plan

import (
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
)

// CheckPlaces reports tables of one job that are written at the same place: each would
// take what the other one writes for its own. Each place is said once.
func CheckPlaces(inserts []*Insert, diags *diag.List) {
	at := map[string]*catalog.Table{}
	said := map[string]bool{}
	for _, ins := range inserts {
		t := ins.Table
		if t.Spec == nil || t.Spec.Places == nil {
			continue
		}
		for _, p := range t.Spec.Places(t.Name, t.Values) {
			where := t.Spec.Name + " " + p.At
			other := at[where]
			if other == nil {
				at[where] = t
			}
			if other == nil || other == t || said[where] {
				continue
			}
			said[where] = true
			diags.Errorf(diag.CodeBadOption, optionSpan(t, p.Option), "the job writes %q and %q at the same '%s'", other.Name, t.Name, p.Option).
				WithNote(other.Span, "%q is declared here", other.Name).
				WithNote(t.Span, "%q is declared here", t.Name).
				WithHelp("give each table a place of its own, or write all rows into one table")
		}
	}
}
