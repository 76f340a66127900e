package operator

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/types"
)

// CodeSubqueryRows is the error of a scalar sub-query that gives several rows.
const CodeSubqueryRows batch.Code = "subquery_rows"

// joinPlan is what all tables of a join have in common; it belongs to one
// goroutine.
type joinPlan struct {
	op       *graph.Join
	in       [2]*batch.Schema
	pair     *batch.Schema
	out      *batch.Schema
	keyTypes []types.Type
	cond     condition
	disk     spiller

	// Memory for one call.
	cols   []*batch.Vec
	hashes []uint64
	buf    []byte
	slots  []int32
	good   batch.Sel
	keep   batch.Sel
	li, ri []int32
	pairs  batch.Batch
	pass   batch.Sel
	result batch.Batch
}

func newJoinPlan(op *graph.Join, left, right, out *batch.Schema) (*joinPlan, error) {
	p := &joinPlan{op: op, in: [2]*batch.Schema{left, right}, pair: graph.PairSchema(left, right), out: out}
	p.keyTypes = typesAt(left, op.InputKeys(0))
	var err error
	if p.cond, err = newCondition(op.Condition, p.pair); err != nil {
		return nil, fmt.Errorf("compiling a join's condition: %w", err)
	}
	return p, nil
}

// keysDecide reports a join that needs to know no more than whether a key is
// there.
func (p *joinPlan) keysDecide() bool {
	return p.op.Condition == nil && (p.op.Kind == graph.SemiJoin || p.op.Kind == graph.AntiJoin || p.op.Kind == graph.MarkJoin)
}

// joinTable is the rows of both sides that may meet, by key: all rows of a join
// over bounded input, or those of one window.
type joinTable struct {
	*joinPlan
	side [2]rowStore
	keys *state.Keys
	// leftSlot is, by left row, the slot of its key; noSlot: it equals nothing,
	// errorSlot: it is an error.
	leftSlot []int32
	// head is, by slot, the last right row of the key, next the one before it;
	// -1: none.
	head, next []int32
	// Of a null-aware join: the groups of the keys before the operand, with
	// whether a right row of each has a NULL operand, and the group of each left
	// row.
	groups    *state.Keys
	groupRows []bool
	groupNull []bool
	leftGroup []int32

	// runs are rows of each side on disk, by the hash of their key; loose are rows
	// whose key equals nothing.
	runs  [2][]*spill.Run
	loose []*spill.Run
	// probing: left rows look for the keys there are, and make none.
	probing bool
}

const (
	noSlot    = -1
	errorSlot = -2
	// aloneSlot is of a key that no right row has.
	aloneSlot = -4
)

func newJoinTable(p *joinPlan) *joinTable {
	t := &joinTable{joinPlan: p, keys: state.NewKeys(p.keyTypes)}
	for i := range t.side {
		t.side[i] = newRowStore(p.in[i])
	}
	if p.op.NullAware {
		t.groups = state.NewKeys(p.keyTypes[:len(p.keyTypes)-1])
	}
	return t
}

func (t *joinTable) bytes() int64 {
	n := t.side[0].bytes() + t.side[1].bytes() + t.keys.Bytes()
	n += 4 * int64(cap(t.leftSlot)+cap(t.head)+cap(t.next)+cap(t.leftGroup))
	if t.groups != nil {
		n += t.groups.Bytes() + int64(cap(t.groupRows)+cap(t.groupNull))
	}
	for _, r := range t.allRuns() {
		n += r.Memory()
	}
	return n
}

// add takes rows of one side. dead takes rows whose key is an error.
func (t *joinTable) add(side int, b *batch.Batch, sel batch.Sel, dead func(*batch.Batch, *batch.ValueError)) {
	t.cols = colsAt(b, t.op.InputKeys(side), t.cols)
	t.slots = slices.Grow(t.slots[:0], b.Len)[:b.Len]
	t.hashes = slices.Grow(t.hashes[:0], b.Len)[:b.Len]
	t.good, t.keep = t.good[:0], t.keep[:0]
	keepsAll := side == 0 && t.op.Kind.KeepsLeft() || side == 1 && t.op.Kind.KeepsRight()
	for _, row := range sel {
		switch t.keyState(row) {
		case truthError:
			if side == 1 || t.op.Kind != graph.MarkJoin {
				dead(b, t.keyError(row))
				continue
			}
			t.slots[row] = errorSlot
		case truthUnknown:
			if !keepsAll && !(t.op.NullAware && side == 1) {
				continue
			}
			t.slots[row] = noSlot
		default:
			t.hashes[row], t.buf = batch.HashKey(t.buf, t.cols, int(row))
			t.good = append(t.good, row)
		}
		t.keep = append(t.keep, row)
	}
	if t.probing && side == 0 {
		for _, row := range t.good {
			if t.slots[row] = t.keys.Slot(t.cols, t.hashes[row], int(row)); t.slots[row] < 0 {
				t.slots[row] = aloneSlot
			}
		}
	} else {
		t.keys.Find(t.cols, t.hashes, t.good, t.slots)
	}
	for len(t.head) < t.keys.Len() {
		t.head = append(t.head, -1)
	}
	if t.op.NullAware {
		t.addGroups(side, b)
	}
	if side == 0 {
		t.side[0].add(b, t.keep)
		for _, row := range t.keep {
			t.leftSlot = append(t.leftSlot, t.slots[row])
		}
		return
	}
	t.addRight(b)
}

