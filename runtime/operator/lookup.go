package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// Lookup joins rows with the rows of a table that have their key now. Each key of a
// batch is asked for once. A row whose key, or whose condition with one of the
// table's rows, is an error fails: it is not known how many rows it is.
type Lookup struct {
	table  connector.Lookup
	name   string
	outer  bool
	prog   *expr.Program
	cond   condition
	schema *batch.Schema
	inputs int
	// wait calls f without holding what others need; nil: it just calls it.
	wait func(f func(context.Context) error) error

	// Memory for one call.
	values []batch.Vec
	cols   []*batch.Vec
	hashes []uint64
	buf    []byte
	good   batch.Sel
	slots  []int32 // by input row; noSlot, errorSlot
	keys   *state.Keys
	asked  connector.LookupKeys
	found  connector.Found
	li, ri batch.Sel // pairs: input row, row of found
	pairs  batch.Batch
	truth  []truth // by pair
	parent batch.Sel
	row    batch.Sel // row of found of each output row, -1: none
	padded bool
	origin []int32
	batch  batch.Batch
}

// NewLookup compiles a lookup over the columns of in. A nil table can be compiled
// and not evaluated.
func NewLookup(op *graph.Lookup, table connector.Lookup, in, out *batch.Schema) (*Lookup, error) {
	l := &Lookup{table: table, name: op.Table.Name, outer: op.Outer, schema: out, inputs: len(in.Fields)}
	var keys []expr.Expr
	var keyTypes []types.Type
	for _, k := range op.Keys {
		keys = append(keys, k.Value)
		keyTypes = append(keyTypes, op.Table.Columns[k.Column].Type)
	}
	var err error
	if l.prog, err = expr.Compile(keys, in, expr.Options{}); err != nil {
		return nil, fmt.Errorf("compiling the keys of a lookup: %w", err)
	}
	if l.cond, err = newCondition(op.Condition, out); err != nil {
		return nil, fmt.Errorf("compiling the condition of a lookup: %w", err)
	}
	l.values = make([]batch.Vec, len(keys))
	for i := range l.values {
		l.cols = append(l.cols, &l.values[i])
	}
	l.keys = state.NewKeys(keyTypes)
	return l, nil
}

// Eval implements Operator.
func (l *Lookup) Eval(ctx *expr.Context, in *Rows, out *Rows) {
	out.inherit(in)
	sel := in.all(ctx)
	l.prog.Eval(ctx, in.Batch, in.Sel, l.values)
	l.findKeys(in, sel, out)
	if out.Err = l.ask(); out.Err != nil {
		return
	}
	l.pairUp(sel)
	l.decide(ctx, in)
	l.emit(in, sel, out)
	l.gather(&l.batch, in.Batch, l.parent, l.row, l.padded)
	takePositions(&l.batch, in.Batch, l.parent)
	out.Batch, out.Sel, out.Origin = &l.batch, nil, l.origin
}

// findKeys numbers the keys of the rows.
func (l *Lookup) findKeys(in *Rows, sel batch.Sel, out *Rows) {
	l.keys.Reset()
	l.slots, l.hashes, l.good = resized(l.slots, in.Batch.Len), resized(l.hashes, in.Batch.Len), l.good[:0]
	for _, row := range sel {
		l.slots[row] = noSlot
		usable := true
		for _, v := range l.cols {
			if v.HasErrs() {
				if e := v.Err(int(row)); e != nil {
					out.fail(in, e, row)
					l.slots[row], usable = errorSlot, false
					break
				}
			}
			usable = usable && !v.IsNull(int(row)) && !isNaN(v, int(row))
		}
		if usable {
			l.hashes[row], l.buf = batch.HashKey(l.buf, l.cols, int(row))
			l.good = append(l.good, row)
		}
	}
	l.keys.Find(l.cols, l.hashes, l.good, l.slots)
}

var errNotOpen = errors.New("BUG: the table is not open for lookups")

