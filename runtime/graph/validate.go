package graph

import (
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/types"
)

// Error is a fault of a graph: a mistake of whoever built it, not of a user.
type Error struct {
	Node NodeID
	Op   string
	Text string
}

func (e *Error) Error() string {
	return fmt.Sprintf("job graph: node %d (%s): %s", e.Node, e.Op, e.Text)
}

// NotYetError names something that the runtime cannot do in this version.
type NotYetError struct{ Feature string }

func (e *NotYetError) Error() string { return "not_yet: " + e.Feature }

// Validate checks the graph: shape, column numbers and types, unique state
// paths. It returns the first fault, a *Error or *NotYetError.
func (j *Job) Validate() error {
	v := &validator{job: j, keyed: make([]bool, len(j.Nodes)), lanes: make([]bool, len(j.Nodes)), paths: map[string]NodeID{}}
	if len(j.Nodes) == 0 {
		return &Error{Op: "Job", Text: "no nodes"}
	}
	for i, n := range j.Nodes {
		if n == nil || n.Op == nil || n.Schema == nil {
			return &Error{Node: NodeID(i), Op: "?", Text: "node, operator or schema is missing"}
		}
		v.n = n
		if err := v.node(NodeID(i)); err != nil {
			return err
		}
	}
	return v.reach()
}

type validator struct {
	job   *Job
	n     *Node
	keyed []bool // behind an exchange
	lanes []bool // lanes' rows reach it without an exchange
	paths map[string]NodeID
}

func (v *validator) fault(format string, args ...any) error {
	return &Error{Node: v.n.ID, Op: OpName(v.n.Op), Text: fmt.Sprintf(format, args...)}
}

func (v *validator) input(i int) *Node { return v.job.Nodes[v.n.Inputs[i]] }

func (v *validator) node(id NodeID) error {
	n := v.n
	if n.ID != id {
		return v.fault("its id is not its index %d", id)
	}
	for _, in := range n.Inputs {
		if in < 0 || in >= id {
			return v.fault("input %d is not an earlier node", in)
		}
		v.keyed[id] = v.keyed[id] || v.keyed[in]
		v.lanes[id] = v.lanes[id] || v.lanes[in]
	}
	switch n.Op.(type) {
	case *Source:
		v.lanes[id] = true
	case *Exchange:
		v.lanes[id] = false
	}
	if n.TimeColumn >= 0 {
		if n.TimeColumn >= len(n.Schema.Fields) || !n.Schema.Fields[n.TimeColumn].Type.IsTimestamp() {
			return v.fault("row time column %d is no timestamp", n.TimeColumn)
		}
	}
	if err := v.arity(); err != nil {
		return err
	}
	if Stateful(n.Op) {
		if old, dup := v.paths[n.Path]; dup || n.Path == "" {
			return v.fault("state path %q is also that of node %d; name one with STATE_ID", n.Path, old)
		}
		v.paths[n.Path] = id
	}
	return v.op(id)
}

func (v *validator) arity() error {
	want := 1
	switch op := v.n.Op.(type) {
	case *Source, *Values:
		want = 0
	case *Union, *Sink:
		if len(v.n.Inputs) == 0 {
			return v.fault("it has no input")
		}
		return nil
	case *WideMerge:
		want = len(op.Branches)
	case *Join, *SetOperation:
		want = 2
	}
	if len(v.n.Inputs) != want {
		return v.fault("it has %d inputs, not %d", len(v.n.Inputs), want)
	}
	return nil
}

