package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/rowset"
	"github.com/millrace/millrace/jobs/spec"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/compile"
)

// Query implements control.API: the last file is run, those before it make
// tables and settings known.
func (n *Node) Query(ctx context.Context, req control.Query, out control.QueryResult) error {
	if len(req.Files) == 0 {
		return inputError(errors.New("there is no query"))
	}
	vars := spec.Vars{Set: req.Set, LookupEnv: os.LookupEnv, ReadFile: os.ReadFile}
	session := compile.NewSession()
	known := req.Files[:len(req.Files)-1]
	if req.Job != "" {
		rec, ok := n.records.find(req.Job)
		if !ok {
			var names []string
			for _, r := range n.records.all() {
				names = append(names, r.Name)
			}
			return notFound("job", req.Job, names)
		}
		known = append(append([]control.SQLFile{}, rec.Files...), known...)
		vars.Set = merged(rec.Set, req.Set)
	}
	if len(known) > 0 {
		if err := spec.Compile(known, vars, compile.Options{Registry: n.registry, Functions: n.opts.Functions.Extra(), Mode: compile.ModeCheck, Session: session}).Err(); err != nil {
			return err
		}
	}
	sink := &resultConnector{safe: req.SafeNumbers}
	c := spec.Compile(req.Files[len(req.Files)-1:], vars, compile.Options{Registry: n.registry, Functions: n.opts.Functions.Extra(), Mode: compile.ModeSQL, Session: session, ResultSink: sink})
	if err := c.Err(); err != nil {
		return err
	}
	for i := range c.Unit.Statements {
		if err := n.statement(ctx, &c.Unit.Statements[i], sink, out); err != nil {
			return err
		}
	}
	return nil
}

// merged is a copy of a with the values of b over it.
func merged(a, b map[string]string) map[string]string {
	out := make(map[string]string, len(a)+len(b))
	for k, v := range a {
		out[k] = v
	}
	for k, v := range b {
		out[k] = v
	}
	return out
}

// statement runs one statement of the shell.
func (n *Node) statement(ctx context.Context, s *compile.Statement, sink *resultConnector, out control.QueryResult) error {
	switch s.Kind {
	case compile.KindQuery:
		columns, change := resultColumns(s.Schema.Fields), ""
		if s.Changes {
			change = changeColumn(s.Schema.Fields)
			columns = append([]control.Column{{Name: change, Type: "STRING"}}, columns...)
		}
		if err := out.Begin(columns); err != nil {
			return err
		}
		rows := int64(0)
		sink.emit = func(_ string, _ []types.Field, changes []rowset.Change) error {
			rows += int64(len(changes))
			for _, c := range changes {
				row := c.Row
				if s.Changes {
					row = withChange(change, c)
				}
				if err := out.Row(row); err != nil {
					return err
				}
			}
			return nil
		}
		dead, err := n.runOnce(ctx, s.Job)
		if err != nil {
			return err
		}
		return out.Done(dead.sentence(rows))
	case compile.KindInsert:
		dead, err := n.runOnce(ctx, s.Job)
		if err != nil {
			return err
		}
		return out.Done(dead.sentence(-1))
	case compile.KindJobs:
		return n.jobStatement(ctx, s, out)
	}
	if s.Result == nil {
		return out.Done("")
	}
	return texts(out, s.Result.Columns, s.Result.Rows)
}

// texts gives rows of texts.
func texts(out control.QueryResult, columns []string, rows [][]string) error {
	cols := make([]control.Column, len(columns))
	for i, name := range columns {
		cols[i] = control.Column{Name: name, Type: "STRING"}
	}
	if err := out.Begin(cols); err != nil {
		return err
	}
	for _, row := range rows {
		if err := out.Row(textRow(columns, row)); err != nil {
			return err
		}
	}
	return out.Done("")
}

// textRow is a row of texts as an object.
func textRow(columns, row []string) json.RawMessage {
	var b strings.Builder
	b.WriteByte('{')
	for i, c := range columns {
		if i > 0 {
			b.WriteByte(',')
		}
		k, _ := json.Marshal(c) // strings always marshal
		v, _ := json.Marshal(row[i])
		b.Write(k)
		b.WriteByte(':')
		b.Write(v)
	}
	b.WriteByte('}')
	return json.RawMessage(b.String())
}

// runOnce runs a bounded job that nothing is kept of.
func (n *Node) runOnce(ctx context.Context, job *graph.Job) (*countedDead, error) {
	l, err := ledger.OpenLedger(ctx, ledger.NewMemStore())
	if err != nil {
		return nil, err
	}
	dead := &countedDead{counts: map[string]int64{}}
	run, err := engine.Start(ctx, job, engine.Deps{
		Ledger: l, Scope: ledger.Scope{Job: newUUID()}, DataDirectory: n.records.directory, NewUUID: newUUID,
		DeadLetters: dead, Keyed: n.keyedStages(checkpoint.NewMemStore().Handle(), 0), Log: n.opts.Log,
	})
	if err != nil {
		return nil, err
	}
	err = run.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(err, run.Stop(context.Background()))
	}
	return dead, err
}

