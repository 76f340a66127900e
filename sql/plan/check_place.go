package plan

import (
	"path"
	"strings"

	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
)

// CheckPlaces reports tables of one job that are written at the same place: each would
// take the files of the other one for its own. Each place is said once.
func CheckPlaces(inserts []*Insert, diags *diag.List) {
	at := map[string]*catalog.Table{}
	said := map[string]bool{}
	for _, ins := range inserts {
		t := ins.Table
		if t.Spec == nil || t.Spec.Place == "" {
			continue
		}
		where := t.Spec.Name + " " + placeOf(t.Values.String(t.Spec.Place))
		other := at[where]
		if other == nil {
			at[where] = t
		}
		if other == nil || other == t || said[where] {
			continue
		}
		said[where] = true
		diags.Errorf(diag.CodeBadOption, optionSpan(t, t.Spec.Place), "the job writes %q and %q at the same '%s'", other.Name, t.Name, t.Spec.Place).
			WithNote(other.Span, "%q is declared here", other.Name).
			WithNote(t.Span, "%q is declared here", t.Name).
			WithHelp("give each table a place of its own, or write all rows into one table")
	}
}

// placeOf is a path in the form that equal ones have in common.
func placeOf(p string) string {
	scheme, rest, ok := strings.Cut(p, "://")
	if !ok || scheme == "file" {
		return path.Clean(strings.TrimPrefix(p, "file://"))
	}
	return scheme + "://" + path.Clean(rest)
}
