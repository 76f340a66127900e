package lower

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/plan"
)

// Options of Job.
type Options struct {
	Name        string
	Batch       bool
	Zone        *rt.Zone // nil: UTC
	Parallelism int      // of keyed stages; 0 is 1
	Settings    *catalog.Settings
	// SinkInstead, if set, takes the rows of every sink table.
	SinkInstead connector.SinkConnector
}

// Result is a table-less sink: the rows of a query.
type Result struct {
	Node plan.Node
	Sink connector.SinkConnector
}

// Job lowers the INSERTs of a job, in order.
func Job(inserts []*plan.Insert, o Options) (*graph.Job, error) {
	l := newLowerer(o)
	for _, ins := range inserts {
		l.collect(ins)
	}
	for _, ins := range inserts {
		l.target, l.replacing = ins.Table, replaced(l.sinkOf(ins))
		in, err := l.exactly(ins.Input)
		if err != nil {
			return nil, err
		}
		l.addToSink(ins, in)
	}
	return l.finish()
}

// Query lowers a query; its rows go to r.Sink as table "result".
func Query(r Result, o Options) (*graph.Job, error) {
	l := newLowerer(o)
	l.once = true
	l.collect(r.Node)
	in, err := l.exactly(r.Node)
	if err != nil {
		return nil, err
	}
	t := &connector.Table{Name: "result", Zone: l.zone.Location()}
	for _, c := range r.Node.Columns() {
		t.Columns = append(t.Columns, connector.Column{Field: rt.Field{Name: c.Name, Type: c.Type}})
	}
	l.sinks = append(l.sinks, &sink{
		op:     &graph.Sink{Table: t, Connector: r.Sink, OnError: graph.Fail, NotNull: graph.Fail},
		inputs: []graph.NodeID{in.id}, time: in.time(), path: "result",
	})
	return l.finish()
}

type lowerer struct {
	o       Options
	once    bool // no edit of the query has to find its state again
	zone    *rt.Zone
	job     *graph.Job
	tables  map[string]*source
	sinks   []*sink
	byTable map[string]*sink
	paths   map[string]int // state paths given
	target  *catalog.Table // of the INSERT being lowered; nil for a query
	// replacing: its table's partitions are replaced whole.
	replacing bool
	// sideNames are the tables of late rows, in the order in which they were named.
	sideNames []string
	values    map[string]graph.NodeID
}

// source is a table read by one or more scans.
type source struct {
	scans []*plan.Scan
	out   *lowered // once lowered
	// normalized are its rows as changes, once lowered; nil where nothing asks for them.
	normalized *lowered
}

// lowered is a lowered node with its columns.
type lowered struct {
	id   graph.NodeID
	cols []plan.Column
}

func (n *lowered) ordinal(id int) (int, error) {
	for i := range n.cols {
		if n.cols[i].ID == id {
			return i, nil
		}
	}
	return 0, fmt.Errorf("column id %d is not among the inputs of a node", id)
}

// time is the ordinal of the row time column, -1 if there is none.
func (n *lowered) time() int {
	for i := range n.cols {
		if n.cols[i].RowTime {
			return i
		}
	}
	return -1
}

func newLowerer(o Options) *lowerer {
	l := &lowerer{o: o, zone: o.Zone, tables: map[string]*source{}, byTable: map[string]*sink{}, paths: map[string]int{}, values: map[string]graph.NodeID{}}
	if l.zone == nil {
		l.zone = rt.UTC()
	}
	if l.o.Parallelism < 1 {
		l.o.Parallelism = 1
	}
	if l.o.Settings == nil {
		l.o.Settings = catalog.NewSettings()
	}
	l.job = &graph.Job{Name: o.Name, Batch: o.Batch, Zone: l.zone.Location(), Bounded: true, Options: l.o.Settings.JobOptions()}
	return l
}

// collect notes the scans of a plan by table.
func (l *lowerer) collect(n plan.Node) {
	for _, s := range plan.Scans(n) {
		src := l.tables[s.Table.Name]
		if src == nil {
			src = &source{}
			l.tables[s.Table.Name] = src
		}
		src.scans = append(src.scans, s)
		l.job.Bounded = l.job.Bounded && s.Table.Bounded()
	}
}

func (l *lowerer) add(op graph.Op, cols []plan.Column, path string, inputs ...graph.NodeID) *lowered {
	out := &lowered{id: graph.NodeID(len(l.job.Nodes)), cols: cols}
	l.job.Nodes = append(l.job.Nodes, &graph.Node{
		ID: out.id, Op: op, Inputs: inputs, Schema: plan.SchemaOf(cols), Path: path, TimeColumn: out.time(),
	})
	return out
}