func (v *validator) op(id NodeID) error {
	switch op := v.n.Op.(type) {
	case *Source:
		return v.source(op)
	case *Project:
		if len(op.Exprs) != len(v.n.Schema.Fields) {
			return v.fault("%d expressions for %d columns", len(op.Exprs), len(v.n.Schema.Fields))
		}
		return v.exprs(v.input(0).Schema, op.Exprs...)
	case *Filter:
		if op.Predicate.Type().Kind != types.Boolean {
			return v.fault("predicate %s is %s", op.Predicate, op.Predicate.Type())
		}
		return v.exprs(v.input(0).Schema, op.Predicate)
	case *Unnest:
		if k := op.Value.Type().Kind; k != types.Array && k != types.Map {
			return v.fault("%s is %s, neither ARRAY nor MAP", op.Value, op.Value.Type())
		}
		if op.Condition != nil {
			if op.Condition.Type().Kind != types.Boolean || !op.Outer {
				return v.fault("condition %s of an UNNEST", op.Condition)
			}
			if err := v.exprs(v.n.Schema, op.Condition); err != nil {
				return err
			}
		}
		return v.exprs(v.input(0).Schema, op.Value)
	case *Lookup:
		return v.lookup(id, op)
	case *Union:
		for i := range v.n.Inputs {
			if err := v.same(v.input(i).Schema, v.n.Schema); err != nil {
				return err
			}
		}
	case *WindowAssign:
		if k := op.Window.Kind; k == Session || k == Given {
			return v.fault("windows of this kind are not of one row alone")
		}
		return v.window(op.Window, op.Time, v.input(0).Schema)
	case *Exchange:
		v.keyed[id] = true
		if op.Parallelism < 1 {
			return v.fault("parallelism %d", op.Parallelism)
		}
		return v.columns(v.input(0).Schema, op.Keys...)
	case *WindowAggregate:
		return v.windowAggregate(op)
	case *Rank, *FirstRow, *Over:
		return v.ranked(op)
	case *Normalize:
		if err := v.behindExchange(0); err != nil {
			return err
		}
		if len(op.Keys) == 0 {
			return v.fault("needs a key")
		}
		return v.columns(v.input(0).Schema, op.Keys...)
	case *SessionAssign:
		if err := v.behindExchange(0); err != nil {
			return err
		}
		if err := v.window(op.Window, op.Time, v.input(0).Schema); err != nil {
			return err
		}
		return v.columns(v.input(0).Schema, op.Keys...)
	case *GroupAggregate:
		if err := v.behindExchange(0); err != nil {
			return err
		}
		return v.columns(v.input(0).Schema, op.Keys...)
	case *WideMerge:
		return v.wide(op)
	case *Join:
		return v.join(op)
	case *SetOperation:
		return v.setOperation()
	case *Sort, *Limit:
		if !v.job.Bounded {
			return v.fault("needs bounded input")
		}
	case *Sink:
		return v.sink(op)
	}
	return nil
}

func (v *validator) source(op *Source) error {
	if op.Table == nil || op.Connector == nil {
		return v.fault("table or connector is missing")
	}
	if len(op.Columns) != len(v.n.Schema.Fields) {
		return v.fault("%d columns for %d fields", len(op.Columns), len(v.n.Schema.Fields))
	}
	for _, c := range op.Columns {
		if c < 0 || c >= len(op.Table.Columns) {
			return v.fault("table %s has no column %d", op.Table.Name, c)
		}
	}
	if op.Watermark == nil {
		return nil
	}
	if !op.Watermark.Type().IsTimestamp() {
		return v.fault("watermark %s is %s", op.Watermark, op.Watermark.Type())
	}
	return v.exprs(v.n.Schema, op.Watermark)
}

func (v *validator) windowAggregate(op *WindowAggregate) error {
	if err := v.behindExchange(0); err != nil {
		return err
	}
	in := v.input(0).Schema
	if err := v.window(op.Window, op.Time, in); err != nil {
		return err
	}
	if w := op.Window; w.Processing && (w.Kind == Given || op.Lateness != 0 || in.Fields[op.Time].Type.Kind != types.TimestampLTZ) {
		return v.fault("processing time divides TIMESTAMP_LTZ, without lateness")
	}
	if f := op.Firing; f.On() && (op.Window.Kind == Session || f.EarlyDelay < 0 || f.LateDelay < 0 || f.Late && op.Lateness <= 0) {
		return v.fault("early and late rows are not of sessions, late ones need a lateness, delays are no less than 0")
	}
	if op.Retracts && (op.Window.Kind == Session || op.Window.Processing) {
		return v.fault("sessions and windows of processing time take no rows back")
	}
	for i := range op.Aggregates {
		a := &op.Aggregates[i]
		if len(a.Args) != len(a.Bound.Params) {
			return v.fault("%s has %d arguments, not %d", a.Text, len(a.Args), len(a.Bound.Params))
		}
		if err := v.exprs(in, a.Args...); err != nil {
			return err
		}
		if a.Filter != nil {
			if err := v.exprs(in, a.Filter); err != nil {
				return err
			}
		}
	}
	return v.columns(in, op.Keys...)
}

