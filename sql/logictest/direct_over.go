package logictest

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/graph"
	rt "github.com/millrace/millrace/runtime/types"
)

// ranked is the rows of an input by key, in order; rows of equal keys go by where
// they come from.
type ranked struct {
	in   *collected
	keys [][]int
}

// byKey sorts the whole rows of an input, of which take says which are not late.
func (r *run) byKey(n *graph.Node, keys []int, order []graph.SortKey, take func(in *collected, row int) (bool, error)) (*ranked, error) {
	in, err := r.wholeRows(n, r.input(n, 0))
	if err != nil {
		return nil, err
	}
	out := &ranked{in: in}
	index := map[string]int{}
	for row := range in.n {
		ok, err := take(in, row)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		key, _, err := r.key(n, in, keys, row)
		if err != nil {
			return nil, err
		}
		at, known := index[string(key)]
		if !known {
			at = len(out.keys)
			index[string(key)] = at
			out.keys = append(out.keys, nil)
		}
		out.keys[at] = append(out.keys[at], row)
	}
	for _, rows := range out.keys {
		slices.SortStableFunc(rows, func(a, b int) int {
			return cmp.Or(r.compare(in, order, a, b), bytes.Compare(place(in, a), place(in, b)), bytes.Compare(encoded(in, a), encoded(in, b)))
		})
	}
	return out, nil
}

// place is where a row of a topic comes from; rows of operators have none.
func place(in *collected, row int) []byte {
	if p := in.position[row]; len(p) == 16 {
		return p
	}
	return nil
}

func encoded(in *collected, row int) (out []byte) {
	for c := range in.cols {
		out = batch.AppendValue(out, &in.cols[c], row)
	}
	return out
}

// notLate counts rows that came after their partition had passed their time.
func (r *run) notLate(n *graph.Node, timeAt int) func(in *collected, row int) (bool, error) {
	return func(in *collected, row int) (bool, error) {
		if timeAt < 0 {
			return true, nil
		}
		if ok, err := r.hasTime(n, in, timeAt, row); !ok {
			return false, err
		}
		ms := rt.FloorDiv(in.cols[timeAt].Int64(row), in.schema.Fields[timeAt].Type.UnitsPerSecond()/1000)
		if r.late(in, row, ms+1, 0) {
			r.out.Late++
			return false, nil
		}
		return true, nil
	}
}

func (c *collected) copyRow(in *collected, row int) {
	for i := range in.cols {
		c.cols[i].Append(&in.cols[i], row)
	}
	c.position, c.watermark = append(c.position, nil), append(c.watermark, batch.NoWatermark)
	c.n++
}

func (r *run) firstRow(n *graph.Node, op *graph.FirstRow) (*collected, error) {
	x, err := r.byKey(n, op.Keys, []graph.SortKey{{Column: op.Time}}, r.notLate(n, op.Time))
	if err != nil {
		return nil, err
	}
	out := newCollected(n.Schema)
	for _, rows := range x.keys {
		out.copyRow(x.in, rows[0])
		if op.Number {
			appendInt(&out.cols[len(x.in.cols)], 1)
		}
	}
	return out, nil
}

func appendInt(v *batch.Vec, x int64) {
	v.Grow(1)
	v.SetInt64(v.Len-1, x)
}

func (r *run) rank(n *graph.Node, op *graph.Rank) (*collected, error) {
	keys := op.Keys
	taken, refused := map[string]bool{}, map[string]bool{}
	take := func(*collected, int) (bool, error) { return true, nil }
	if op.Window.Kind == graph.Given {
		keys = append([]int{op.Window.Start, op.Window.End}, keys...)
		take = func(in *collected, row int) (bool, error) {
			source := string(in.position[row])
			if r.late(in, row, r.givenWindow(op.Window, in, row).EndTime, 0) {
				refused[source] = true
				return false, nil
			}
			taken[source] = true
			return true, nil
		}
	}
	x, err := r.byKey(n, keys, op.Order, take)
	if err != nil {
		return nil, err
	}
	for source := range refused {
		if !taken[source] {
			r.out.Late++
		}
	}
	out := newCollected(n.Schema)
	for _, rows := range x.keys {
		if op.Latest {
			k := 1
			for k < len(rows) && r.compare(x.in, op.Order, rows[0], rows[k]) == 0 {
				k++
			}
			slices.Reverse(rows[:k])
		}
		for i, row := range rows[:min(int64(len(rows)), op.N)] {
			out.copyRow(x.in, row)
			if op.Number {
				appendInt(&out.cols[len(x.in.cols)], int64(i+1))
			}
		}
	}
	return out, nil
}

