package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
)

// unusedNamed is how many columns of one table lintUnused names.
const unusedNamed = 5

// lintUnused says of each table of the job file which of its columns no statement reads.
// Tables of other files may serve other jobs, and those of loops are made, not written.
func (c *compiler) lintUnused(job *graph.Job) {
	used := map[string]map[string]bool{}
	whole := map[string]bool{} // read in another way, too
	for _, n := range job.Nodes {
		switch op := n.Op.(type) {
		case *graph.Source:
			names := map[string]bool{}
			for _, i := range op.Columns {
				names[op.Table.Columns[i].Name] = true
			}
			used[op.Table.Name] = names
		case *graph.Lookup:
			whole[op.Table.Name] = true
		case *graph.WideMerge:
			for i := range op.Offline {
				whole[op.Offline[i].Table.Name] = true
			}
		}
	}
	for _, name := range c.catalog.Names() {
		o, _ := c.catalog.Lookup(name)
		t, ok := o.(*catalog.Table)
		if !ok || used[name] == nil || whole[name] {
			continue
		}
		var unused []*catalog.Column
		for i := range t.Columns {
			col := &t.Columns[i]
			if col.Kind == catalog.Physical && !used[name][col.Name] && !slices.Contains(t.PartitionKeys, col.Name) && c.inJobFile(col.Span) {
				unused = append(unused, col)
			}
		}
		if len(unused) == 0 {
			continue
		}
		names := make([]string, 0, unusedNamed+1)
		for _, col := range unused[:min(len(unused), unusedNamed)] {
			names = append(names, fmt.Sprintf("%q", col.Name))
		}
		if more := len(unused) - unusedNamed; more > 0 {
			names = append(names, fmt.Sprintf("%d more", more))
		}
		noun, verb := "column", "is"
		if len(names) > 1 {
			noun, verb = "columns", "are"
		}
		c.diags.Add(diag.Infof(diag.CodeUnusedColumn, unused[0].Span, "%s %s of %q %s read by no statement", noun, strings.Join(names, ", "), name, verb).
			WithHelp("leave out what is not needed, or read it; nothing is wrong with the job"))
	}
}

// inJobFile reports a place in the last file, which is the job's.
func (c *compiler) inJobFile(s diag.Span) bool {
	return !s.IsZero() && s.File.Name() == c.jobFile
}