// remap replaces column ids by ordinals of the input.
func remap(e expr.Expr, in *lowered) (expr.Expr, error) {
	var err error
	out := expr.Rewrite(e, func(n expr.Expr) expr.Expr {
		c, ok := n.(*expr.Column)
		if !ok {
			return n
		}
		at, e := in.ordinal(c.Index)
		if e != nil {
			err = fmt.Errorf("lowering %q: %w", c.Name, e)
			return n
		}
		return &expr.Column{Index: at, Name: c.Name, T: c.T}
	})
	return out, err
}

func remapAll(es []expr.Expr, in *lowered) ([]expr.Expr, error) {
	out := make([]expr.Expr, len(es))
	for i := range es {
		var err error
		if out[i], err = remap(es[i], in); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func ordinals(ids []int, in *lowered) ([]int, error) {
	out := make([]int, len(ids))
	for i, id := range ids {
		var err error
		if out[i], err = in.ordinal(id); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (l *lowerer) node(n plan.Node) (*lowered, error) {
	switch n := n.(type) {
	case *plan.Scan:
		return l.scan(n)
	case *plan.Normalize:
		return l.normalize(n)
	case *plan.Values:
		return l.literals(n), nil
	case *plan.Union:
		return l.union(n)
	case *plan.Wide:
		return l.wide(n)
	case *plan.Join:
		return l.join(n)
	case *plan.SetOperation:
		return l.setOperation(n)
	}
	in, err := l.node(n.Inputs()[0])
	if err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case *plan.Project:
		exprs, err := remapAll(n.Exprs, in)
		if err != nil {
			return nil, err
		}
		return l.add(&graph.Project{Exprs: exprs}, n.Cols, "", in.id), nil
	case *plan.Filter:
		p, err := remap(n.Predicate, in)
		if err != nil {
			return nil, err
		}
		return l.add(&graph.Filter{Predicate: p}, in.cols, "", in.id), nil
	case *plan.Unnest:
		v, err := remap(n.Value, in)
		if err != nil {
			return nil, err
		}
		op, cols := &graph.Unnest{Value: v, Outer: n.Outer, Ordinality: n.Ordinality}, l.widen(in, n.Cols)
		if n.Condition != nil {
			if op.Condition, err = remap(n.Condition, &lowered{cols: cols}); err != nil {
				return nil, err
			}
		}
		return l.add(op, cols, "", in.id), nil
	case *plan.Lookup:
		return l.lookup(n, in)
	case *plan.WindowTable:
		return l.windowTable(n, in)
	case *plan.Aggregate:
		return l.aggregate(n, in)
	case *plan.Over:
		return l.over(n, in)
	case *plan.Rank:
		return l.rank(n, in)
	case *plan.Sort:
		return l.sort(n, in)
	}
	return nil, fmt.Errorf("no way to lower %T", n)
}

// literals lowers VALUES; equal rows are one node, read once.
func (l *lowerer) literals(n *plan.Values) *lowered {
	var key strings.Builder
	for _, row := range n.Rows {
		for _, e := range row {
			fmt.Fprintf(&key, "%s %s,", e.Type(), e)
		}
		key.WriteByte(';')
	}
	if id, ok := l.values[key.String()]; ok {
		return &lowered{id: id, cols: n.Cols}
	}
	out := l.add(&graph.Values{Rows: n.Rows}, n.Cols, "")
	l.values[key.String()] = out.id
	return out
}

// widen is the columns of a node that passes its input on and adds columns:
// the lowered input may have more columns than the plan says, since a source
// is shared.
func (l *lowerer) widen(in *lowered, cols []plan.Column) []plan.Column {
	known := map[int]bool{}
	var out []plan.Column
	for _, c := range in.cols {
		known[c.ID] = true
		if pc, ok := plan.ColumnByID(cols, c.ID); ok {
			c = *pc
		}
		out = append(out, c)
	}
	for _, c := range cols {
		if !known[c.ID] {
			out = append(out, c)
		}
	}
	return out
}

// scan lowers a scan to the table's source. Scans of one table have different
// column ids: each gets the source's columns under its own.
func (l *lowerer) scan(n *plan.Scan) (*lowered, error) {
	src := l.tables[n.Table.Name]
	if src.out == nil {
		if err := l.source(src); err != nil {
			return nil, err
		}
	}
	node := l.job.Nodes[src.out.id]
	op := node.Op.(*graph.Source)
	out := &lowered{id: src.out.id, cols: make([]plan.Column, len(op.Columns))}
	for i, ordinal := range op.Columns {
		out.cols[i] = plan.Column{ID: -1 - i, Name: node.Schema.Fields[i].Name, Type: node.Schema.Fields[i].Type}
		for j := range n.Ordinals {
			if n.Ordinals[j] == ordinal {
				out.cols[i] = n.Cols[j]
			}
		}
	}
	return out, nil
}

func (l *lowerer) source(src *source) error {
	first := src.scans[0]
	table := first.Table.SourceTable(l.zone.Location())
	used := make([]bool, len(table.Columns))
	for _, s := range src.scans {
		for _, o := range s.Ordinals {
			used[o] = true
		}
	}
	sc, ok := first.Table.Connector.(connector.SourceConnector)
	if !ok {
		return fmt.Errorf("connector %q of table %q says it is a source and is none", first.Table.Spec.Name, table.Name)
	}
	op := &graph.Source{Table: table, Connector: sc, IdleTimeout: l.idleTimeout(first.Table)}
	out := &lowered{}
	for i := range used {
		if !used[i] {
			continue
		}
		op.Columns = append(op.Columns, i)
		// The first scan's ids where it has the column; the watermark is its.
		c := plan.Column{ID: -1 - i, Name: table.Columns[i].Name, Type: table.Columns[i].Type}
		for j, o := range first.Ordinals {
			if o == i {
				c = first.Cols[j]
			}
		}
		out.cols = append(out.cols, c)
	}
	if first.Watermark != nil {
		w, err := remap(first.Watermark, out)
		if err != nil {
			return err
		}
		op.Watermark = w
	}
	op.Partitions = partitionsOf(table, src.scans)
	src.out = l.add(op, out.cols, "")
	return nil
}

func (l *lowerer) idleTimeout(t *catalog.Table) time.Duration {
	if t.Runtime.Has("scan.watermark.idle-timeout") {
		return t.Runtime.Duration("scan.watermark.idle-timeout")
	}
	return l.o.Settings.Duration("table.exec.source.idle-timeout")
}

// union lowers UNION ALL; an input that is a shared source, or has other
// columns than the plan says, gets a projection.
func (l *lowerer) union(n *plan.Union) (*lowered, error) {
	var ids []graph.NodeID
	for _, in := range n.In {
		low, err := l.exactly(in)
		if err != nil {
			return nil, err
		}
		ids = append(ids, low.id)
	}
	if l.replacing {
		l.legs(ids)
	}
	return l.add(&graph.Union{}, n.Cols, "", ids...), nil
}

// exactly lowers a node so that its columns are those of the plan, in order.
func (l *lowerer) exactly(n plan.Node) (*lowered, error) {
	low, err := l.node(n)
	if err != nil {
		return nil, err
	}
	cols := n.Columns()
	same := len(low.cols) == len(cols)
	for i := 0; same && i < len(cols); i++ {
		same = low.cols[i].ID == cols[i].ID
	}
	if same {
		return low, nil
	}
	p := &graph.Project{}
	for i := range cols {
		at, err := low.ordinal(cols[i].ID)
		if err != nil {
			return nil, err
		}
		p.Exprs = append(p.Exprs, &expr.Column{Index: at, Name: cols[i].Name, T: cols[i].Type})
	}
	return l.add(p, cols, "", low.id), nil
}

var windowKinds = map[plan.WindowKind]graph.WindowKind{plan.TumbleWindow: graph.Tumble, plan.HopWindow: graph.Hop,
	plan.CumulateWindow: graph.Cumulate, plan.SessionWindow: graph.Session}

func (l *lowerer) window(w *plan.Window) graph.Window {
	out := graph.Window{Kind: windowKinds[w.Kind], Size: w.Size, Offset: w.Offset, Step: w.Step, Processing: w.Processing}
	if w.LTZ {
		out.Zone = l.zone.Location()
	}
	return out
}

// finish adds the sinks and checks the graph.
func (l *lowerer) finish() (*graph.Job, error) {
	for _, s := range l.sinks {
		l.behindExchange(s)
		schema := s.op.Table.Schema(nil)
		l.job.Nodes = append(l.job.Nodes, &graph.Node{
			ID: graph.NodeID(len(l.job.Nodes)), Op: s.op, Inputs: s.inputs, Schema: schema, Path: s.path, TimeColumn: s.time,
		})
	}
	l.sides()
	if err := l.job.Validate(); err != nil {
		return nil, err
	}
	return l.job, nil
}