// addRight chains the rows of t.keep to their keys. Where no condition looks at
// them and no column of theirs is given, one row a key is enough.
func (t *joinTable) addRight(b *batch.Batch) {
	keysOnly := t.keysDecide()
	if keysOnly {
		n := 0
		for _, row := range t.keep {
			s := t.slots[row]
			if s == noSlot && !t.op.NullAware || s >= 0 && t.head[s] != -1 {
				continue
			}
			if s >= 0 {
				t.head[s] = int32(t.side[1].rows.Len + n)
			}
			t.keep[n] = row
			n++
		}
		t.keep = t.keep[:n]
	}
	first := int32(t.side[1].add(b, t.keep))
	for i, row := range t.keep {
		s, at := t.slots[row], first+int32(i)
		if s < 0 || keysOnly {
			t.next = append(t.next, -1)
			continue
		}
		t.next = append(t.next, t.head[s])
		t.head[s] = at
	}
}

// addGroups notes the rows of t.keep in the groups of a null-aware join.
func (t *joinTable) addGroups(side int, b *batch.Batch) {
	last := len(t.cols) - 1
	groupCols := t.cols[:last]
	for _, row := range t.keep {
		g, null := int32(noSlot), false
		for i := range groupCols {
			null = null || groupCols[i].IsNull(int(row)) || isNaN(groupCols[i], int(row))
		}
		if !null {
			hash := uint64(0)
			if last > 0 {
				hash, t.buf = batch.HashKey(t.buf, groupCols, int(row))
			}
			g = t.groupOf(groupCols, hash, row)
		}
		if side == 0 {
			t.leftGroup = append(t.leftGroup, g)
			continue
		}
		if g >= 0 {
			t.groupRows[g] = true
			t.groupNull[g] = t.groupNull[g] || t.cols[last].IsNull(int(row))
		}
	}
}

// groupOf finds or makes the group of a row.
func (t *joinTable) groupOf(cols []*batch.Vec, hash uint64, row int32) int32 {
	g := t.groups.FindOne(cols, hash, int(row))
	for len(t.groupRows) < t.groups.Len() {
		t.groupRows = append(t.groupRows, false)
		t.groupNull = append(t.groupNull, false)
	}
	return g
}

// keyState is truthTrue for a key that can be equal to another one.
func (t *joinTable) keyState(row int32) truth {
	out := truthTrue
	for i, v := range t.cols {
		if v.HasDeepErrs() && v.DeepErr(int(row)) != nil {
			return truthError
		}
		if v.IsNull(int(row)) {
			if !t.op.Keys[i].NullSafe {
				out = truthUnknown
			}
		} else if isNaN(v, int(row)) {
			out = truthUnknown
		}
	}
	return out
}

func (t *joinTable) keyError(row int32) *batch.ValueError {
	for _, v := range t.cols {
		if e := v.DeepErr(int(row)); e != nil {
			x := *e
			x.Row = row
			return &x
		}
	}
	return nil
}

// close gives the join's rows. The table is of no use afterwards.
func (t *joinTable) close(ctx *expr.Context, out *Results) error {
	if t.spilled() {
		return t.closeParts(ctx, out)
	}
	m := &matching{joinTable: t, ctx: ctx, res: out}
	return m.run()
}

// save appends the rows of both sides.
func (t *joinTable) save(dst []byte) []byte { return t.side[1].save(t.side[0].save(dst)) }

// load takes in the saved rows of the given key groups.
func (t *joinTable) load(r *state.Reader, groups state.Range) error {
	return t.loadRows(r, groups, func(side int, b *batch.Batch, sel batch.Sel) {
		t.add(side, b, sel, func(*batch.Batch, *batch.ValueError) {})
	})
}

// loadRows reads the saved rows of both sides and adds those of the key groups.
func (p *joinPlan) loadRows(r *state.Reader, groups state.Range, add func(side int, b *batch.Batch, sel batch.Sel)) error {
	for side := range 2 {
		b, err := readRows(r, p.in[side])
		if err != nil {
			return err
		}
		add(side, b, p.own(side, b, groups))
	}
	return nil
}

// own are the rows of a side that are of the key groups.
func (p *joinPlan) own(side int, b *batch.Batch, groups state.Range) batch.Sel {
	keys := colsAt(b, p.op.ExchangeKeys(side), nil)
	sel := batch.Sel{}
	for row := range b.Len {
		hash := uint64(0)
		if len(keys) > 0 {
			hash, p.buf = batch.HashKey(p.buf, keys, row)
		}
		if groups.Has(hash) {
			sel = append(sel, int32(row))
		}
	}
	return sel
}
