package plan

import (
	"errors"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// checkLookup asks a connector that can tell whether its table can be looked up by a
// join's keys, and reports what it says where the fault stands: at an option, at a
// column, or at the join.
func (b *Binder) checkLookup(n *Lookup, t *syntax.TableRef) bool {
	c, ok := n.Table.Connector.(connector.LookupChecker)
	if !ok {
		return true
	}
	var keys []int
	for _, k := range n.Keys {
		keys = append(keys, k.Ordinal)
	}
	err := c.CheckLookup(n.Table.SourceTable(b.location()), keys)
	if err == nil {
		return true
	}
	report := func(code diag.Code, at diag.Span, message string) *diag.Diagnostic {
		if what, later := strings.CutPrefix(message, "not_yet: "); later {
			return b.errorf(diag.CodeNotYet, at, "not supported yet: %s", what)
		}
		return b.errorf(code, at, "%s", message)
	}
	var option *connector.OptionError
	var column *connector.ColumnError
	var missing *connector.MissingKeyError
	switch {
	case errors.As(err, &option):
		d := report(diag.CodeBadOption, optionSpan(n.Table, option.Key), option.Message).WithNote(t.Span(), "it is looked up here")
		if option.Hint != "" {
			d.WithHelp("%s", option.Hint)
		}
	case errors.As(err, &column):
		d := report(diag.CodeBadTable, n.Table.Columns[column.Column].Span, column.Message).WithNote(t.Span(), "it is looked up here")
		if column.Hint != "" {
			d.WithHelp("%s", column.Hint)
		}
	case errors.As(err, &missing):
		col := &n.Table.Columns[missing.Column]
		report(diag.CodeBadKey, n.Span, missing.Message).WithNote(col.Span, "the column is declared here").
			WithHelp("add an equality with it to ON, also with a constant: %s = ...", syntax.Quote(col.Name))
	default:
		report(diag.CodeBadTable, n.Table.Span, err.Error()).WithNote(t.Span(), "it is looked up here")
	}
	return false
}
