package logictest

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
)

var ruleNames = map[graph.Rule]string{
	graph.RuleLast: "LAST_VALUE", graph.RuleFirst: "FIRST_VALUE", graph.RuleSum: "SUM",
	graph.RuleCount: "COUNT", graph.RuleMin: "MIN", graph.RuleMax: "MAX",
	graph.RuleAvg: "AVG", graph.RuleCollect: "ARRAY_AGG",
}

// wideRows are the rows of a wide table being built: one a key and window.
type wideRows struct {
	index map[string]int
	keys  []batch.Vec
	spans []operator.Span
	seen  [][]bool // by row, by branch as declared
	order []int    // see graph.WideMerge.Order
}

// row finds or makes the row of a key and window.
func (w *wideRows) row(key []byte, s operator.Span, in *collected, keys []int, row int) int {
	at, ok := w.index[string(key)]
	if !ok {
		at = len(w.spans)
		w.index[string(key)] = at
		w.spans = append(w.spans, s)
		w.seen = append(w.seen, make([]bool, len(w.order)))
		for i, k := range keys {
			w.keys[i].Append(&in.cols[k], row)
		}
	}
	return at
}

// wideMerge is the full outer join by key and window of the branches, each
// aggregated by its rules.
func (r *run) wideMerge(n *graph.Node, op *graph.WideMerge) (*collected, error) {
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		return nil, err
	}
	keyCount := len(op.Branches[0].Keys)
	w := &wideRows{order: op.Order(), index: map[string]int{}, keys: make([]batch.Vec, keyCount)}
	for i := range w.keys {
		w.keys[i].Reset(n.Schema.Fields[i].Type, 0)
	}
	rowOf := make([][]int, len(op.Branches)) // by branch, by group: row of w
	groupsOf := make([]*groups, len(op.Branches))
	for bi := range op.Branches {
		if groupsOf[bi], rowOf[bi], err = r.wideBranch(n, op, bi, w); err != nil {
			return nil, err
		}
	}
	tables, found := make([]*offlineRows, len(op.Offline)), make([][]int, len(op.Offline))
	for _, create := range []bool{true, false} { // rows first
		for i := range op.Offline {
			if op.Offline[i].CreatesRows != create {
				continue
			}
			if tables[i], err = r.offlineTable(n, &op.Offline[i]); err != nil {
				return nil, err
			}
			if create {
				if err := r.createRows(op, i, tables[i], w); err != nil {
					return nil, err
				}
			}
		}
	}
	for i := range op.Offline {
		if found[i], err = r.offline(op, i, tables[i], w); err != nil {
			return nil, err
		}
	}
	out := newCollected(n.Schema)
	out.n = len(w.spans)
	out.position = make([][]byte, out.n)
	for range out.n {
		out.watermark = append(out.watermark, batch.NoWatermark)
	}
	for i := range w.keys {
		out.cols[i].AppendVec(&w.keys[i])
	}
	for _, s := range w.spans {
		putWindow(out.cols[keyCount:keyCount+2], s)
	}
	for ci := range op.Columns {
		if i := slices.IndexFunc(op.Offline, func(b graph.OfflineBranch) bool { return b.Label == op.Columns[ci].Branch }); i >= 0 {
			if err := r.offlineColumn(n, &op.Columns[ci], tables[i], found[i], lib, &out.cols[keyCount+2+ci]); err != nil {
				return nil, err
			}
			continue
		}
		if err := r.wideColumn(n, op, ci, lib, groupsOf, rowOf, &out.cols[keyCount+2+ci], out.n); err != nil {
			return nil, err
		}
	}
	if op.Coverage {
		v := &out.cols[len(out.cols)-1]
		v.Reset(v.Type, out.n)
		for row := range out.n {
			v.BeginList(row)
			for place, seen := range w.seen[row] {
				label := ""
				if bi := w.order[place]; bi >= 0 {
					label = op.Branches[bi].Label
				} else {
					label = op.Offline[-1-bi].Label
				}
				if seen {
					v.Children[0].Append(expr.Text(label).Value, 0)
				}
			}
			v.EndList()
		}
		v.PadOffsets()
	}
	return out, nil
}

// wideBranch groups the rows of a branch by key and window.
func (r *run) wideBranch(n *graph.Node, op *graph.WideMerge, bi int, w *wideRows) (*groups, []int, error) {
	br := &op.Branches[bi]
	in := r.input(n, bi)
	ws, err := operator.NewWindows(op.Window, in.schema.Fields[br.Time].Type)
	if err != nil {
		return nil, nil, err
	}
	g := newGroups(in.n)
	var rows []int
	for row := range in.n {
		s, ok, err := r.windowOf(n, in, ws, br.Time, row, op.Lateness)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		null := false
		for _, k := range br.Keys {
			null = null || in.cols[k].IsNull(row) && in.cols[k].Err(row) == nil
		}
		if null {
			e := batch.ValueError{Code: batch.CodeNullKey, Where: br.Label, Message: "key is NULL"}
			if err := r.failed(r.policyBehind(n.ID), n, []batch.ValueError{e}); err != nil {
				return nil, nil, err
			}
			continue
		}
		key, ok, err := r.key(n, in, br.Keys, row)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		key = binary.BigEndian.AppendUint64(key, uint64(s.Start))
		before := len(g.first)
		g.add(row, key)
		at := w.row(key, s, in, br.Keys, row)
		w.seen[at][slices.Index(w.order, bi)] = true
		if len(g.first) > before {
			rows = append(rows, at)
		}
	}
	return g, rows, nil
}

func (r *run) wideColumn(n *graph.Node, op *graph.WideMerge, ci int, lib *fn.Library, gs []*groups, rowOf [][]int, out *batch.Vec, rows int) error {
	c := &op.Columns[ci]
	bi := 0
	for op.Branches[bi].Label != c.Branch {
		bi++
	}
	br := &op.Branches[bi]
	in := r.input(n, bi)
	agg, ok := lib.Aggregate(ruleNames[c.Rule])
	if !ok {
		return fmt.Errorf("no aggregate %s", ruleNames[c.Rule])
	}
	var args []fn.Arg
	var exprs []expr.Expr
	if c.Input >= 0 {
		args = append(args, fn.Arg{Type: in.schema.Fields[c.Input].Type})
		exprs = append(exprs, expr.NewColumn(in.schema, c.Input))
	}
	bound, err := agg.Bind(args, fn.AggOptions{KeepNulls: br.KeepNulls && c.Rule <= graph.RuleFirst})
	if err != nil {
		return err
	}
	for i := range exprs {
		if exprs[i], err = expr.Implicit(exprs[i], bound.Params[i]); err != nil {
			return err
		}
	}
	timeAt := br.Time
	if br.Version >= 0 {
		timeAt = br.Version
	}
	accs, err := r.accumulate(n, in, gs[bi], []graph.Aggregate{{Name: c.Name, Text: c.Name, Bound: bound, Args: exprs}}, timeAt)
	if err != nil {
		return err
	}
	groupOf := make([]int32, rows)
	for i := range groupOf {
		groupOf[i] = -1
	}
	for g, row := range rowOf[bi] {
		groupOf[row] = int32(g)
	}
	for row := range rows {
		if groupOf[row] < 0 {
			out.AppendNull() // the branch did not reach the row
			continue
		}
		var v batch.Vec
		accs[0].Emit(groupOf[row:row+1], c.Name, &v)
		out.Append(&v, 0)
	}
	return nil
}
