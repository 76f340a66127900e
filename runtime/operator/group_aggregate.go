package operator

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// GroupAggregate is GROUP BY keys without a window: one subtask. Over input that
// ends it gives its rows then, without keys one row even for no input; with Updates
// the changes of each batch of input.
type GroupAggregate struct {
	changes  changes
	op       *graph.GroupAggregate
	schema   *batch.Schema
	aggs     *aggSet
	keyTypes []types.Type
	table    *aggTable
	// global: this subtask has the one group of an aggregate without keys.
	global bool
	done   bool
	cols   []*batch.Vec
	slots  []int32
	groups []int32
	out    batch.Batch
}

// NewGroupAggregate makes a subtask over the columns of in.
func NewGroupAggregate(op *graph.GroupAggregate, in, out *batch.Schema, subtask int) (*GroupAggregate, error) {
	aggs, err := newAggSet(op.Aggregates, in, -1, "")
	if err != nil {
		return nil, err
	}
	if len(out.Fields) != len(op.Keys)+len(op.Aggregates) {
		return nil, fmt.Errorf("aggregate of %d columns for %d keys and %d aggregates", len(out.Fields), len(op.Keys), len(op.Aggregates))
	}
	g := &GroupAggregate{op: op, schema: out, aggs: aggs, keyTypes: typesAt(in, op.Keys), global: len(op.Keys) == 0 && subtask == 0}
	g.table = newAggTable(g.keyTypes, aggs.accumulators(nil), 0)
	return g, nil
}

// Fold implements Keyed.
func (g *GroupAggregate) Fold(ctx *expr.Context, in *KeyedRows, out *Results) error {
	sel := g.aggs.eval(ctx, in, out)
	g.cols = colsAt(in.Batch, g.op.Keys, g.cols)
	g.slots = slices.Grow(g.slots[:0], in.Batch.Len)[:in.Batch.Len]
	old := g.table.keys.Len()
	g.table.keys.Find(g.cols, in.Hashes, sel, g.slots)
	g.table.resize()
	if !g.op.Updates {
		g.aggs.update(g.table.accs, g.slots, sel)
		return nil
	}
	g.changes.before(g, sel, old)
	g.aggs.update(g.table.accs, g.slots, sel)
	return g.changes.emit(g, old, out)
}

// Advance implements Keyed.
func (g *GroupAggregate) Advance(_ *expr.Context, time int64, out *Results) error {
	if time < batch.MaxWatermark || g.done || g.op.Updates && !(g.global && g.table.keys.Len() == 0) {
		return nil
	}
	g.done = true
	if g.global && g.table.keys.Len() == 0 {
		g.table.keys.Find(nil, []uint64{0}, batch.Sel{0}, make([]int32, 1))
		g.table.resize()
	}
	for from := 0; from < g.table.keys.Len(); from += emitRows {
		to := min(from+emitRows, g.table.keys.Len())
		g.groups = slotsOf(from, to, g.groups)
		g.out.Reset(g.schema)
		g.out.Len = to - from
		emitTable(g.out.Cols, g.table, g.aggs, g.groups)
		if err := out.Emit(&g.out); err != nil {
			return err
		}
	}
	g.table = newAggTable(g.keyTypes, g.aggs.accumulators(nil), 0)
	return nil
}

// Save implements Keyed.
func (g *GroupAggregate) Save() []byte {
	dst := appendTexts(nil, g.aggs.texts())
	if g.done {
		dst = append(dst, 1)
	} else {
		dst = append(dst, 0)
	}
	return g.table.save(dst)
}

// Load implements Keyed.
func (g *GroupAggregate) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	to := readTexts(r, g.aggs.texts())
	g.done = r.Byte() == 1
	if err := r.Err(); err != nil {
		return err
	}
	if err := g.table.load(r, g.keyTypes, groups, to, nil); err != nil {
		return err
	}
	if r.Rest() > 0 {
		return state.ErrCorrupt
	}
	return nil
}

// Kind implements Keyed.
func (*GroupAggregate) Kind() string { return "GroupAggregate" }

// Fingerprint implements Keyed.
func (g *GroupAggregate) Fingerprint() uint64 { return state.Fingerprint(g.keyTypes) }

// Bytes implements Keyed.
func (g *GroupAggregate) Bytes() int64 { return g.table.bytes() }
