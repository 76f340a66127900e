package operator

import (
	"bytes"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
)

// call appends the results of a call for the rows that come now.
func (o *Over) call(i int, w *overWork, out *batch.Vec) {
	c := &o.op.Calls[i]
	for _, p := range w.parts {
		switch c.Func {
		case graph.OverAggregate:
			if o.running[i] != nil {
				o.run(i, w, p, out)
			} else {
				o.frames(i, w, p, out)
			}
		case graph.OverLag, graph.OverLead:
			o.shift(c, w, p, out)
		default:
			rankRows(c, w, p, out)
		}
	}
}

// args are the argument columns of a call over the work's rows, and what orders them.
func (o *Over) args(c *graph.OverCall, w *overWork) ([]batch.Vec, *batch.Vec) {
	args := make([]batch.Vec, len(c.Args))
	for i, col := range c.Args {
		args[i] = w.batch.Cols[col]
	}
	if !c.Bound.Ordered {
		return args, nil
	}
	if w.vec.Len == 0 {
		w.vec.Reset(types.NewBytes(), w.batch.Len)
		var buf []byte
		for i, row := range w.sel {
			buf = o.rows.appendPlace(buf[:0], row)
			w.vec.PutBytes(i, buf)
		}
		w.vec.PadOffsets()
	}
	return args, &w.vec
}

// passing are the rows of a span that a call's FILTER lets through.
func passing(c *graph.OverCall, w *overWork, from, to int, sel batch.Sel) batch.Sel {
	sel = sel[:0]
	if sel == nil {
		sel = batch.Sel{}
	}
	for row := from; row < to; row++ {
		if c.Filter < 0 || isTrue(&w.batch.Cols[c.Filter], row) {
			sel = append(sel, int32(row))
		}
	}
	return sel
}

// run folds row after row into the key's accumulator; rows that are equal in a RANGE
// go in together.
func (o *Over) run(i int, w *overWork, p overPart, out *batch.Vec) {
	c, acc := &o.op.Calls[i], o.running[i]
	args, order := o.args(c, w)
	if w.groups == nil {
		w.groups = make([]int32, w.batch.Len)
		for _, x := range w.parts {
			for row := x.from; row < x.to; row++ {
				w.groups[row] = x.slot
			}
		}
	}
	var one batch.Vec
	var sel batch.Sel
	for row := p.now; row < p.to; {
		end := row + 1
		if !c.Frame.Rows {
			end = w.peersEnd(p, row)
		}
		if sel = passing(c, w, row, end, sel); len(sel) > 0 {
			acc.Update(w.groups, args, order, sel)
		}
		acc.Emit([]int32{p.slot}, c.Name, &one)
		for ; row < end; row++ {
			out.Append(&one, 0)
		}
	}
}

// frames folds the frame of each row anew.
func (o *Over) frames(i int, w *overWork, p overPart, out *batch.Vec) {
	c, acc := &o.op.Calls[i], o.scratch[i]
	args, order := o.args(c, w)
	if w.zero == nil {
		w.zero = make([]int32, w.batch.Len)
	}
	var one batch.Vec
	var sel batch.Sel
	lastFrom, lastTo := -1, -1
	for row := p.now; row < p.to; row++ {
		from, to := w.frame(o, c.Frame, p, row)
		if from != lastFrom || to != lastTo {
			acc.Clear(0)
			if sel = passing(c, w, from, to, sel); len(sel) > 0 {
				acc.Update(w.zero, args, order, sel)
			}
			acc.Emit([]int32{0}, c.Name, &one)
			lastFrom, lastTo = from, to
		}
		out.Append(&one, 0)
	}
}

func (w *overWork) equal(a, b int) bool {
	return bytes.Equal(w.shared[a], w.shared[b])
}

// peersStart and peersEnd bound the rows equal to one by the order's columns.
func (w *overWork) peersStart(p overPart, row int) int {
	for row > p.from && w.equal(row-1, row) {
		row--
	}
	return row
}

func (w *overWork) peersEnd(p overPart, row int) int {
	end := row + 1
	for end < p.to && w.equal(row, end) {
		end++
	}
	return end
}

