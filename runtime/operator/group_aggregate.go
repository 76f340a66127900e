package operator

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// GroupAggregate is GROUP BY keys without a window: one subtask. Over input that
// ends it gives its rows then, without keys one row even for no input; with Updates
// the changes of each batch of input. With Retracts rows of the input are taken
// back, and a group that has none left goes (-D), unless it is the one without keys.
type GroupAggregate struct {
	changes  changes
	op       *graph.GroupAggregate
	schema   *batch.Schema
	aggs     *aggSet
	keyTypes []types.Type
	table    *aggTable
	spiller  spiller
	// rows is, by slot, the number of rows that the group has, where they can be
	// taken back.
	rows []int64
	ages ages
	disk groupDisk
	// gone is the number of slots that have no group any more.
	gone int
	// global: this subtask has the one group of an aggregate without keys.
	global bool
	// gathers: state is loaded that must not go to disk before all of it is there.
	gathers bool
	done    bool
	cols    []*batch.Vec
	slots   []int32
	groups  []int32
	come    batch.Sel
	back    batch.Sel
	out     batch.Batch
	// to and own say which accumulator each one of a part is, see loadPart.
	to, own []int
}

// NewGroupAggregate makes a subtask over the columns of in.
func NewGroupAggregate(op *graph.GroupAggregate, in, out *batch.Schema, subtask int) (*GroupAggregate, error) {
	aggs, err := newAggSet(op.Aggregates, in, -1, "")
	if err != nil {
		return nil, err
	}
	if len(out.Fields) != len(op.Keys)+len(op.Aggregates) {
		return nil, fmt.Errorf("aggregate of %d columns for %d keys and %d aggregates", len(out.Fields), len(op.Keys), len(op.Aggregates))
	}
	if op.Retracts {
		aggs.retracting()
	}
	g := &GroupAggregate{op: op, schema: out, aggs: aggs, keyTypes: typesAt(in, op.Keys), global: len(op.Keys) == 0 && subtask == 0, ages: newAges(op.TTL)}
	g.spiller.fresh = func() *aggTable { return newAggTable(g.keyTypes, aggs.accumulators(nil), 0, nil) }
	g.table, g.disk = g.spiller.fresh(), newGroupDisk(g, g.keyTypes)
	return g, nil
}

// Fold implements Keyed.
func (g *GroupAggregate) Fold(ctx *expr.Context, in *KeyedRows, out *Results) error {
	sel := g.aggs.eval(ctx, in, out)
	g.cols = colsAt(in.Batch, g.op.Keys, g.cols)
	g.slots = slices.Grow(g.slots[:0], in.Batch.Len)[:in.Batch.Len]
	if err := g.disk.fetchGroups(g.cols, in.Hashes, sel); err != nil {
		return err
	}
	old := g.table.keys.Len()
	if !g.op.Updates {
		g.table.keys.Find(g.cols, in.Hashes, sel, g.slots)
		g.table.resize()
		g.aggs.update(g.table.accs, g.slots, sel)
		return nil
	}
	g.find(in, sel)
	g.changes.before(g, old)
	g.aggs.update(g.table.accs, g.slots, g.come)
	if g.op.Retracts {
		// What comes first: a row may come and go in one batch.
		g.aggs.retract(g.table.accs, g.slots, g.back)
		for _, row := range g.come {
			g.rows[g.slots[row]]++
		}
		for _, row := range g.back {
			g.rows[g.slots[row]]--
		}
	}
	if err := g.changes.emit(g, old, out); err != nil {
		return err
	}
	g.compact()
	return nil
}

// find puts the rows that come and those that are taken back into g.come and g.back,
// with their groups. A row of a group that is not known any more is not missed.
func (g *GroupAggregate) find(in *KeyedRows, sel batch.Sel) {
	g.come, g.back = sel, nil
	if in.Batch.Kinds != nil {
		g.come, g.back = splitKinds(in.Batch, sel, g.come[:0:0], g.back)
	}
	g.table.keys.Find(g.cols, in.Hashes, g.come, g.slots)
	known := g.back[:0]
	for _, row := range g.back {
		if g.slots[row] = g.table.keys.Slot(g.cols, in.Hashes[row], int(row)); g.slots[row] >= 0 {
			known = append(known, row)
		}
	}
	g.back = known
	g.table.resize()
	if g.op.Retracts {
		for len(g.rows) < g.table.keys.Len() {
			g.rows = append(g.rows, 0)
		}
	}
}

// splitKinds appends the rows of sel that come and those that are taken back.
func splitKinds(b *batch.Batch, sel, come, back batch.Sel) (batch.Sel, batch.Sel) {
	if come == nil {
		come = batch.Sel{}
	}
	if back == nil {
		back = batch.Sel{}
	}
	for _, row := range sel {
		if TakesBack(b, row) {
			back = append(back, row)
		} else {
			come = append(come, row)
		}
	}
	return come, back
}

// TakesBack reports a row that takes an earlier one back: -U or -D.
func TakesBack(b *batch.Batch, row int32) bool {
	return b.Kinds != nil && (b.Kinds[row] == batch.UpdateBefore || b.Kinds[row] == batch.Delete)
}

// vanished reports a group that has no rows left.
func (g *GroupAggregate) vanished(slot int32) bool {
	return g.op.Retracts && len(g.op.Keys) > 0 && g.rows[slot] <= 0
}

// forget lets a group go that has no rows left.
func (g *GroupAggregate) forget(slot int32) {
	g.disk.forget(g.table.keys, slot)
	g.dropGroup(slot)
}