// over evaluates each call for each row from all rows of its key.
func (r *run) over(n *graph.Node, op *graph.Over) (*collected, error) {
	x, err := r.byKey(n, op.Keys, op.Order, r.notLate(n, op.Time))
	if err != nil {
		return nil, err
	}
	out := newCollected(n.Schema)
	for _, rows := range x.keys {
		for i := range rows {
			out.copyRow(x.in, rows[i])
			for c := range op.Calls {
				r.overCall(x.in, op, &op.Calls[c], rows, i, &out.cols[len(x.in.cols)+c])
			}
		}
	}
	return out, nil
}

func (r *run) overCall(in *collected, op *graph.Over, c *graph.OverCall, rows []int, i int, out *batch.Vec) {
	same := func(a, b int) bool { return r.compare(in, op.Order, rows[a], rows[b]) == 0 }
	before, equal, groups := 0, 0, 0
	for k := range rows {
		switch cmp := r.compare(in, op.Order, rows[k], rows[i]); {
		case cmp < 0:
			before++
			if k == 0 || !same(k-1, k) {
				groups++
			}
		case cmp == 0:
			equal++
		}
	}
	switch c.Func {
	case graph.OverRank:
		appendInt(out, int64(before+1))
	case graph.OverDenseRank:
		appendInt(out, int64(groups+1))
	case graph.OverPercentRank:
		out.Grow(1)
		out.F64[out.Len-1] = float64(before) / float64(max(len(rows)-1, 1))
	case graph.OverCumeDist:
		out.Grow(1)
		out.F64[out.Len-1] = float64(before+equal) / float64(len(rows))
	case graph.OverNtile:
		// Deal the rows out: the first parts get one more.
		part, left := int64(1), int64(0)
		for k := int64(0); k <= int64(i); k++ {
			size := int64(len(rows)) / c.Offset
			if part <= int64(len(rows))%c.Offset {
				size++
			}
			if left == size {
				part, left = part+1, 0
			}
			left++
		}
		appendInt(out, part)
	case graph.OverLag, graph.OverLead:
		at := i - int(c.Offset)
		if c.Func == graph.OverLead {
			at = i + int(c.Offset)
		}
		switch {
		case at >= 0 && at < len(rows):
			out.Append(&in.cols[c.Args[0]], rows[at])
		case c.Default >= 0:
			out.Append(&in.cols[c.Default], rows[i])
		default:
			out.AppendNull()
		}
	default:
		r.overAggregate(in, op, c, rows, i, out)
	}
}

// overAggregate tests each row of the key for being in the frame.
func (r *run) overAggregate(in *collected, op *graph.Over, c *graph.OverCall, rows []int, i int, out *batch.Vec) {
	var sel batch.Sel
	position := &batch.Vec{}
	position.Reset(rt.NewBytes(), in.n)
	places := make([][]byte, in.n)
	for k, row := range rows {
		places[row] = []byte{byte(k >> 16), byte(k >> 8), byte(k)}
		if !r.inFrame(in, op, c.Frame, rows, i, k) {
			continue
		}
		if c.Filter >= 0 && (in.cols[c.Filter].IsNull(row) || !in.cols[c.Filter].Bool(row)) {
			continue
		}
		sel = append(sel, int32(row))
	}
	slices.Sort(sel)
	for row, p := range places {
		position.PutBytes(row, p)
	}
	position.PadOffsets()
	args := make([]batch.Vec, len(c.Args))
	for k, col := range c.Args {
		args[k] = in.cols[col]
	}
	acc := c.Bound.New()
	acc.Resize(1)
	if len(sel) > 0 {
		acc.Update(make([]int32, in.n), args, position, sel)
	}
	var one batch.Vec
	acc.Emit([]int32{0}, c.Name, &one)
	out.Append(&one, 0)
}

func (r *run) inFrame(in *collected, op *graph.Over, f graph.Frame, rows []int, i, k int) bool {
	// after says how the row lies to a bound: 0 on it.
	after := func(b graph.FrameBound) int {
		off := b.Offset
		switch b.Kind {
		case graph.UnboundedPreceding:
			return 1
		case graph.UnboundedFollowing:
			return -1
		case graph.CurrentRow:
			if f.Rows {
				return cmp.Compare(k, i)
			}
			return r.compare(in, op.Order, rows[k], rows[i])
		case graph.Preceding:
			off = -off
		}
		if f.Rows {
			return cmp.Compare(int64(k), int64(i)+off)
		}
		v := &in.cols[op.Order[0].Column]
		if v.IsNull(rows[k]) || v.IsNull(rows[i]) {
			return r.compare(in, op.Order, rows[k], rows[i])
		}
		return cmp.Compare(v.Int64(rows[k]), v.Int64(rows[i])+off)
	}
	return after(f.Start) >= 0 && after(f.End) <= 0
}
