package function

import (
	"slices"

	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/sql/syntax"
)

// forms are names that SQL itself gives a meaning where a call stands.
var forms = []string{
	"TUMBLE", "HOP", "CUMULATE", "SESSION", "ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE", "LAG", "LEAD",
	"GROUPING", "GROUPING_ID", "GROUP_ID", "UNNEST", "DESCRIPTOR",
	"TUMBLE_START", "TUMBLE_END", "TUMBLE_ROWTIME", "TUMBLE_PROCTIME", "HOP_START", "HOP_END", "HOP_ROWTIME", "HOP_PROCTIME",
	"SESSION_START", "SESSION_END", "SESSION_ROWTIME", "SESSION_PROCTIME",
}

// Taken says why SQL could not call a user function of this name, "" if it could.
// Names of built-in functions are the library's to refuse.
func Taken(name string) string {
	switch {
	case slices.Contains(forms, name):
		return "has a meaning in SQL; choose another"
	case syntax.IsReserved(name):
		return "is a reserved word; choose another"
	}
	return ""
}

// Exists reports a name of a scalar function or aggregate, in any case.
func Exists(lib *fn.Library, name string) bool {
	if _, ok := lib.Lookup(name); ok {
		return true
	}
	_, ok := lib.Aggregate(name)
	return ok
}
