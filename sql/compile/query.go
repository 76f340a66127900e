package compile

import (
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/plan"
	"github.com/millrace/millrace/sql/syntax"
)

// takesQuery says whether the rows of a query can be shown: ones that change only
// where the sink takes them.
func (c *compiler) takesQuery(out *plan.Output, at diag.Span) bool {
	if c.opts.ResultSink != nil && c.opts.ResultSink.Spec().Changelog == connector.All {
		return c.binder.CheckChangelog(out.Node)
	}
	if plan.ChangelogOf(out.Node).By == nil {
		return true
	}
	c.diags.Errorf(diag.CodeNotYet, at, "showing the rows of a query that change is not supported yet").
		WithHelp("where the input ends, SET 'execution.runtime-mode' = 'batch'").
		WithHelp("INSERT INTO a table of 'connector' = 'print' writes every change")
	return false
}

func (c *compiler) query(s *syntax.QueryStmt) {
	if c.opts.Mode != ModeSQL {
		c.diags.Errorf(diag.CodeSelectInJob, s.Span(), "a job file has no place for the rows of a bare SELECT").
			WithHelp("write INSERT INTO a table, or run the query with: millrace sql -e")
		if c.opts.Index != nil { // an editor wants to know its names all the same
			found := c.diags
			c.binder.Query(s.Query)
			c.diags = found
		}
		return
	}
	out := c.binder.Query(s.Query)
	if out != nil && !c.takesQuery(out, s.Span()) {
		out = nil
	}
	at := c.add(Statement{Kind: KindQuery, AST: s})
	if out != nil {
		c.queries = append(c.queries, boundQuery{out: out, stmt: at, mode: modeOf{c.binder.Batch, c.binder.Zone}})
		c.unit.Statements[at].Schema = plan.SchemaOf(out.Columns())
		c.unit.Statements[at].Changes = plan.ChangelogOf(out.Node).By != nil
	}
}