// dropGroup leaves a slot without a group.
func (g *GroupAggregate) dropGroup(slot int32) {
	g.table.keys.Delete(slot)
	for _, a := range g.table.accs {
		a.Clear(int(slot))
	}
	if g.op.Retracts {
		g.rows[slot] = 0
	}
	g.ages.drop(slot)
	g.gone++
}

// Age implements Aging.
func (g *GroupAggregate) Age(now int64) int {
	g.ages.now = now
	n := g.disk.expired + g.expire()
	g.disk.expired = 0
	g.compact()
	return n
}

// expire lets groups go that are out of time. What is on disk of one is older, and not
// to be known again where the time to live is longer after a restart.
func (g *GroupAggregate) expire() int {
	n := 0
	for slot := g.ages.expired(); slot >= 0; slot = g.ages.expired() {
		g.disk.forget(g.table.keys, slot)
		g.dropGroup(slot)
		n++
	}
	return n
}

// compact makes the slots dense again where most are gone.
func (g *GroupAggregate) compact() {
	if g.gone > 1024 && g.gone > g.table.keys.Len()/2 {
		g.tidy()
	}
}

// tidy leaves the slots out that have no group.
func (g *GroupAggregate) tidy() {
	if g.gone == 0 {
		return
	}
	var live []int32
	to := slices.Repeat([]int32{-1}, g.table.keys.Len())
	for slot := range int32(len(to)) {
		if !g.table.keys.Deleted(slot) {
			to[slot] = int32(len(live))
			live = append(live, slot)
		}
	}
	g.table = g.table.take(live, g.aggs.accumulators(nil))
	if g.op.Retracts {
		for i, slot := range live {
			g.rows[i] = g.rows[slot]
		}
		g.rows = g.rows[:len(live)]
	}
	g.ages.renumber(to)
	g.gone, g.disk.hot = 0, nil
}

// Advance implements Keyed.
func (g *GroupAggregate) Advance(_ *expr.Context, time int64, out *Results) error {
	if time < batch.MaxWatermark || g.done || g.op.Updates && !(g.global && g.table.keys.Len() == 0) {
		return nil
	}
	g.done = true
	if g.global && g.table.keys.Len() == 0 {
		g.table.keys.Find(nil, []uint64{0}, batch.Sel{0}, make([]int32, 1))
		g.table.resize()
	}
	err := g.spiller.each([]*aggTable{g.table}, func(t *aggTable) error { return g.emit(t, out) })
	g.table.release()
	g.table = g.spiller.fresh()
	return err
}

// emit gives the rows of all groups of a table.
func (g *GroupAggregate) emit(t *aggTable, out *Results) error {
	for from := 0; from < t.keys.Len(); from += emitRows {
		to := min(from+emitRows, t.keys.Len())
		g.groups = slotsOf(from, to, g.groups)
		g.out.Reset(g.schema)
		g.out.Len = to - from
		emitTable(g.out.Cols, t, g.aggs, g.groups)
		if err := out.Emit(&g.out); err != nil {
			return err
		}
	}
	return nil
}

// Save implements Keyed. Behind the table are, where they are kept, the ages of the
// groups and the numbers of their rows.
func (g *GroupAggregate) Save() []byte {
	g.tidy()
	dst := g.table.save(g.saveHead(0))
	if !g.ages.on() && !g.op.Retracts {
		return dst
	}
	dst = g.ages.save(dst, slotsOf(0, g.table.keys.Len(), g.groups))
	for _, n := range g.rows {
		dst = binary.AppendUvarint(dst, uint64(max(n, 0)))
	}
	return dst
}

// Load implements Keyed.
func (g *GroupAggregate) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	to := readTexts(r, g.aggs.texts())
	flags := r.Byte()
	g.done = flags&groupDone != 0
	if err := r.Err(); err != nil {
		return err
	}
	if flags&(groupMerged|groupReplaced) != 0 {
		return g.loadParts(r, groups, to, flags)
	}
	slots, err := g.table.loadSlots(r, g.keyTypes, groups, to, nil)
	if err != nil {
		return err
	}
	if err := g.loadRows(r, slots); err != nil {
		return err
	}
	if r.Rest() > 0 {
		return state.ErrCorrupt
	}
	return g.spillOver()
}

// loadRows reads ages and numbers of rows.
func (g *GroupAggregate) loadRows(r *state.Reader, slots []int32) error {
	at := slices.Repeat([]int64{g.ages.now}, len(slots))
	if r.Rest() > 0 {
		at = g.ages.read(r, len(slots))
	}
	var ids []int32
	var times []int64
	for i, slot := range slots {
		if slot >= 0 {
			ids, times = append(ids, slot), append(times, at[i])
		}
	}
	g.ages.restore(ids, times)
	if !g.op.Retracts {
		return r.Err()
	}
	g.rows = append(g.rows, make([]int64, g.table.keys.Len()-len(g.rows))...)
	for _, slot := range slots {
		n := r.Uvarint()
		if n > math.MaxInt64 {
			return state.ErrCorrupt
		}
		if slot >= 0 {
			g.rows[slot] += int64(n)
		}
	}
	return r.Err()
}

// Kind implements Keyed.
func (g *GroupAggregate) Kind() string {
	if g.op.Retracts {
		return "GroupAggregate over changes"
	}
	return "GroupAggregate"
}

// Fingerprint implements Keyed.
func (g *GroupAggregate) Fingerprint() uint64 { return state.Fingerprint(g.keyTypes) }

// Bytes implements Keyed.
func (g *GroupAggregate) Bytes() int64 {
	return g.table.bytes() + int64(8*cap(g.rows)) + g.ages.bytes() + g.disk.bytes()
}
