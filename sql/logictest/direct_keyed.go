package logictest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
	rt "github.com/millrace/millrace/runtime/types"
)

// keyed evaluates a keyed operator over all its input and pushes the result
// into the chain behind it.
func (r *run) keyed(n *graph.Node) error {
	var out *collected
	var err error
	switch op := n.Op.(type) {
	case *graph.WindowAggregate:
		out, err = r.windowAggregate(n, op)
	case *graph.SessionAssign:
		out, err = r.sessionAssign(n, op)
	case *graph.Rank:
		out, err = r.rank(n, op)
	case *graph.Normalize:
		out, err = r.newest(n, op)
	case *graph.FirstRow:
		out, err = r.firstRow(n, op)
	case *graph.Over:
		out, err = r.over(n, op)
	case *graph.GroupAggregate:
		out, err = r.groupAggregate(n, op)
	case *graph.WideMerge:
		out, err = r.wideMerge(n, op)
	case *graph.Join:
		out, err = r.join(n, op)
	case *graph.SetOperation:
		out, err = r.setOperation(n, op)
	case *graph.Sort:
		out = r.sort(n, op)
	case *graph.Limit:
		out = r.limit(n, op)
	default:
		err = fmt.Errorf("%s is not known here", graph.OpName(n.Op))
	}
	if err != nil {
		return err
	}
	chain, err := operator.NewChain(r.job, n.ID, r.lookups)
	if err != nil {
		return err
	}
	return r.push(chain, out.batch())
}

func (r *run) input(n *graph.Node, i int) *collected {
	c := r.inputs[n.Inputs[i]]
	if c == nil {
		c = newCollected(r.job.Nodes[n.Inputs[i]].Schema)
	}
	return c
}

// groups numbers the distinct keys of an input.
type groups struct {
	index map[string]int32
	first []int32 // a row of each group
	of    []int32 // by row; -1: the row is not in any
}

func newGroups(rows int) *groups {
	return &groups{index: map[string]int32{}, of: slices.Repeat([]int32{-1}, rows)}
}

func (g *groups) add(row int, key []byte) {
	id, ok := g.index[string(key)]
	if !ok {
		id = int32(len(g.first))
		g.index[string(key)] = id
		g.first = append(g.first, int32(row))
	}
	g.of[row] = id
}

// accumulate folds rows into one accumulator an aggregate. With Restart the
// first half goes through saved state.
func (r *run) accumulate(n *graph.Node, in *collected, g *groups, aggs []graph.Aggregate, timeAt int) ([]fn.Accumulator, error) {
	b := in.batch()
	var live batch.Sel
	for row := range in.n {
		if g.of[row] >= 0 {
			live = append(live, int32(row))
		}
	}
	args := make([][]batch.Vec, len(aggs))
	sels := make([]batch.Sel, len(aggs))
	dead := map[int32]bool{}
	for i, a := range aggs {
		exprs := a.Args
		if a.Filter != nil {
			exprs = append(exprs[:len(exprs):len(exprs)], a.Filter)
		}
		args[i] = make([]batch.Vec, len(exprs))
		if len(exprs) > 0 {
			p, err := expr.Compile(exprs, b.Schema, expr.Options{NoSharing: r.o.NoSharing})
			if err != nil {
				return nil, err
			}
			own := make([]batch.Vec, len(exprs))
			p.Eval(r.ec, b, live, own)
			for k := range own {
				args[i][k].Take(&own[k], nil)
			}
		}
		for _, row := range live {
			if e := argError(args[i], row); e != nil && !dead[row] {
				dead[row] = true
				if err := r.failed(r.policyBehind(n.ID), n, []batch.ValueError{*e}); err != nil {
					return nil, err
				}
			}
		}
	}
	order := r.orderKeys(in, timeAt)
	out := make([]fn.Accumulator, len(aggs))
	for i, a := range aggs {
		for _, row := range live {
			keep := !dead[row]
			if a.Filter != nil {
				f := &args[i][len(a.Args)]
				keep = keep && !f.IsNull(int(row)) && f.Bool(int(row))
			}
			if keep {
				sels[i] = append(sels[i], row)
			}
		}
		out[i] = r.fold(a, g, args[i][:len(a.Args)], order, sels[i])
	}
	return out, nil
}

func argError(args []batch.Vec, row int32) *batch.ValueError {
	for k := range args {
		if e := args[k].DeepErr(int(row)); e != nil {
			return e
		}
	}
	return nil
}

func (r *run) fold(a graph.Aggregate, g *groups, args []batch.Vec, order *batch.Vec, sel batch.Sel) fn.Accumulator {
	acc := a.Bound.New()
	acc.Resize(len(g.first))
	if sel == nil {
		sel = batch.Sel{}
	}
	if !r.o.Restart {
		acc.Update(g.of, args, order, sel)
		return acc
	}
	half := len(sel) / 2
	acc.Update(g.of, args, order, sel[:half])
	restored := a.Bound.New()
	restored.Resize(len(g.first))
	for id := range g.first {
		if err := restored.MergeState(id, acc.AppendState(nil, id)); err != nil {
			panic("BUG: state of " + a.Text + ": " + err.Error())
		}
	}
	restored.Update(g.of, args, order, sel[half:])
	return restored
}

