package operator

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// overFold folds rows of one key, in order, into accumulators.
type overFold struct {
	head   []int32 // rows before those that results are of
	sel    batch.Sel
	pass   batch.Sel
	groups []int32
	order  batch.Vec
	place  []byte
	one    batch.Vec
	args   []batch.Vec
	filter batch.Vec
	slot   [1]int32
}

// results folds head, then the rows of to one after the other, into group of accs, and
// gives what these say then. Rows with numbers below folded are in them already.
func (f *overFold) results(o *OverChanges, accs []fn.Accumulator, group int32, head []int32, folded int32, to *overRows) {
	f.head = head
	f.sel = append(append(f.sel[:0], head...), to.rows...)
	f.groups = f.groups[:0]
	for range f.sel {
		f.groups = append(f.groups, group)
	}
	f.slot[0] = group
	f.order.Reset(types.NewBytes(), 0)
	for i, acc := range accs {
		c := &o.op.Calls[i]
		v := &to.results[i]
		v.Reset(o.out.Fields[len(o.in.Fields)+i].Type, 0)
		if len(f.sel) == 0 {
			continue
		}
		order := f.read(o, i)
		update := func(from, until int) {
			f.pass = f.pass[:0]
			for k := from; k < until; k++ {
				if f.sel[k] >= folded && (c.Filter < 0 || isTrue(&f.filter, k)) {
					f.pass = append(f.pass, int32(k))
				}
			}
			if len(f.pass) > 0 {
				acc.Update(f.groups, f.args, order, f.pass)
			}
		}
		update(0, len(head))
		for k := len(head); k < len(f.sel); {
			end := k + 1
			for !c.Frame.Rows && end < len(f.sel) && o.equal(f.sel[k], f.sel[end]) {
				end++
			}
			update(k, end)
			acc.Emit(f.slot[:], c.Name, &f.one)
			for ; k < end; k++ {
				v.Append(&f.one, 0)
			}
		}
		v.PadOffsets()
	}
}

// again gives what the accumulators at hand say for each row of to.
func (f *overFold) again(o *OverChanges, slot int32, to *overRows) {
	f.slot[0] = slot
	for i, acc := range o.running {
		v := &to.results[i]
		v.Reset(o.out.Fields[len(o.in.Fields)+i].Type, 0)
		acc.Emit(f.slot[:], o.op.Calls[i].Name, &f.one)
		for range to.rows {
			v.Append(&f.one, 0)
		}
		v.PadOffsets()
	}
}

// read fills the arguments of a call, its filter and what orders its rows.
func (f *overFold) read(o *OverChanges, call int) *batch.Vec {
	c := &o.op.Calls[call]
	for len(f.args) < len(c.Args) {
		f.args = append(f.args, batch.Vec{})
	}
	f.args = f.args[:len(c.Args)]
	for i, col := range c.Args {
		f.args[i].Take(&o.rows.batch.Cols[col], f.sel)
	}
	if c.Filter >= 0 {
		f.filter.Take(&o.rows.batch.Cols[c.Filter], f.sel)
	}
	if !c.Bound.Ordered {
		return nil
	}
	if f.order.Len == 0 {
		f.order.Reset(types.NewBytes(), len(f.sel))
		for i, row := range f.sel {
			f.place = o.rows.appendPlace(f.place[:0], row)
			f.order.PutBytes(i, f.place)
		}
		f.order.PadOffsets()
	}
	return &f.order
}
