package operator

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// WideMerge builds a wide table: one row a key and window of whatever reached it
// on any branch, by union. One subtask. It is the full outer join by key of the
// branches, whatever the order of arrival.
type WideMerge struct {
	op       *graph.WideMerge
	schema   *batch.Schema
	keys     int
	branches []wideBranch
	columns  []wideColumn
	panes    *panes
	barrier  int64 // of a table whose windows are corrected: the watermark at the last barrier
	cols     []*batch.Vec
	slots    []int32
	groups   []int32
	out      batch.Batch
	order    []int // branches as declared, see graph.WideMerge.Order
	offline  offlineState
	// generations are those of the window that is being given, by offline branch.
	generations []*Generation
}

type wideBranch struct {
	keys    []int
	time    int
	windows *Windows
	aggs    *aggSet
	from    int // of its accumulators among those of the table
}

// wideColumn is where an output column comes from.
type wideColumn struct {
	branch, acc int // branch -1-i is offline branch i
	where       string
	// count: COUNT gives NULL where the branch is absent.
	count bool
}

// ruleNames are the aggregates that the rules stand for.
var ruleNames = [...]string{graph.RuleLast: "LAST_VALUE", graph.RuleFirst: "FIRST_VALUE", graph.RuleSum: "SUM",
	graph.RuleCount: "COUNT", graph.RuleMin: "MIN", graph.RuleMax: "MAX",
	graph.RuleAvg: "AVG", graph.RuleCollect: "ARRAY_AGG"}

// NewWideMerge makes a subtask over the branches' columns, in their order.
func NewWideMerge(op *graph.WideMerge, in []*batch.Schema, out *batch.Schema) (*WideMerge, error) {
	w := &WideMerge{op: op, schema: out, keys: len(op.Branches[0].Keys), columns: make([]wideColumn, len(op.Columns))}
	n := w.keys + 2 + len(op.Columns)
	if op.Coverage {
		n++
	}
	if len(out.Fields) != n {
		return nil, fmt.Errorf("wide table of %d columns, not %d", len(out.Fields), n)
	}
	var keyTypes []types.Type
	accs := 0
	var branchOf []int
	for i := range op.Branches {
		b := &op.Branches[i]
		ts := typesAt(in[i], b.Keys)
		if i == 0 {
			keyTypes = ts
		}
		if len(ts) != w.keys {
			return nil, fmt.Errorf("branch %s has %d keys, not %d", b.Label, len(ts), w.keys)
		}
		for k := range ts {
			if !ts[k].EqualIgnoringNull(keyTypes[k]) {
				return nil, fmt.Errorf("branch %s: key %d is %s, in branch %s it is %s", b.Label, k+1, ts[k], op.Branches[0].Label, keyTypes[k])
			}
		}
		wb, err := w.branch(i, in[i])
		if err != nil {
			return nil, err
		}
		wb.from = accs
		accs += len(wb.aggs.calls)
		branchOf = append(branchOf, slices.Repeat([]int{i}, len(wb.aggs.calls))...)
		w.branches = append(w.branches, *wb)
	}
	if err := w.openOffline(); err != nil {
		return nil, err
	}
	for i := range w.columns {
		if w.columns[i].branch < 0 {
			continue
		}
		w.columns[i].acc += w.branches[w.columns[i].branch].from
	}
	w.panes = newPanes(op.Window, op.Lateness, keyTypes, func() *aggTable {
		var accs []fn.Accumulator
		for i := range w.branches {
			accs = w.branches[i].aggs.accumulators(accs)
		}
		return newAggTable(keyTypes, accs, len(w.branches), branchOf)
	})
	w.panes.held, w.barrier = w.atBarriers(), batch.NoWatermark
	return w, nil
}

