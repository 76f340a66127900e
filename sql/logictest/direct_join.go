package logictest

import (
	"strconv"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
	rt "github.com/millrace/millrace/runtime/types"
)

// verdict is what a condition says of a pair of rows.
type verdict struct {
	null, truth bool
	err         *batch.ValueError
}

// pairs evaluates a join by its definition: every row of the left with every row
// of the right.
type pairs struct {
	r           *run
	n           *graph.Node
	op          *graph.Join
	left, right *collected
	schema      *batch.Schema
	prog        *expr.Program
	out         *collected
}

// live drops the rows of an input that are late or without a time, and those whose
// key is an error; of a mark join's left these stay.
func (r *run) live(n *graph.Node, op *graph.Join, side int) (*collected, error) {
	in := r.input(n, side)
	out := newCollected(in.schema)
	b := in.batch()
	inTime, err := r.joinInTime(n, op, in, side)
	if err != nil {
		return nil, err
	}
	for row := range in.n {
		ok := inTime[row]
		if ok && (side == 1 || op.Kind != graph.MarkJoin) {
			if _, ok, err = r.key(n, in, op.InputKeys(side), row); err != nil {
				return nil, err
			}
		}
		if ok {
			out.add(b, int32(row))
			out.kinds[out.n-1] = in.kinds[row]
		}
	}
	return out, nil
}

// joinInTime says which rows of an input a window, interval or temporal join takes. A source
// row that all its windows refuse is late, once.
func (r *run) joinInTime(n *graph.Node, op *graph.Join, in *collected, side int) ([]bool, error) {
	out := make([]bool, in.n)
	taken, refused := map[string]bool{}, map[string]bool{}
	for row := range in.n {
		end := int64(0)
		source := string(in.position[row])
		switch {
		case op.Windows != nil:
			end = r.givenWindow(op.Windows[side], in, row).EndTime
		case op.TimeColumn(side) >= 0:
			at := op.TimeColumn(side)
			ok, err := r.hasTime(n, in, at, row)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			end = rt.FloorDiv(in.cols[at].Int64(row), in.cols[at].Type.UnitsPerSecond()/1000) + 1
			source = strconv.Itoa(row)
		default:
			out[row] = true
			continue
		}
		if r.late(in, row, end, 0) {
			refused[source] = true
			continue
		}
		out[row], taken[source] = true, true
	}
	for source := range refused {
		if !taken[source] {
			r.out.Late++
		}
	}
	return out, nil
}

func (r *run) join(n *graph.Node, op *graph.Join) (*collected, error) {
	p := &pairs{r: r, n: n, op: op, out: newCollected(n.Schema)}
	var err error
	if p.left, err = r.live(n, op, 0); err != nil {
		return nil, err
	}
	if p.right, err = r.live(n, op, 1); err != nil {
		return nil, err
	}
	p.schema = graph.PairSchema(p.left.schema, p.right.schema)
	if op.Condition != nil {
		if p.prog, err = expr.Compile([]expr.Expr{op.Condition}, p.schema, expr.Options{NoSharing: r.o.NoSharing}); err != nil {
			return nil, err
		}
	}
	matched := make([]bool, p.right.n)
	for l := range p.left.n {
		if err := p.row(l, matched); err != nil {
			return nil, err
		}
	}
	if op.Kind.KeepsRight() {
		for i := range matched {
			if !matched[i] {
				p.give(-1, i, nil)
			}
		}
	}
	p.out.position = make([][]byte, p.out.n)
	return p.out, nil
}

// row pairs a left row with the whole right side.
func (p *pairs) row(l int, matched []bool) error {
	var sum verdict
	found := -1
	several := false
	version := -1
	if p.op.Temporal != nil {
		version = p.version(l)
	}
	for i := range p.right.n {
		if p.op.Temporal != nil && i != version {
			continue
		}
		v := p.verdict(l, i)
		if v.err != nil && p.op.Kind <= graph.FullJoin {
			if err := p.r.failed(p.r.policyBehind(p.n.ID), p.n, []batch.ValueError{*v.err}); err != nil {
				return err
			}
			matched[i], found = true, i
			continue
		}
		sum.null, sum.truth = sum.null || v.null, sum.truth || v.truth
		if sum.err == nil {
			sum.err = v.err
		}
		if !v.truth {
			continue
		}
		matched[i], several, found = true, found >= 0, i
		if p.op.Kind <= graph.FullJoin {
			p.give(l, i, nil)
		}
	}
	if sum.truth {
		sum.null, sum.err = false, nil
	}
	switch p.op.Kind {
	case graph.LeftJoin, graph.FullJoin:
		if found < 0 {
			p.give(l, -1, nil)
		}
	case graph.SemiJoin, graph.AntiJoin:
		if sum.err != nil {
			return p.r.failed(p.r.policyBehind(p.n.ID), p.n, []batch.ValueError{*sum.err})
		}
		if sum.truth == (p.op.Kind == graph.SemiJoin) {
			p.give(l, -2, nil)
		}
	case graph.MarkJoin:
		p.give(l, -2, &sum)
	case graph.SingleJoin:
		if several && sum.err == nil {
			sum.err = &batch.ValueError{Code: operator.CodeSubqueryRows, Message: "more than one row"}
		}
		if sum.err != nil {
			found = -1
		}
		p.give(l, found, &sum)
	}
	return nil
}

