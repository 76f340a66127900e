package logictest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
	rt "github.com/millrace/millrace/runtime/types"
)

// offlineRows are the rows of an offline branch, of all generations, grouped by key and
// generation.
type offlineRows struct {
	in    *collected
	g     *groups
	of    map[string]int // group by key and generation
	names []string       // generation by group
}

// offlineTable reads the table of an offline branch, row by row.
func (r *run) offlineTable(n *graph.Node, b *graph.OfflineBranch) (*offlineRows, error) {
	read := b.Table.Schema(b.Read)
	all := newCollected(read)
	if err := r.readAll(b, all); err != nil {
		return nil, err
	}
	o := &offlineRows{in: newCollected(b.Schema), of: map[string]int{}}
	var generations []string
	for row := range all.n {
		one := newCollected(read)
		one.add(all.batch(), int32(row))
		if b.Filter != nil {
			v, err := r.evalOne(b.Filter, one)
			if err != nil {
				return nil, err
			}
			if v.IsNull(0) || !v.Bool(0) {
				continue
			}
		}
		out := newCollected(b.Schema)
		for i, e := range b.Exprs {
			v, err := r.evalOne(e, one)
			if err != nil {
				return nil, err
			}
			out.cols[i].Append(v, 0)
		}
		out.n = 1
		var order []byte
		for i := range out.cols {
			order = batch.AppendValue(order, &out.cols[i], 0)
		}
		o.in.addAt(out.batch(), 0, order)
		for i, c := range b.Read {
			if c == b.Generation {
				generations = append(generations, one.cols[i].Text(0))
			}
		}
	}
	o.g = newGroups(o.in.n)
	for row := range o.in.n {
		key, ok, err := r.key(n, o.in, b.Keys, row)
		if err != nil || !ok {
			return nil, errors.Join(err, errors.New("the key of an offline branch is an error"))
		}
		null := false
		for _, k := range b.Keys {
			null = null || o.in.cols[k].IsNull(row)
		}
		if null {
			continue
		}
		name := string(key) + "\x00" + generations[row]
		before := len(o.g.first)
		o.g.add(row, []byte(name))
		if len(o.g.first) > before {
			o.of[name] = before
			o.names = append(o.names, generations[row])
		}
	}
	return o, nil
}

func (r *run) readAll(b *graph.OfflineBranch, into *collected) error {
	src, err := b.Connector.OpenSource(r.ctx, b.Table)
	if err != nil {
		return err
	}
	defer src.Close()
	parts, err := src.Partitions(r.ctx)
	if err != nil {
		return err
	}
	starts, err := src.Start(r.ctx, parts)
	if err != nil {
		return err
	}
	ends, err := src.End(r.ctx, parts)
	if err != nil {
		return err
	}
	var splits []connector.Split
	for i := range parts {
		splits = append(splits, connector.Split{Number: int32(i), From: starts[i], End: ends[i]})
	}
	reader, err := src.Open(r.ctx, splits, b.Read, func() {})
	if err != nil {
		return err
	}
	defer reader.Close()
	for {
		var in batch.Batch
		err := reader.Next(r.ctx, &in, r.o.BatchRows, 1<<20)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		for row := range in.Len {
			into.add(&in, int32(row))
		}
	}
}

// evalOne evaluates an expression over one row.
func (r *run) evalOne(e expr.Expr, in *collected) (*batch.Vec, error) {
	p, err := expr.Compile([]expr.Expr{e}, in.schema, expr.Options{NoSharing: r.o.NoSharing})
	if err != nil {
		return nil, err
	}
	out := make([]batch.Vec, 1)
	p.Eval(r.ec, in.batch(), nil, out)
	if e := out[0].DeepErr(0); e != nil {
		return nil, fmt.Errorf("%s: %s", e.Code, e.Message)
	}
	return out[0].Clone(), nil
}

// generationOf names the generation of a window.
func (r *run) generationOf(b *graph.OfflineBranch, s operator.Span) (string, error) {
	ts := rt.NewTimestamp(3).NotNull()
	w := newCollected(&batch.Schema{Fields: []rt.Field{{Name: "window_start", Type: ts}, {Name: "window_end", Type: ts}}})
	putWindow(w.cols, s)
	w.n = 1
	v, err := r.evalOne(b.Value, w)
	if err != nil {
		return "", err
	}
	return v.Text(0), nil
}

// createRows adds the rows that an offline branch creates: in each window that a row of
// another branch is in.
func (r *run) createRows(op *graph.WideMerge, i int, o *offlineRows, w *wideRows) error {
	b := &op.Offline[i]
	for _, s := range distinct(w.spans) {
		name, err := r.generationOf(b, s)
		if err != nil {
			return err
		}
		for g, first := range o.g.first {
			if o.names[g] != name {
				continue
			}
			key, _, err := r.key(nil, o.in, b.Keys, int(first))
			if err != nil {
				return err
			}
			w.row(binary.BigEndian.AppendUint64(key, uint64(s.Start)), s, o.in, b.Keys, int(first))
		}
	}
	return nil
}

// offline gives the group that belongs to each row of the wide table, -1: none.
func (r *run) offline(op *graph.WideMerge, i int, o *offlineRows, w *wideRows) ([]int, error) {
	b, place := &op.Offline[i], slices.Index(w.order, -1-i)
	out := make([]int, len(w.spans))
	for row, s := range w.spans {
		name, err := r.generationOf(b, s)
		if err != nil {
			return nil, err
		}
		vecs := make([]*batch.Vec, len(w.keys))
		for k := range w.keys {
			vecs[k] = &w.keys[k]
		}
		g, ok := o.of[string(batch.AppendKey(nil, vecs, row))+"\x00"+name]
		if !ok {
			g = -1
		}
		out[row] = g
		w.seen[row][place] = ok
	}
	return out, nil
}

func distinct(spans []operator.Span) []operator.Span {
	var out []operator.Span
	seen := map[operator.Span]bool{}
	for _, s := range spans {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// offlineColumn fills a column of an offline branch.
func (r *run) offlineColumn(n *graph.Node, c *graph.WideColumn, o *offlineRows, groupOf []int, lib *fn.Library, out *batch.Vec) error {
	agg, ok := lib.Aggregate(ruleNames[c.Rule])
	if !ok {
		return fmt.Errorf("no aggregate %s", ruleNames[c.Rule])
	}
	var args []fn.Arg
	var exprs []expr.Expr
	if c.Input >= 0 {
		args = append(args, fn.Arg{Type: o.in.schema.Fields[c.Input].Type})
		exprs = append(exprs, expr.NewColumn(o.in.schema, c.Input))
	}
	bound, err := agg.Bind(args, fn.AggOptions{})
	if err != nil {
		return err
	}
	for i := range exprs {
		if exprs[i], err = expr.Implicit(exprs[i], bound.Params[i]); err != nil {
			return err
		}
	}
	accs, err := r.accumulate(n, o.in, o.g, []graph.Aggregate{{Name: c.Name, Text: c.Name, Bound: bound, Args: exprs}}, -1)
	if err != nil {
		return err
	}
	for _, g := range groupOf {
		if g < 0 {
			out.AppendNull()
			continue
		}
		var v batch.Vec
		accs[0].Emit([]int32{int32(g)}, c.Name, &v)
		out.Append(&v, 0)
	}
	return nil
}