// ask looks the keys up.
func (l *Lookup) ask() error {
	l.found.Reset()
	if l.keys.Len() == 0 {
		return nil
	}
	if l.table == nil {
		return fmt.Errorf("table %s: %w", l.name, errNotOpen)
	}
	l.asked = connector.LookupKeys{Cols: l.keys.Columns(), Hashes: l.keys.Hashes()}
	find := func(ctx context.Context) error { return l.table.Find(ctx, &l.asked, &l.found) }
	var err error
	if l.wait == nil || l.table.Local() {
		err = find(context.Background())
	} else {
		err = l.wait(find)
	}
	if err == nil && len(l.found.First) != l.asked.Len()+1 {
		err = fmt.Errorf("BUG: rows of %d keys were asked for, and %d came", l.asked.Len(), len(l.found.First)-1)
	}
	if err != nil {
		return fmt.Errorf("looking up rows of table %s: %w", l.name, err)
	}
	return nil
}

// matches are the rows found for an input row.
func (l *Lookup) matches(row int32) batch.Sel {
	s := l.slots[row]
	if s < 0 {
		return nil
	}
	return l.found.Sel[l.found.First[s]:l.found.First[s+1]]
}

// pairUp lists the pairs of equal keys, by input row.
func (l *Lookup) pairUp(sel batch.Sel) {
	l.li, l.ri = l.li[:0], l.ri[:0]
	for _, row := range sel {
		for _, r := range l.matches(row) {
			l.li, l.ri = append(l.li, row), append(l.ri, r)
		}
	}
}

// decide evaluates the condition of each pair.
func (l *Lookup) decide(ctx *expr.Context, in *Rows) {
	l.truth = resized(l.truth, len(l.li))
	if l.cond.prog == nil || len(l.li) == 0 {
		for k := range l.truth {
			l.truth[k] = truthTrue
		}
		return
	}
	l.gather(&l.pairs, in.Batch, l.li, l.ri, false)
	l.cond.prog.Eval(ctx, &l.pairs, nil, l.cond.out)
	for k := range l.truth {
		l.truth[k] = truthAt(&l.cond.out[0], k)
	}
}

// emit lists the output rows.
func (l *Lookup) emit(in *Rows, sel batch.Sel, out *Rows) {
	if l.parent == nil {
		l.parent, l.row = batch.Sel{}, batch.Sel{} // a nil Sel would be all rows
	}
	l.parent, l.row, l.origin, l.padded = l.parent[:0], l.row[:0], l.origin[:0], false
	add := func(row, r int32) {
		l.parent, l.row, l.origin = append(l.parent, row), append(l.row, r), append(l.origin, in.Source(row))
	}
	k := 0
	for _, row := range sel {
		first, failed := len(l.parent), l.slots[row] == errorSlot
		for ; k < len(l.li) && l.li[k] == row; k++ {
			switch {
			case failed:
			case l.truth[k] == truthError:
				out.fail(in, l.cond.out[0].Err(k), row)
				failed = true
			case l.truth[k] == truthTrue:
				add(row, l.ri[k])
			}
		}
		if l.outer && !failed && len(l.parent) == first {
			add(row, -1)
			l.padded = true
		}
	}
}

// gather makes rows of the input and of the table, NULLs where the latter is -1.
func (l *Lookup) gather(b, in *batch.Batch, left, right batch.Sel, padded bool) {
	b.Reset(l.schema)
	b.Len = len(left)
	for c := range b.Cols {
		v := &b.Cols[c]
		switch {
		case c < l.inputs:
			v.Take(&in.Cols[c], left)
		case l.found.Rows == nil:
			v.Reset(l.schema.Fields[c].Type, 0)
			appendNulls(v, len(right))
		case !padded:
			v.Take(&l.found.Rows.Cols[c-l.inputs], right)
		default:
			src := &l.found.Rows.Cols[c-l.inputs]
			v.Reset(src.Type, len(right))
			for i, r := range right {
				if r < 0 {
					v.NullRow(i)
				} else {
					v.Put(i, src, int(r))
				}
			}
			v.PadOffsets()
		}
	}
}
