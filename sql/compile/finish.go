package compile

import (
	"errors"
	"slices"
	"strconv"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/lower"
	"github.com/millrace/millrace/sql/optimizer"
	"github.com/millrace/millrace/sql/plan"
)

// finish checks the job as a whole and lowers it.
func (c *compiler) finish() {
	if v, _, ok := c.settings.Lookup("pipeline.name"); ok {
		c.unit.Name, c.unit.NameSet = v, true
	}
	c.lateRows()
	plans := make([]*plan.Insert, len(c.inserts))
	for i := range c.inserts {
		plans[i] = c.inserts[i].plan
	}
	if c.opts.Mode != ModeSQL {
		plan.CheckTopics(plans, &c.diags)
		plan.CheckOverwrites(plans, &c.diags)
		plan.CheckPlaces(plans, &c.diags)
		plan.CheckLateRows(plans, &c.diags)
		plan.NameStates(plans, &c.diags)
	}
	if len(plans) == 0 && (c.opts.Mode == ModeRun || c.opts.Mode == ModePreview) && !c.diags.HasErrors() {
		c.diags.Errorf(diag.CodeNothingToRun, diag.Span{}, "there is no INSERT and no CREATE WIDE TABLE, so there is nothing to run")
	}
	if c.diags.HasErrors() {
		return
	}
	if c.opts.Mode == ModeSQL {
		c.lowerStatements()
	} else if len(plans) > 0 {
		c.lowerJob(plans)
	}
	if !c.diags.HasErrors() {
		*c.unit.Session.Catalog = *c.catalog
		*c.unit.Session.Settings = *c.settings
		c.unit.Session.Settings.Strict = false
	}
}

// lateRows adds the INSERTs of tables of late rows, when every table is known.
func (c *compiler) lateRows() {
	for _, b := range slices.Clone(c.inserts) {
		at, given := b.at, true
		if o := b.plan.Table.Option("window.late-rows"); o != nil {
			at = o.Value.Span()
		} else if _, set, ok := c.settings.Lookup("window.late-rows"); ok {
			at = set
		} else {
			given = false
		}
		c.binder.Batch, c.binder.Zone = b.batch, b.zone
		if given {
			c.binder.LintLateRows(b.plan, at)
		}
		side := catalog.LateTable(b.plan.Table.LateRows(c.settings))
		if side == "" || c.opts.Mode == ModePreview {
			continue
		}
		for _, ins := range c.binder.LateRows(b.plan, side, at) {
			c.inserts = append(c.inserts, boundInsert{plan: ins, stmt: b.stmt, batch: b.batch, zone: b.zone, at: at})
		}
	}
}

func (c *compiler) optimize(n plan.Node) plan.Node {
	if c.opts.NoOptimizer {
		return optimizer.Needed(n)
	}
	return optimizer.Run(n)
}

func (c *compiler) lowerOptions(m modeOf) lower.Options {
	o := lower.Options{Name: c.unit.Name, Batch: m.batch, Zone: m.zone, Parallelism: max(c.opts.Parallelism, 1), Settings: c.settings}
	if v, _, ok := c.settings.Lookup("parallelism.default"); ok {
		o.Parallelism, _ = strconv.Atoi(v)
	}
	if c.opts.Mode == ModePreview {
		o.SinkInstead = c.opts.ResultSink
	}
	return o
}

// lowerJob makes the one job of a file.
func (c *compiler) lowerJob(plans []*plan.Insert) {
	optimized := make([]*plan.Insert, len(plans))
	for i := range plans {
		optimized[i] = c.optimize(plans[i]).(*plan.Insert)
	}
	job, err := lower.Job(optimized, c.lowerOptions(modeOf{c.inserts[0].batch, c.inserts[0].zone}))
	if err != nil {
		c.lowerError(err, c.inserts[0].at)
		return
	}
	c.unit.Explain = explainJob(plans, optimized, job)
	if c.opts.Mode == ModeCheck {
		c.lintUnused(job)
	}
	if c.opts.Mode == ModePreview && c.opts.ResultSink == nil {
		return
	}
	c.unit.Job = job
	for _, p := range plans {
		if plan.ChangelogOf(p.Input).By != nil {
			c.unit.Updating = appendNew(c.unit.Updating, p.Table.Name)
		}
	}
}

// lowerStatements makes one job for each statement of a shell session.
func (c *compiler) lowerStatements() {
	byStmt := map[int][]boundInsert{}
	var order []int
	for _, b := range c.inserts {
		if _, seen := byStmt[b.stmt]; !seen {
			order = append(order, b.stmt)
		}
		byStmt[b.stmt] = append(byStmt[b.stmt], b)
	}
	for _, at := range order {
		group := byStmt[at]
		plans := make([]*plan.Insert, len(group))
		for i := range group {
			plans[i] = c.optimize(group[i].plan).(*plan.Insert)
		}
		plan.CheckTopics(plans, &c.diags)
		plan.CheckOverwrites(plans, &c.diags)
		job, err := lower.Job(plans, c.lowerOptions(modeOf{group[0].batch, group[0].zone}))
		if err != nil {
			c.lowerError(err, group[0].at)
			continue
		}
		c.unit.Statements[at].Job = job
	}
	for _, q := range c.queries {
		if c.opts.ResultSink == nil {
			continue
		}
		job, err := c.lowerQuery(q.out.Node, q.mode, c.opts.ResultSink)
		if err != nil {
			at := c.unit.Statements[q.stmt].AST.Span()
			if !plan.CheckQueryTopics(q.out.Node, at, &c.diags) {
				c.lowerError(err, at)
			}
			continue
		}
		c.unit.Statements[q.stmt].Job = job
	}
}

func (c *compiler) lowerQuery(n plan.Node, m modeOf, sink connector.SinkConnector) (*graph.Job, error) {
	return lower.Query(lower.Result{Node: c.optimize(n), Sink: sink}, c.lowerOptions(m))
}

func (c *compiler) lowerError(err error, at diag.Span) {
	var later *graph.NotYetError
	if errors.As(err, &later) {
		c.diags.Errorf(diag.CodeNotYet, at, "%s is not supported yet", later.Feature)
		return
	}
	c.diags.Errorf(diag.CodeInternal, at, "planning failed: %s", err).
		WithHelp("this is a fault of Millrace, not of the file")
}