// branch compiles the columns of one branch as aggregates.
func (w *WideMerge) branch(i int, in *batch.Schema) (*wideBranch, error) {
	b := &w.op.Branches[i]
	ws, err := NewWindows(w.op.Window, in.Fields[b.Time].Type)
	if err != nil {
		return nil, err
	}
	version := b.Time
	if b.Version >= 0 {
		version = b.Version
	}
	var aggs []graph.Aggregate
	var of []int // output columns
	for k := range w.op.Columns {
		c := &w.op.Columns[k]
		if c.Branch != b.Label {
			continue
		}
		a, err := wideAggregate(c, b, in)
		if err != nil {
			return nil, err
		}
		want := w.schema.Fields[w.keys+2+k].Type
		if !sameLayout(a.Bound.Return, want) {
			return nil, fmt.Errorf("wide column %s is %s, its rule gives %s", c.Name, want, a.Bound.Return)
		}
		aggs, of = append(aggs, a), append(of, k)
	}
	set, err := newAggSet(aggs, in, version, b.Label)
	if err != nil {
		return nil, err
	}
	set.order.whole = b.KeepNulls // equal versions must agree on all columns
	for n, k := range of {
		w.columns[k] = wideColumn{branch: i, acc: set.outputs[n], where: w.op.Columns[k].Name, count: w.op.Columns[k].Rule == graph.RuleCount}
	}
	return &wideBranch{keys: b.Keys, time: b.Time, windows: ws, aggs: set}, nil
}

// wideAggregate is a column's rule as an aggregate over the branch's columns.
func wideAggregate(c *graph.WideColumn, b *graph.WideBranch, in *batch.Schema) (graph.Aggregate, error) {
	a := graph.Aggregate{Name: c.Name, Text: fmt.Sprintf("%s.%s %s", b.Label, c.Name, ruleNames[c.Rule])}
	var args []fn.Arg
	if c.Input >= 0 {
		col := expr.NewColumn(in, c.Input)
		args = append(args, fn.Arg{Type: col.T})
		a.Args = []expr.Expr{col}
	}
	var failed error
	for _, narrow := range []bool{false, true} {
		lib, err := fn.NewLibrary(fn.LibraryOptions{NoSumWidening: narrow})
		if err != nil {
			return a, err
		}
		f, ok := lib.Aggregate(ruleNames[c.Rule])
		if !ok {
			return a, fmt.Errorf("aggregate %s is not there", ruleNames[c.Rule])
		}
		bound, err := f.Bind(args, fn.AggOptions{KeepNulls: b.KeepNulls})
		if err != nil {
			failed = err
			continue
		}
		a.Bound = bound
		if sameLayout(bound.Return, c.Type) {
			break
		}
	}
	if a.Bound.New == nil {
		return a, fmt.Errorf("wide column %s: %w", c.Name, failed)
	}
	for i := range a.Args {
		if a.Args[i].Type().EqualIgnoringNull(a.Bound.Params[i]) {
			continue
		}
		cast, err := expr.NewCast(a.Args[i], a.Bound.Params[i], false)
		if err != nil {
			return a, fmt.Errorf("wide column %s: %w", c.Name, err)
		}
		a.Args[i] = cast
	}
	return a, nil
}

func sameLayout(a, b types.Type) bool {
	return a.WithNullable(true).EqualIgnoringNull(b.WithNullable(true)) ||
		a.Kind == b.Kind && a.Precision == b.Precision && a.Scale == b.Scale && !a.IsNested()
}

// Fold implements Keyed.
func (w *WideMerge) Fold(ctx *expr.Context, in *KeyedRows, out *Results) error {
	b := &w.branches[in.Input]
	sel := b.aggs.eval(ctx, in, out)
	parts, err := w.panes.split(b.windows, &in.Batch.Cols[b.time], sel)
	if err != nil {
		return err
	}
	w.cols = colsAt(in.Batch, b.keys, w.cols)
	w.slots = slices.Grow(w.slots[:0], in.Batch.Len)[:in.Batch.Len]
	for _, x := range parts {
		x.p.keys.Find(w.cols, in.Hashes, x.sel, w.slots)
		x.p.resize()
		reached := x.p.reached[in.Input]
		for _, row := range x.sel {
			reached.Set(int(w.slots[row]))
		}
		b.aggs.update(x.p.accs[b.from:b.from+len(b.aggs.calls)], w.slots, x.sel)
		x.p.dirty = true
	}
	return nil
}

// Advance implements Keyed.
func (w *WideMerge) Advance(_ *expr.Context, time int64, out *Results) error {
	if w.atBarriers() {
		w.panes.fired = max(w.panes.fired, time)
		return nil // its windows go out at barriers
	}
	for _, p := range w.panes.due(time) {
		if err := w.emitAll(p, out); err != nil {
			return err
		}
		p.release()
	}
	return nil
}