// ranked checks the operators that order rows of a key.
func (v *validator) ranked(op Op) error {
	if err := v.behindExchange(0); err != nil {
		return err
	}
	in := v.input(0).Schema
	var order []SortKey
	switch op := op.(type) {
	case *Rank:
		if op.Window.Kind == Given {
			if err := v.window(op.Window, -1, in); err != nil {
				return err
			}
		} else if !v.job.Bounded && !op.Changes {
			return v.fault("needs bounded input or windows")
		}
		order = op.Order
		if err := v.columns(in, op.Keys...); err != nil {
			return err
		}
	case *FirstRow:
		if err := v.columns(in, append([]int{op.Time}, op.Keys...)...); err != nil {
			return err
		}
	case *Over:
		order = op.Order
		if op.Time < 0 && !op.Changes && !v.job.Bounded {
			return v.fault("needs bounded input or row time")
		}
		if err := v.columns(in, op.Keys...); err != nil {
			return err
		}
	}
	for _, k := range order {
		if err := v.columns(in, k.Column); err != nil {
			return err
		}
	}
	return nil
}

func (v *validator) behindExchange(i int) error {
	if _, ok := v.input(i).Op.(*Exchange); !ok && !Stateful(v.input(i).Op) {
		return v.fault("input %d is no exchange", i)
	}
	return nil
}

func (v *validator) columns(in *batch.Schema, cols ...int) error {
	for _, c := range cols {
		if c < 0 || c >= len(in.Fields) {
			return v.fault("input has no column %d", c)
		}
	}
	return nil
}

func (v *validator) exprs(in *batch.Schema, exprs ...expr.Expr) error {
	if _, err := expr.Compile(exprs, in, expr.Options{}); err != nil {
		return v.fault("%v", err)
	}
	return nil
}

// same compares the layouts; names and nullability of an input may differ.
func (v *validator) same(in, out *batch.Schema) error {
	if len(in.Fields) != len(out.Fields) {
		return v.fault("an input has %d columns, not %d", len(in.Fields), len(out.Fields))
	}
	for i := range in.Fields {
		if !sameLayout(in.Fields[i].Type, out.Fields[i].Type) {
			return v.fault("column %q is %s in an input, not %s", out.Fields[i].Name, in.Fields[i].Type, out.Fields[i].Type)
		}
	}
	return nil
}

// sameLayout is equality without nullability and field names, at any depth.
func sameLayout(a, b types.Type) bool {
	if a.Kind != b.Kind || a.Precision != b.Precision || a.Scale != b.Scale || len(a.Fields) != len(b.Fields) {
		return false
	}
	if a.Elem != nil && (b.Elem == nil || !sameLayout(*a.Elem, *b.Elem)) {
		return false
	}
	if a.Key != nil && (b.Key == nil || !sameLayout(*a.Key, *b.Key)) {
		return false
	}
	for i := range a.Fields {
		if !sameLayout(a.Fields[i].Type, b.Fields[i].Type) {
			return false
		}
	}
	return true
}

// reach checks the rule that a source may not reach one table both directly
// and through an exchange: its rows would have two positions there. Sources of
// one topic that are different tables are compared by the engine, which alone
// knows topics.
func (v *validator) reach() error {
	type way struct{ direct, keyed bool }
	for src, n := range v.job.Nodes {
		if _, ok := n.Op.(*Source); !ok {
			continue
		}
		ways := make([]way, len(v.job.Nodes))
		ways[src].direct = true
		for id := src + 1; id < len(v.job.Nodes); id++ {
			for _, in := range v.job.Nodes[id].Inputs {
				ways[id].direct = ways[id].direct || ways[in].direct
				ways[id].keyed = ways[id].keyed || ways[in].keyed
			}
			node := v.job.Nodes[id]
			switch node.Op.(type) {
			case *Exchange:
				ways[id] = way{keyed: ways[id].direct || ways[id].keyed}
			case *Sink:
				if ways[id].direct && ways[id].keyed {
					v.n = node
					return v.fault("a source reaches it both directly and through an exchange")
				}
			}
		}
	}
	return nil
}
