package plan

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// checkOverwrite checks what INSERT OVERWRITE needs: a table that can be replaced,
// and a query that ends. It says one thing, which holds in both modes.
func (b *Binder) checkOverwrite(s *syntax.Insert, t *catalog.Table) {
	if !s.Overwrite {
		return
	}
	at := s.Span().StartOnly().To(s.Target.Span())
	if mode, why := replaceMode(t, b.location()); mode == connector.ReplaceNever {
		d := b.errorf(diag.CodeNotReplaceable, at, "table %q cannot be overwritten", t.Name).
			WithNote(t.Span, "table %q is declared here", t.Name)
		if why == "" {
			why = fmt.Sprintf("connector %q adds rows and cannot replace what is there", t.Spec.Name)
		}
		d.WithHelp("%s", why).WithHelp("INSERT INTO adds to the table")
		return
	}
	if !b.Batch {
		b.errorf(diag.CodeBoundedOnly, at, "INSERT OVERWRITE replaces what is there, which a streaming job cannot know to be complete").
			WithHelp("SET 'execution.runtime-mode' = 'batch' if the input ends")
	}
}

func (b *Binder) location() *time.Location {
	if b.Zone == nil {
		return time.UTC
	}
	return b.Zone.Location()
}

// replaceMode asks the connector of a table.
func replaceMode(t *catalog.Table, zone *time.Location) (mode connector.ReplaceMode, why string) {
	c, ok := t.Connector.(connector.ReplacingConnector)
	if !ok {
		return connector.ReplaceNever, ""
	}
	return c.ReplaceMode(t.SinkTable(zone))
}

// staticRow is a row of the table's writable columns with the values of PARTITION
// (...), where it fixes every partition column; else nil.
func staticRow(t *catalog.Table, static map[string]expr.Expr) []expr.Expr {
	for _, k := range t.PartitionKeys {
		if static[k] == nil {
			return nil
		}
	}
	var row []expr.Expr
	for _, c := range t.WritableColumns() {
		if e := static[c.Name]; e != nil {
			row = append(row, e)
		} else {
			row = append(row, expr.Null(c.Type))
		}
	}
	return row
}

// CheckOverwrites reports tables that one job overwrites, or replaces with each
// result, and writes otherwise, too: what would be left depended on the order.
func CheckOverwrites(inserts []*Insert, diags *diag.List) {
	for i, ins := range inserts {
		mode, _ := replaceMode(ins.Table, time.UTC)
		for _, old := range inserts[:i] {
			replaces := old.Overwrite || ins.Overwrite || mode == connector.ReplaceResults
			if old.Table != ins.Table || !replaces || apart(old, ins) {
				continue
			}
			diags.Errorf(diag.CodeOverwriteTwice, ins.Span, "table %q is overwritten and written once more in one job", ins.Table.Name).
				WithNote(old.Span, "it is written here, too").
				WithHelp("write one query with UNION ALL, or give each INSERT OVERWRITE its own PARTITION (...)")
			break
		}
	}
}

// apart reports two overwriting INSERTs of different, fixed partitions.
func apart(a, b *Insert) bool {
	if !a.Overwrite || !b.Overwrite || a.Static == nil || b.Static == nil || len(a.Table.PartitionKeys) == 0 {
		return false
	}
	for i := range a.Static {
		if a.Static[i].String() != b.Static[i].String() {
			return true
		}
	}
	return false
}