// emitAll gives the rows of a window, which stays as it is.
func (w *WideMerge) emitAll(p *pane, out *Results) error {
	return w.panes.spiller.eachKept(p.aggTable, func(t *aggTable) error {
		for from := 0; from < t.keys.Len(); from += emitRows {
			if err := w.emit(p.Span, t, from, min(from+emitRows, t.keys.Len()), out); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *WideMerge) emit(s Span, t *aggTable, from, to int, out *Results) error {
	if len(w.rowsOf(t, from, to)) == 0 {
		return nil
	}
	b := &w.out
	b.Reset(w.schema)
	b.Len = len(w.groups)
	keys := t.keys.Columns()
	for i := range keys {
		b.Cols[i].Take(&keys[i], w.groups)
	}
	putBounds(b.Cols[w.keys:w.keys+2], w.schema.Fields[w.keys:w.keys+2], b.Len, s)
	for i := range w.columns {
		c, v := &w.columns[i], &b.Cols[w.keys+2+i]
		if c.branch < 0 {
			continue
		}
		t.accs[c.acc].Emit(w.groups, c.where, v)
		if !c.count {
			continue
		}
		for row, slot := range w.groups {
			if !t.reached[c.branch].Get(int(slot)) {
				v.SetNull(row)
			}
		}
	}
	w.offlineColumns(b, t)
	if w.op.Coverage {
		w.coverage(&b.Cols[len(b.Cols)-1], t)
	}
	return out.Emit(b)
}

// coverage lists the branches that reached each row, in the order of the
// declaration.
func (w *WideMerge) coverage(v *batch.Vec, t *aggTable) {
	v.Reset(w.schema.Fields[len(w.schema.Fields)-1].Type, len(w.groups))
	labels := v.Children[0]
	for row, slot := range w.groups {
		v.BeginList(row)
		for _, i := range w.order {
			label, reached := "", false
			if i >= 0 {
				label, reached = w.op.Branches[i].Label, t.reached[i].Get(int(slot))
			} else {
				label, reached = w.op.Offline[-1-i].Label, w.offline.slots[-1-i][row] >= 0
			}
			if reached {
				labels.Grow(1)
				labels.PutString(labels.Len-1, label)
			}
		}
		v.EndList()
	}
}

// texts identify the accumulators in saved state, then the branches.
func (w *WideMerge) texts() (accs, branches []string) {
	for i := range w.branches {
		accs = append(accs, w.branches[i].aggs.texts()...)
		branches = append(branches, w.op.Branches[i].Label)
	}
	return accs, branches
}

// Save implements Keyed.
func (w *WideMerge) Save() []byte { return w.panes.save(w.saveHead()) }

// saveHead appends what stands before the windows.
func (w *WideMerge) saveHead() []byte {
	accs, branches := w.texts()
	dst := appendTexts(appendTexts(nil, accs), branches)
	if w.atBarriers() {
		dst = w.appendDirty(dst)
	}
	if len(w.op.Offline) > 0 {
		dst = w.appendOffline(dst)
	}
	return dst
}

// Load implements Keyed.
func (w *WideMerge) Load(payload []byte, groups state.Range) error {
	accs, labels := w.texts()
	r := state.NewReader(payload)
	to := readTexts(r, accs)
	branches := readTexts(r, labels)
	if err := r.Err(); err != nil {
		return err
	}
	if !w.atBarriers() {
		return w.panes.load(r, groups, to, branches)
	}
	dirty := readSpans(r)
	var gaps []Span
	if len(w.op.Offline) > 0 {
		w.offline.out = max(w.offline.out, r.Varint())
		gaps = readSpans(r)
	}
	if err := w.panes.load(r, groups, to, branches); err != nil {
		return err
	}
	w.mark(dirty, gaps)
	return nil
}

// Kind implements Keyed.
func (*WideMerge) Kind() string { return "WideMerge" }

// Fingerprint implements Keyed. What has gone out already is another state than
// what goes out once.
func (w *WideMerge) Fingerprint() uint64 {
	if len(w.op.Offline) > 0 {
		return state.Fingerprint(w.panes.keyTypes, fmt.Sprintf("offline %t %d", w.op.Correct > 0, w.panes.fingerprint()))
	}
	if w.op.Correct > 0 {
		return state.Fingerprint(w.panes.keyTypes, fmt.Sprintf("corrected %d", w.panes.fingerprint()))
	}
	return w.panes.fingerprint()
}

// Bytes implements Keyed.
func (w *WideMerge) Bytes() int64 { return w.panes.bytes() }