// countedDead counts dead rows of a query, which has no place to keep them.
type countedDead struct {
	mu     sync.Mutex
	counts map[string]int64
	first  string
}

var _ lane.DeadLetters = (*countedDead)(nil)

func (d *countedDead) Write(_ context.Context, entries []lane.DeadEntry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range entries {
		e := &entries[i]
		d.counts[string(e.Reason)] += int64(max(len(e.Rows), 1))
		if d.first == "" {
			d.first = fmt.Sprintf("topic %s %d:%d: %s", e.Topic, e.Partition, e.Offset, e.Message)
		}
	}
	return nil
}

func (d *countedDead) Durable(context.Context, connector.UUID, connector.UUID, map[int32]int64) ([]lane.DeadRecord, error) {
	return nil, nil
}

// sentence says how many rows there are and, never in silence, how many are
// not among them.
func (d *countedDead) sentence(rows int64) string {
	s := ""
	switch {
	case rows == 1:
		s = "1 row"
	case rows >= 0:
		s = fmt.Sprintf("%d rows", rows)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.counts) == 0 {
		return s
	}
	var reasons []string
	for r, n := range d.counts {
		reasons = append(reasons, fmt.Sprintf("%d %s", n, r))
	}
	sort.Strings(reasons)
	if s != "" {
		s += "; "
	}
	return fmt.Sprintf("%snot among them, because of errors: %s (the first: %s)", s, strings.Join(reasons, ", "), d.first)
}

// Preview implements control.API.
func (n *Node) Preview(ctx context.Context, req control.Preview, out control.QueryResult) error {
	vars := spec.Vars{Set: req.Set, LookupEnv: os.LookupEnv, ReadFile: os.ReadFile}
	sink := &resultConnector{}
	registry, err := n.previewRegistry(req.Range)
	if err != nil {
		return inputError(err)
	}
	c := spec.Compile(req.Files, vars, compile.Options{Registry: registry, Functions: n.opts.Functions.Extra(), Mode: compile.ModePreview, ResultSink: sink})
	if err := c.Err(); err != nil {
		return err
	}
	tables := map[string]*previewTable{}
	var order []string
	sink.emit = func(table string, fields []types.Field, changes []rowset.Change) error {
		t := tables[table]
		if t == nil {
			t = &previewTable{fields: fields, updating: slices.Contains(c.Unit.Updating, table)}
			tables[table] = t
			order = append(order, table)
		}
		t.take(changes, req.Limit)
		return nil
	}
	dead, err := n.runOnce(ctx, c.Unit.Job)
	if err != nil {
		return err
	}
	sort.Strings(order)
	for _, name := range order {
		t := tables[name]
		if err := out.Begin(resultColumns(t.fields)); err != nil {
			return err
		}
		message, rows := t.shown(name, req.Limit)
		for _, o := range rows {
			if err := out.Row(o); err != nil {
				return err
			}
		}
		if err := out.Done(message); err != nil {
			return err
		}
	}
	if s := dead.sentence(-1); s != "" {
		return out.Done(s)
	}
	return nil
}

// previewTable is the rows of a table: the first ones, or, where they change, those
// that are left.
type previewTable struct {
	fields   []types.Field
	updating bool
	rows     []json.RawMessage
	left     rowset.Set
	total    int64 // of changes
}

func (t *previewTable) take(changes []rowset.Change, limit int64) {
	t.total += int64(len(changes))
	if t.updating {
		t.left.Apply(changes...)
		return
	}
	for _, c := range changes {
		if limit <= 0 || int64(len(t.rows)) < limit {
			t.rows = append(t.rows, c.Row)
		}
	}
}

// shown is what is to be shown, with a sentence.
func (t *previewTable) shown(name string, limit int64) (string, []json.RawMessage) {
	if !t.updating {
		return fmt.Sprintf("table %s: %d of %d rows", name, len(t.rows), t.total), t.rows
	}
	rows := t.left.Rows()
	if limit > 0 && int64(len(rows)) > limit {
		rows = rows[:limit]
	}
	return fmt.Sprintf("table %s: %d of %d rows that are left of %d changes", name, len(rows), t.left.Len(), t.total), rows
}

// previewRegistry is the node's registry with sources of the log cut to a
// range.
func (n *Node) previewRegistry(rng string) (*connector.Registry, error) {
	r, err := n.parseRange(rng)
	if err != nil {
		return nil, err
	}
	var cs []connector.Connector
	for _, name := range n.registry.Names() {
		c, _ := n.registry.Lookup(name)
		if sc, ok := c.(connector.SourceConnector); ok && name == "log" {
			c = &rangedConnector{SourceConnector: sc, node: n, rng: r}
		}
		cs = append(cs, c)
	}
	return connector.NewRegistry(cs...)
}
