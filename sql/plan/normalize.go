package plan

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
)

// Normalize makes changes of what a table of newest rows gives: it keeps the last row
// of each primary key. It lies directly above the table's Scan.
type Normalize struct {
	Input Node
	Table *catalog.Table
	Keys  []int // ids
	// TTL is how long, in ms, a row is kept; 0: for good.
	TTL  int64
	Span diag.Span
}

// Columns implements Node.
func (n *Normalize) Columns() []Column { return inNoOrder(n.Input.Columns()) }

// Inputs implements Node.
func (n *Normalize) Inputs() []Node { return []Node{n.Input} }

// With implements Node.
func (n *Normalize) With(in ...Node) Node { c := *n; c.Input = in[0]; return &c }

// StatePath identifies the state, which all statements that read the table share.
func (n *Normalize) StatePath() string {
	return "table " + n.Table.Name + ".normalize[" + strings.Join(n.Table.PrimaryKey, ", ") + "]"
}

func describeNormalize(n *Normalize) []string {
	d := []string{"keys=[" + strings.Join(names(n.Input, n.Keys), ", ") + "]"}
	return append(withTTL(d, n.TTL), "state="+n.StatePath())
}

// givesUpserts reports a table whose rows replace one another by the primary key.
func givesUpserts(t *catalog.Table) bool {
	return t.Spec != nil && t.Spec.SourceChangelog == connector.Upsert
}

// checkUpserts reports what stands against reading a table of newest rows.
func (b *Binder) checkUpserts(t *catalog.Table, at diag.Span) bool {
	switch {
	case len(t.PrimaryKey) == 0:
		b.errorf(diag.CodeBadKey, at, "connector %q reads the newest row of each primary key, and %q has none", t.Spec.Name, t.Name).
			WithNote(t.Span, "the table is declared here").
			WithHelp("add PRIMARY KEY (...) NOT ENFORCED")
		return false
	case b.Batch && !b.declaring:
		b.notYet(at, "reading newest rows by key in batch mode").
			WithNote(t.Span, "table %q is declared here", t.Name).
			WithHelp("leave 'execution.runtime-mode' at streaming: with 'scan.bounded.mode' the job ends as well")
		return false
	}
	for i := range t.Columns {
		if c := &t.Columns[i]; c.Kind != catalog.Physical && slices.Contains(t.PrimaryKey, c.Name) {
			b.errorf(diag.CodeBadKey, at, "column %q of the primary key of %q does not lie in the record", c.Name, t.Name).
				WithNote(t.Span, "the table is declared here")
			return false
		}
	}
	return true
}

// normalize puts a Normalize on the scan of a table of newest rows.
func (b *Binder) normalize(s *Scan, at diag.Span) Node {
	n := &Normalize{Input: s, Table: s.Table, TTL: b.StateTTL, Span: at}
	for _, name := range s.Table.PrimaryKey {
		for _, c := range s.Cols {
			if c.Name == name {
				n.Keys = append(n.Keys, c.ID)
			}
		}
	}
	return n
}