// orderKeys orders rows by row time, then by position.
func (r *run) orderKeys(in *collected, timeAt int) *batch.Vec {
	v := &batch.Vec{}
	v.Reset(rt.NewBytes(), in.n)
	for row := range in.n {
		var key []byte
		ts := int64(0)
		if timeAt >= 0 && !in.cols[timeAt].IsNull(row) {
			ts = in.cols[timeAt].Int64(row)
		}
		key = binary.BigEndian.AppendUint64(key, uint64(ts)^(1<<63))
		key = append(key, in.position[row]...)
		v.PutBytes(row, key)
	}
	v.PadOffsets()
	return v
}

// key is the encoded key of a row; a key that is an error fails the row.
func (r *run) key(n *graph.Node, in *collected, keys []int, row int) ([]byte, bool, error) {
	vecs := make([]*batch.Vec, len(keys))
	for i, k := range keys {
		vecs[i] = &in.cols[k]
		if e := vecs[i].DeepErr(row); e != nil {
			return nil, false, r.failed(r.policyBehind(n.ID), n, []batch.ValueError{*e})
		}
	}
	return batch.AppendKey(nil, vecs, row), true, nil
}

func (r *run) groupAggregate(n *graph.Node, op *graph.GroupAggregate) (*collected, error) {
	in := r.input(n, 0)
	g := newGroups(in.n)
	for row := range in.n {
		key, ok, err := r.key(n, in, op.Keys, row)
		if err != nil {
			return nil, err
		}
		if ok {
			g.add(row, key)
		}
	}
	global := len(op.Keys) == 0
	if global && len(g.first) == 0 {
		g.first = []int32{-1} // one row over no input
	}
	accs, err := r.accumulate(n, in, g, op.Aggregates, r.job.Nodes[n.Inputs[0]].TimeColumn)
	if err != nil {
		return nil, err
	}
	out := newCollected(n.Schema)
	r.emit(out, in, g, op.Keys, op.Aggregates, accs)
	return out, nil
}

// emit writes keys and results of all groups.
func (r *run) emit(out, in *collected, g *groups, keys []int, aggs []graph.Aggregate, accs []fn.Accumulator) {
	ids := make([]int32, len(g.first))
	for i := range ids {
		ids[i] = int32(i)
	}
	for i, k := range keys {
		for _, row := range g.first {
			out.cols[i].Append(&in.cols[k], int(row))
		}
	}
	for i := range aggs {
		var v batch.Vec
		accs[i].Emit(ids, aggs[i].Text, &v)
		out.cols[len(keys)+i].AppendVec(&v)
	}
	out.n = len(ids)
	out.watermark = slices.Repeat([]int64{batch.NoWatermark}, out.n)
	out.position = make([][]byte, out.n)
}

// windowOf puts a row into its window, unless it is late or has no time.
func (r *run) windowOf(n *graph.Node, in *collected, ws *operator.Windows, timeAt, row int, lateness int64) (operator.Span, bool, error) {
	v := &in.cols[timeAt]
	if v.IsNull(row) {
		e := v.Err(row)
		if e == nil {
			e = operator.NullEventTime(in.schema.Fields[timeAt].Name)
		}
		return operator.Span{}, false, r.failed(r.policyBehind(n.ID), n, []batch.ValueError{*e})
	}
	s := ws.Of(v.Int64(row))
	if !r.job.Batch && in.watermark[row] != batch.NoWatermark && in.watermark[row] >= s.EndTime-1+lateness {
		r.out.Late++
		return s, false, nil
	}
	return s, true, nil
}

func (r *run) sort(n *graph.Node, op *graph.Sort) *collected {
	in := r.input(n, 0)
	rows := make([]int, in.n)
	for i := range rows {
		rows[i] = i
	}
	sort.SliceStable(rows, func(a, b int) bool { return r.compare(in, op.Keys, rows[a], rows[b]) < 0 })
	return take(n.Schema, in, cut(rows, op.Offset, op.Limit))
}

func (r *run) limit(n *graph.Node, op *graph.Limit) *collected {
	in := r.input(n, 0)
	rows := make([]int, in.n)
	for i := range rows {
		rows[i] = i
	}
	return take(n.Schema, in, cut(rows, op.Offset, op.N))
}

func cut(rows []int, offset, limit int64) []int {
	rows = rows[min(int(offset), len(rows)):]
	if limit >= 0 && int64(len(rows)) > limit {
		rows = rows[:limit]
	}
	return rows
}

func take(s *batch.Schema, in *collected, rows []int) *collected {
	out := newCollected(s)
	b := in.batch()
	for _, row := range rows {
		out.add(b, int32(row))
	}
	out.position = make([][]byte, out.n)
	return out
}

func (r *run) compare(in *collected, keys []graph.SortKey, a, b int) int {
	for _, k := range keys {
		v := &in.cols[k.Column]
		na, nb := v.IsNull(a), v.IsNull(b)
		if na || nb {
			if na == nb {
				continue
			}
			if na == k.NullsLast {
				return 1
			}
			return -1
		}
		c := compareValues(v, a, b)
		if k.Desc {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func compareValues(v *batch.Vec, a, b int) int {
	switch v.Type.Physical() {
	case rt.PhysBool:
		x, y := 0, 0
		if v.Bool(a) {
			x = 1
		}
		if v.Bool(b) {
			y = 1
		}
		return cmp.Compare(x, y)
	case rt.PhysFloat32, rt.PhysFloat64:
		return cmp.Compare(v.Float64(a), v.Float64(b))
	case rt.PhysBytes:
		return slices.Compare(v.Bytes(a), v.Bytes(b))
	case rt.PhysDecimal128:
		return v.Decimal(a).Cmp(v.Decimal(b))
	}
	return cmp.Compare(v.Int64(a), v.Int64(b))
}
