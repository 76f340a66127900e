package operator

import (
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// Generation is the rows of one generation of an offline branch, one a key. It does
// not change once it is built: many tasks look into it at a time.
type Generation struct {
	keys *state.Keys
	cols []batch.Vec // by call of the branch, by slot
	// Rows is how many rows were read, NoKey how many of them had no key: they are of
	// no row of the wide table.
	Rows, NoKey int64
}

// Offline is an offline branch, compiled: it says which generation belongs to a
// window, and makes generations. It belongs to one goroutine.
type Offline struct {
	op       *graph.OfflineBranch
	bounds   *batch.Schema
	value    *expr.Program
	filter   condition
	exprs    *expr.Program
	keyTypes []types.Type
	aggs     *aggSet
	outputs  []int // output columns, by aggregate
	window   batch.Batch
}

// windowBounds are the columns over which the generation of a window is computed.
var windowBounds = &batch.Schema{Fields: []types.Field{
	{Name: "window_start", Type: types.NewTimestamp(3).NotNull()}, {Name: "window_end", Type: types.NewTimestamp(3).NotNull()}}}

// NewOffline compiles an offline branch of a wide table with the given columns.
func NewOffline(op *graph.WideMerge, branch int, out *batch.Schema) (*Offline, error) {
	b := &op.Offline[branch]
	o := &Offline{op: b, bounds: windowBounds}
	var err error
	if o.value, err = expr.Compile([]expr.Expr{b.Value}, o.bounds, expr.Options{}); err != nil {
		return nil, fmt.Errorf("compiling the generation of branch %s: %w", b.Label, err)
	}
	read := b.Table.Schema(b.Read)
	if o.filter, err = newCondition(b.Filter, read); err != nil {
		return nil, fmt.Errorf("compiling the condition of branch %s: %w", b.Label, err)
	}
	if o.exprs, err = expr.Compile(b.Exprs, read, expr.Options{}); err != nil {
		return nil, fmt.Errorf("compiling branch %s: %w", b.Label, err)
	}
	o.keyTypes = typesAt(b.Schema, b.Keys)
	var aggs []graph.Aggregate
	head := len(b.Keys) + 2
	for k := range op.Columns {
		c := &op.Columns[k]
		if c.Branch != b.Label {
			continue
		}
		a, err := wideAggregate(c, &graph.WideBranch{Label: b.Label}, b.Schema)
		if err != nil {
			return nil, err
		}
		if want := out.Fields[head+k].Type; !sameLayout(a.Bound.Return, want) {
			return nil, fmt.Errorf("wide column %s is %s, its rule gives %s", c.Name, want, a.Bound.Return)
		}
		aggs, o.outputs = append(aggs, a), append(o.outputs, k)
	}
	// Rows of a table have no order; those of one key are taken in that of their values.
	if o.aggs, err = newAggSet(aggs, b.Schema, -1, b.Label); err != nil {
		return nil, err
	}
	return o, nil
}

// Value is the generation that belongs to a window, in row 0: NULL, or an error, if
// there can be none.
func (o *Offline) Value(ctx *expr.Context, w Span) *batch.Vec {
	o.window.Reset(o.bounds)
	o.window.Len = 1
	putBounds(o.window.Cols, o.bounds.Fields, 1, w)
	out := make([]batch.Vec, 1)
	o.value.Eval(ctx, &o.window, nil, out)
	return out[0].Clone()
}

// GenerationBuilder makes a Generation of its rows.
type GenerationBuilder struct {
	o     *Offline
	ctx   *expr.Context
	value *batch.Vec
	at    int // the generation column among those read
	table *aggTable
	g     Generation

	sel    batch.Sel
	vals   []batch.Vec
	rows   batch.Batch
	keys   []*batch.Vec
	hashes []uint64
	buf    []byte
	slots  []int32
}

// Build begins a generation, of which value is what Value gave.
func (o *Offline) Build(ctx *expr.Context, value *batch.Vec) *GenerationBuilder {
	b := &GenerationBuilder{o: o, ctx: ctx, value: value, vals: make([]batch.Vec, len(o.op.Exprs))}
	for i, c := range o.op.Read {
		if c == o.op.Generation {
			b.at = i
		}
	}
	b.table = newAggTable(o.keyTypes, o.aggs.accumulators(nil), 0, nil)
	return b
}

// Add takes rows of sel, of the columns that are read; rows of other generations are
// left out. An error is of the data: nothing can be made of the generation then.
func (b *GenerationBuilder) Add(in *batch.Batch, sel batch.Sel) error {
	if err := b.choose(in, sel); err != nil || len(b.sel) == 0 {
		return err
	}
	b.o.exprs.Eval(b.ctx, in, b.sel, b.vals)
	b.rows.Schema, b.rows.Len, b.rows.Cols = b.o.op.Schema, in.Len, b.vals
	b.g.Rows += int64(len(b.sel))
	keyed, err := b.hash()
	if err != nil {
		return err
	}
	var failed error
	rows := &KeyedRows{Batch: &b.rows, Sel: keyed, Hashes: b.hashes}
	good := b.o.aggs.eval(b.ctx, rows, &Results{Dead: func(_ *batch.Batch, e *batch.ValueError) { failed = rowFault(e) }})
	if failed != nil {
		return failed
	}
	b.slots = resized(b.slots, in.Len)
	b.table.keys.Find(b.keys, b.hashes, good, b.slots)
	b.table.resize()
	b.o.aggs.update(b.table.accs, b.slots, good)
	return nil
}

// choose lists the rows of the generation for which the condition holds.
func (b *GenerationBuilder) choose(in *batch.Batch, sel batch.Sel) error {
	if b.sel = b.sel[:0]; b.sel == nil {
		b.sel = batch.Sel{}
	}
	col := &in.Cols[b.at]
	for _, row := range sel {
		if !col.IsNull(int(row)) && batch.ValueEqual(b.value, 0, col, int(row)) {
			b.sel = append(b.sel, row)
		}
	}
	if b.o.filter.prog == nil || len(b.sel) == 0 {
		return nil
	}
	b.o.filter.prog.Eval(b.ctx, in, b.sel, b.o.filter.out)
	kept := b.sel[:0]
	for _, row := range b.sel {
		switch truthAt(&b.o.filter.out[0], int(row)) {
		case truthTrue:
			kept = append(kept, row)
		case truthError:
			return rowFault(b.o.filter.out[0].Err(int(row)))
		}
	}
	b.sel = kept
	return nil
}

// hash lists the rows that have a key, and hashes it.
func (b *GenerationBuilder) hash() (batch.Sel, error) {
	b.keys = colsAt(&b.rows, b.o.op.Keys, b.keys)
	b.hashes = resized(b.hashes, b.rows.Len)
	keyed := batch.Sel{}
	for _, row := range b.sel {
		null := false
		for _, v := range b.keys {
			if e := v.DeepErr(int(row)); e != nil {
				return nil, rowFault(e)
			}
			null = null || v.IsNull(int(row))
		}
		if null {
			b.g.NoKey++
			continue
		}
		b.hashes[row], b.buf = batch.HashKey(b.buf, b.keys, int(row))
		keyed = append(keyed, row)
	}
	return keyed, nil
}

func rowFault(e *batch.ValueError) error {
	where := ""
	if e.Where != "" {
		where = "column " + e.Where + ": "
	}
	return fmt.Errorf("%s%s: %s", where, e.Code, e.Message)
}

// Generation is what was built; nil: no row was of it, so that it is not there.
func (b *GenerationBuilder) Generation() *Generation {
	if b.g.Rows == 0 {
		return nil
	}
	b.g.keys = b.table.keys
	slots := slotsOf(0, b.g.keys.Len(), nil)
	b.g.cols = make([]batch.Vec, len(b.table.accs))
	for i, a := range b.table.accs {
		a.Emit(slots, b.o.aggs.calls[i].where, &b.g.cols[i])
	}
	return &b.g
}

// Keys is the number of keys.
func (g *Generation) Keys() int { return g.keys.Len() }

// Bytes is the memory that it holds.
func (g *Generation) Bytes() int64 {
	n := g.keys.Bytes()
	for i := range g.cols {
		n += state.VecBytes(&g.cols[i])
	}
	return n
}