// frame is the rows of a row's frame.
func (w *overWork) frame(o *Over, f graph.Frame, p overPart, row int) (from, to int) {
	return max(w.bound(o, f.Start, f.Rows, true, p, row), p.from), min(w.bound(o, f.End, f.Rows, false, p, row), p.to)
}

// bound is the first row of a frame (start), or the row behind its last.
func (w *overWork) bound(o *Over, b graph.FrameBound, rows, start bool, p overPart, row int) int {
	behind := 1
	if start {
		behind = 0
	}
	size := int64(p.to - p.from + 1)
	switch {
	case b.Kind == graph.UnboundedPreceding:
		return p.from
	case b.Kind == graph.UnboundedFollowing:
		return p.to
	case rows && b.Kind == graph.Preceding:
		return max(row-int(min(b.Offset, size))+behind, p.from)
	case rows && b.Kind == graph.Following:
		return min(row+int(min(b.Offset, size))+behind, p.to)
	case rows:
		return row + behind
	case b.Kind == graph.CurrentRow && start:
		return w.peersStart(p, row)
	case b.Kind == graph.CurrentRow:
		return w.peersEnd(p, row)
	}
	return w.distance(o, b, start, p, row)
}

// distance finds a bound of RANGE by the value of the order column, ascending. NULL has
// no distance to anything but NULL.
func (w *overWork) distance(o *Over, b graph.FrameBound, start bool, p overPart, row int) int {
	v := &w.batch.Cols[o.op.Order[0].Column]
	if v.IsNull(row) {
		if start {
			return w.peersStart(p, row)
		}
		return w.peersEnd(p, row)
	}
	off := b.Offset
	if b.Kind == graph.Preceding {
		off = -off
	}
	limit := v.Int64(row) + off
	inside := func(r int) bool {
		if v.IsNull(r) {
			return false
		}
		if start {
			return v.Int64(r) >= limit
		}
		return v.Int64(r) <= limit
	}
	// Rows are looked at from the row itself outwards, as far as the frame reaches.
	at := row
	switch {
	case start && b.Kind == graph.Preceding:
		for at > p.from && inside(at-1) {
			at--
		}
	case start:
		for at < p.to && !inside(at) {
			at++
		}
	case b.Kind == graph.Preceding:
		for at++; at > p.from && !inside(at-1); at-- {
		}
	default:
		for at++; at < p.to && inside(at); at++ {
		}
	}
	return at
}

// shift is LAG and LEAD.
func (o *Over) shift(c *graph.OverCall, w *overWork, p overPart, out *batch.Vec) {
	for row := p.now; row < p.to; row++ {
		at := int64(row) - c.Offset
		if c.Func == graph.OverLead {
			at = int64(row) + c.Offset
		}
		switch {
		case at >= int64(p.from) && at < int64(p.to):
			out.Append(&w.batch.Cols[c.Args[0]], int(at))
		case c.Default >= 0:
			out.Append(&w.batch.Cols[c.Default], row)
		default:
			out.AppendNull()
		}
	}
}

// rankRows is the functions that go by a row's place among all rows of its key.
func rankRows(c *graph.OverCall, w *overWork, p overPart, out *batch.Vec) {
	n := p.to - p.from
	dense := int64(0)
	for row := p.from; row < p.to; {
		end := w.peersEnd(p, row)
		dense++
		rank := int64(row - p.from + 1)
		for ; row < end; row++ {
			out.Grow(1)
			at := out.Len - 1
			switch c.Func {
			case graph.OverRank:
				out.SetInt64(at, rank)
			case graph.OverDenseRank:
				out.SetInt64(at, dense)
			case graph.OverPercentRank:
				out.F64[at] = 0
				if n > 1 {
					out.F64[at] = float64(rank-1) / float64(n-1)
				}
			case graph.OverCumeDist:
				out.F64[at] = float64(end-p.from) / float64(n)
			case graph.OverNtile:
				out.SetInt64(at, ntile(int64(row-p.from), int64(n), c.Offset))
			}
		}
	}
}

// ntile is the number, from 1, of the part that row i of n belongs to: the first parts
// have one row more where they cannot all be equal.
func ntile(i, n, parts int64) int64 {
	size, larger := n/parts, n%parts
	if i < larger*(size+1) {
		return i/(size+1) + 1
	}
	return larger + (i-larger*(size+1))/size + 1
}
