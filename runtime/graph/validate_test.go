package graph

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/types"
)

type fake struct {
	connector.SourceConnector
	connector.SinkConnector
}

func (fake) Spec() *connector.Spec { return &connector.Spec{} }

var schema = &batch.Schema{Fields: []types.Field{{Name: "k", Type: types.NewBigInt()}, {Name: "ts", Type: types.NewTimestamp(3)}}}

func tableOf(name string) *connector.Table {
	t := &connector.Table{Name: name}
	for _, f := range schema.Fields {
		t.Columns = append(t.Columns, connector.Column{Field: f})
	}
	return t
}

// job is source > exchange > window > sink, and source > sink of another table.
func job() *Job {
	out := &batch.Schema{Fields: []types.Field{schema.Fields[0], schema.Fields[1], schema.Fields[1], schema.Fields[1]}}
	agg := &connector.Table{Name: "agg"}
	for _, f := range out.Fields {
		agg.Columns = append(agg.Columns, connector.Column{Field: f})
	}
	return &Job{Bounded: true, Nodes: []*Node{
		{ID: 0, Op: &Source{Table: tableOf("s"), Connector: fake{}, Columns: []int{0, 1}}, Schema: schema, TimeColumn: 1},
		{ID: 1, Op: &Exchange{Keys: []int{0}, Parallelism: 1}, Inputs: []NodeID{0}, Schema: schema, TimeColumn: 1},
		{ID: 2, Op: &WindowAggregate{Window: Window{Size: 1000}, Time: 1, Keys: []int{0}}, Inputs: []NodeID{1}, Schema: out, TimeColumn: 3, Path: "agg.group"},
		{ID: 3, Op: &Sink{Table: agg, Connector: fake{}}, Inputs: []NodeID{2}, Schema: out, TimeColumn: -1},
		{ID: 4, Op: &Sink{Table: tableOf("t"), Connector: fake{}}, Inputs: []NodeID{0}, Schema: schema, TimeColumn: -1},
	}}
}

// replacing is a connector whose tables can be replaced.
type replacing struct {
	fake
	mode connector.ReplaceMode
}

func (r replacing) ReplaceMode(*connector.Table) (connector.ReplaceMode, string) { return r.mode, "" }

func TestValidate(t *testing.T) {
	if err := job().Validate(); err != nil {
		t.Fatalf("a sound graph: %v", err)
	}
	for _, c := range []struct {
		name string
		edit func(*Job)
		want string
	}{
		{"id", func(j *Job) { j.Nodes[1].ID = 7 }, "not its index"},
		{"order", func(j *Job) { j.Nodes[1].Inputs[0] = 2 }, "not an earlier node"},
		{"arity", func(j *Job) { j.Nodes[1].Inputs = nil }, "has 0 inputs"},
		{"column", func(j *Job) { j.Nodes[0].Op.(*Source).Columns[0] = 9 }, "no column 9"},
		{"time", func(j *Job) { j.Nodes[0].TimeColumn = 0 }, "no timestamp"},
		{"window time", func(j *Job) { j.Nodes[2].Op.(*WindowAggregate).Time = 0 }, "no timestamp"},
		{"window size", func(j *Job) { j.Nodes[2].Op.(*WindowAggregate).Window.Size = 0 }, "window size"},
		{"key", func(j *Job) { j.Nodes[1].Op.(*Exchange).Keys[0] = 5 }, "no column 5"},
		{"no exchange", func(j *Job) { j.Nodes[2].Inputs[0] = 0 }, "no exchange"},
		{"no path", func(j *Job) { j.Nodes[2].Path = "" }, "STATE_ID"},
		{"sink columns", func(j *Job) { j.Nodes[4].Op.(*Sink).Table = tableOf("t"); j.Nodes[4].Op.(*Sink).Table.Columns = nil }, "columns for a table"},
		{"overwrite of a stream", func(j *Job) { j.Nodes[4].Op.(*Sink).Overwrite = true }, "needs a batch job"},
		{"overwrite of a table that grows", func(j *Job) {
			j.Bounded, j.Batch = true, true
			j.Nodes[3].Op.(*Sink).Overwrite = true
		}, "cannot be overwritten"},
		{"overwrite by lanes", func(j *Job) {
			j.Bounded, j.Batch = true, true
			s := j.Nodes[4].Op.(*Sink)
			s.Overwrite, s.Connector = true, replacing{mode: connector.ReplaceOnRequest}
		}, "without an exchange"},
		{"results that replace, by lanes", func(j *Job) {
			j.Nodes[4].Op.(*Sink).Connector = replacing{mode: connector.ReplaceResults}
		}, "without an exchange"},
		{"static row", func(j *Job) {
			j.Bounded, j.Batch = true, true
			s := j.Nodes[3].Op.(*Sink)
			s.Overwrite, s.Connector = true, replacing{mode: connector.ReplaceOnRequest}
			s.Static = [][]expr.Expr{{}}
		}, "a static row of 0 columns"},
		{"both ways", func(j *Job) {
			j.Nodes[3].Schema, j.Nodes[2].Schema = schema, schema
			j.Nodes[3].Op.(*Sink).Table = tableOf("agg")
			j.Nodes[2].TimeColumn = -1
			j.Nodes[3].Inputs = []NodeID{0, 2}
		}, "both directly and through an exchange"},
		{"filter", func(j *Job) {
			j.Nodes[4] = &Node{ID: 4, Op: &Filter{Predicate: &expr.Column{Name: "k", T: types.NewBigInt()}}, Inputs: []NodeID{0}, Schema: schema, TimeColumn: -1}
		}, "predicate"},
		{"project type", func(j *Job) {
			j.Nodes[4] = &Node{ID: 4, Op: &Project{Exprs: []expr.Expr{&expr.Column{Index: 4, Name: "x", T: types.NewBigInt()}}}, Inputs: []NodeID{0},
				Schema: &batch.Schema{Fields: schema.Fields[:1]}, TimeColumn: -1}
		}, "column 4"},
		{"unbounded sort", func(j *Job) {
			j.Bounded = false
			j.Nodes[4] = &Node{ID: 4, Op: &Sort{Limit: -1}, Inputs: []NodeID{1}, Schema: schema, TimeColumn: -1, Path: "sort"}
		}, "bounded"},
	} {
		j := job()
		c.edit(j)
		err := j.Validate()
		var e *Error
		var n *NotYetError
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &e) && !errors.As(err, &n) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