// version is the right row of a temporal join for a left one: of its key the one with
// the greatest time up to the left row's, of equal ones the last; -1: none.
func (p *pairs) version(l int) int {
	out := -1
	left, right := &p.left.cols[p.op.Temporal.LeftTime], &p.right.cols[p.op.Temporal.RightTime]
	ms := func(v *batch.Vec, row int) int64 {
		return rt.FloorDiv(v.Int64(row), v.Type.UnitsPerSecond()/1000)
	}
	for i := range p.right.n {
		at := ms(right, i)
		if at <= ms(left, l) && (out < 0 || at >= ms(right, out)) && p.keys(l, i).truth {
			out = i
		}
	}
	if out >= 0 && p.right.kinds[out] == batch.Delete {
		return -1
	}
	return out
}

// keys compares the keys.
func (p *pairs) keys(l, i int) verdict {
	out := verdict{truth: true}
	for k, key := range p.op.Keys {
		a, b := &p.left.cols[key.Left], &p.right.cols[key.Right]
		an, bn := a.IsNull(l), b.IsNull(i)
		operand := p.op.NullAware && k == len(p.op.Keys)-1
		switch {
		case a.Err(l) != nil && operand:
			return verdict{err: a.Err(l)}
		case an && bn && key.NullSafe:
		case an || bn:
			out = verdict{null: operand}
		case !batch.ValueEqual(a, l, b, i) || isNaN(a, l):
			return verdict{}
		}
		if !out.truth && !out.null {
			return out
		}
	}
	return out
}

// verdict compares the keys and evaluates the condition.
func (p *pairs) verdict(l, i int) verdict {
	out := p.keys(l, i)
	if out.err != nil {
		return out
	}
	if p.prog == nil || !out.truth {
		return out
	}
	b := &batch.Batch{Schema: p.schema, Len: 1, Cols: make([]batch.Vec, len(p.schema.Fields))}
	for c := range b.Cols {
		side, at, row := p.left, c, l
		if c >= len(p.left.cols) {
			side, at, row = p.right, c-len(p.left.cols), i
		}
		b.Cols[c].Take(&side.cols[at], batch.Sel{int32(row)})
	}
	res := make([]batch.Vec, 1)
	p.prog.Eval(p.r.ec, b, nil, res)
	if e := res[0].Err(0); e != nil {
		return verdict{err: e}
	}
	if res[0].IsNull(0) {
		return verdict{null: true}
	}
	return verdict{truth: res[0].Bool(0)}
}

func isNaN(v *batch.Vec, row int) bool {
	switch v.Type.Physical() {
	case rt.PhysFloat32, rt.PhysFloat64:
		x := v.Float64(row)
		return x != x
	}
	return false
}

// give appends a row of the result; -1 is a side of NULLs, -2 one that has no
// columns in it.
func (p *pairs) give(l, i int, mark *verdict) {
	width := len(p.left.cols)
	for c := range p.out.cols {
		v := &p.out.cols[c]
		switch {
		case c < width && l >= 0:
			v.Append(&p.left.cols[c], l)
		case c >= width && i >= 0:
			v.Append(&p.right.cols[c-width], i)
		default:
			v.AppendNull()
			at := v.Len - 1
			if mark != nil && mark.err != nil {
				v.SetErr(at, mark.err.Code, mark.err.Where, mark.err.Message)
			} else if mark != nil && i == -2 && !mark.null {
				v.Valid.Set(at)
				v.Bools.Put(at, mark.truth)
			}
		}
		v.PadOffsets()
	}
	p.out.watermark = append(p.out.watermark, batch.NoWatermark)
	p.out.n++
}

// setOperation counts the copies of each row on both sides.
func (r *run) setOperation(n *graph.Node, op *graph.SetOperation) (*collected, error) {
	all := make([]int, len(n.Schema.Fields))
	for i := range all {
		all[i] = i
	}
	type copies struct {
		side  *collected
		row   int
		count [2]int
	}
	index := map[string]*copies{}
	var order []*copies
	for side := range 2 {
		in := r.input(n, side)
		for row := range in.n {
			key, ok, err := r.key(n, in, all, row)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			c := index[string(key)]
			if c == nil {
				c = &copies{side: in, row: row}
				index[string(key)] = c
				order = append(order, c)
			}
			c.count[side]++
		}
	}
	out := newCollected(n.Schema)
	for _, c := range order {
		left, right := c.count[0], c.count[1]
		times := 0
		switch {
		case op.Kind == graph.Intersect && op.All:
			times = min(left, right)
		case op.Kind == graph.Intersect && left > 0 && right > 0:
			times = 1
		case op.Kind == graph.Except && op.All:
			times = max(left-right, 0)
		case op.Kind == graph.Except && left > 0 && right == 0:
			times = 1
		}
		for range times {
			out.add(c.side.batch(), int32(c.row))
		}
	}
	out.position = make([][]byte, out.n)
	return out, nil
}
