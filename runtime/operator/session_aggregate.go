package operator

import (
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/runtime/watermark"
)

// SessionAggregate is GROUP BY keys and a session of the keys: one subtask. Rows
// of a key whose times lie no more than the gap apart are one session, whatever
// the order in which they come; it ends the gap behind its last row.
//
// A session fires when no row can come any more that would belong to it: the gap
// (and the lateness) after its end, see graph.WindowAggregate.HoldMillis.
type SessionAggregate struct {
	op       *graph.WindowAggregate
	schema   *batch.Schema
	windows  *Windows
	aggs     *aggSet
	keyTypes []types.Type
	keys     *state.Keys
	byKey    [][]session // by key slot, in order of time; they do not touch
	accs     []fn.Accumulator
	free     []int32 // groups of accs that can be used anew
	groups   int32
	alias    []alias
	buf      []byte
	ends     endHeap
	fired    int64
	cols     []*batch.Vec
	slots    []int32
	into     []int32
	due      []firedSession
	out      batch.Batch
}

// session is between two instants, in ms; group is its number in the
// accumulators, queued the end with which it stands among the ends.
type session struct {
	start, end, queued int64
	group              int32
}

// alias says that a group went into another one with rows of the batch at hand.
type alias struct{ from, to int32 }

type firedSession struct {
	session
	key int32
}

// NewSessionAggregate makes a subtask over the columns of in, with no state.
func NewSessionAggregate(op *graph.WindowAggregate, in, out *batch.Schema) (*SessionAggregate, error) {
	ws, aggs, err := windowParts(op, in, out)
	if err != nil {
		return nil, err
	}
	s := &SessionAggregate{op: op, schema: out, windows: ws, aggs: aggs, keyTypes: typesAt(in, op.Keys), fired: batch.NoWatermark}
	s.keys, s.accs = state.NewKeys(s.keyTypes), aggs.accumulators(nil)
	return s, nil
}

// Fold implements Keyed.
func (a *SessionAggregate) Fold(ctx *expr.Context, in *KeyedRows, out *Results) error {
	sel := a.aggs.eval(ctx, in, out)
	a.cols = colsAt(in.Batch, a.op.Keys, a.cols)
	a.slots = slices.Grow(a.slots[:0], in.Batch.Len)[:in.Batch.Len]
	a.keys.Find(a.cols, in.Hashes, sel, a.slots)
	for len(a.byKey) < a.keys.Len() {
		a.byKey = append(a.byKey, nil)
	}
	time := &in.Batch.Cols[a.op.Time]
	a.alias = a.alias[:0]
	for _, row := range sel {
		ts := types.FloorDiv(timeOf(time, row), a.windows.units/1000)
		if watermark.Late(a.fired, ts+a.op.Window.Size, a.op.Lateness) {
			return &FiredError{ts + a.op.Window.Size, a.fired}
		}
		group, err := a.join(a.slots[row], ts)
		if err != nil {
			return err
		}
		a.slots[row] = group
	}
	// Sessions that rows of this batch have brought together are one.
	for _, row := range sel {
		for k := range a.alias {
			if a.alias[k].from == a.slots[row] {
				a.slots[row] = a.alias[k].to
			}
		}
	}
	for _, x := range a.accs {
		x.Resize(int(a.groups))
	}
	a.aggs.update(a.accs, a.slots, sel)
	for _, x := range a.alias {
		a.free = append(a.free, x.from)
	}
	return nil
}

// join puts a row into the session of its key, and makes one of the sessions
// that it connects.
func (a *SessionAggregate) join(key int32, ts int64) (group int32, err error) {
	list := a.byKey[key]
	end := ts + a.op.Window.Size
	i := len(list)
	for i > 0 && list[i-1].end >= ts {
		i--
	}
	j := i
	for j < len(list) && list[j].start <= end {
		j++
	}
	if i == j {
		s := session{start: ts, end: end, queued: end, group: a.newGroup()}
		a.byKey[key] = slices.Insert(list, i, s)
		a.ends.push(sessionEnd{end, key})
		return s.group, nil
	}
	s := &list[i]
	s.start, s.end = min(s.start, ts), max(s.end, end, list[j-1].end)
	for _, x := range list[i+1 : j] {
		if err := a.unite(s.group, x.group); err != nil {
			return 0, err
		}
	}
	a.byKey[key] = slices.Delete(list, i+1, j)
	return a.byKey[key][i].group, nil
}

// unite moves what a group holds into another one.
func (a *SessionAggregate) unite(to, from int32) error {
	for _, x := range a.accs {
		x.Resize(int(a.groups))
		a.buf = x.AppendState(a.buf[:0], int(from))
		if err := x.MergeState(int(to), a.buf); err != nil {
			return err
		}
		x.Clear(int(from))
	}
	a.alias = append(a.alias, alias{from, to})
	return nil
}

func (a *SessionAggregate) newGroup() int32 {
	if n := len(a.free); n > 0 {
		g := a.free[n-1]
		a.free = a.free[:n-1]
		return g
	}
	a.groups++
	return a.groups - 1
}

// Advance implements Keyed.
func (a *SessionAggregate) Advance(_ *expr.Context, time int64, out *Results) error {
	hold := a.op.HoldMillis()
	over := func(end int64) bool { return time == batch.MaxWatermark || watermark.Late(time, end, hold) }
	a.due = a.due[:0]
	for len(a.ends) > 0 && over(a.ends[0].end) {
		e := a.ends.pop()
		list := a.byKey[e.key]
		i := slices.IndexFunc(list, func(s session) bool { return s.queued == e.end })
		switch {
		case i < 0: // it has become part of another one
		case over(list[i].end):
			a.due = append(a.due, firedSession{list[i], e.key})
			a.byKey[e.key] = slices.Delete(list, i, i+1)
		default:
			list[i].queued = list[i].end
			a.ends.push(sessionEnd{list[i].end, e.key})
		}
	}
	for from := 0; from < len(a.due); from += emitRows {
		if err := a.emit(a.due[from:min(from+emitRows, len(a.due))], out); err != nil {
			return err
		}
	}
	for _, f := range a.due {
		for _, x := range a.accs {
			x.Clear(int(f.group))
		}
		a.free = append(a.free, f.group)
	}
	a.fired = max(a.fired, time)
	a.shrink()
	return nil
}

func (a *SessionAggregate) emit(due []firedSession, out *Results) error {
	b := &a.out
	b.Reset(a.schema)
	b.Len = len(due)
	a.slots, a.into = a.slots[:0], a.into[:0]
	for i := range due {
		a.slots, a.into = append(a.slots, due[i].key), append(a.into, due[i].group)
	}
	keys := a.keys.Columns()
	for i := range keys {
		b.Cols[i].Take(&keys[i], a.slots)
	}
	for i, call := range a.aggs.outputs {
		a.accs[call].Emit(a.into, a.aggs.calls[call].where, &b.Cols[len(keys)+i])
	}
	n := len(a.op.Keys) + len(a.op.Aggregates)
	bounds := b.Cols[n:]
	for i := range bounds {
		bounds[i].Reset(a.schema.Fields[n+i].Type, b.Len)
	}
	for i := range due {
		put(bounds, i, a.windows.session(due[i].start, due[i].end))
	}
	return out.Emit(b)
}

// shrink forgets keys without a session when they are most of them.
func (a *SessionAggregate) shrink() {
	if a.keys.Len() < 4096 || a.keys.Len() < 4*len(a.ends) {
		return
	}
	old, hashes, lists := a.keys.Columns(), a.keys.Hashes(), a.byKey
	sel := batch.Sel{}
	for k := range lists {
		if len(lists[k]) > 0 {
			sel = append(sel, int32(k))
		}
	}
	a.keys, a.byKey, a.ends = state.NewKeys(a.keyTypes), nil, a.ends[:0]
	a.cols = a.cols[:0]
	for i := range old {
		a.cols = append(a.cols, &old[i])
	}
	slots := make([]int32, len(hashes))
	a.keys.Find(a.cols, hashes, sel, slots)
	for _, k := range sel {
		a.byKey = append(a.byKey, lists[k])
		for i := range lists[k] {
			s := &lists[k][i]
			s.queued = s.end
			a.ends.push(sessionEnd{s.end, slots[k]})
		}
	}
}

// Save implements Keyed: the texts of the calls, the watermark, then the
// sessions: their keys, bounds and what they have folded.
func (a *SessionAggregate) Save() []byte {
	dst := appendTexts(nil, a.aggs.texts())
	dst = binary.AppendVarint(dst, a.fired)
	var hashes []uint64
	var slots []int32
	for k, list := range a.byKey {
		for range list {
			hashes, slots = append(hashes, a.keys.Hash(k)), append(slots, int32(k))
		}
	}
	dst = state.AppendHashes(dst, hashes)
	keys := a.keys.Columns()
	for i := range keys {
		var v batch.Vec
		if slots == nil {
			v.Reset(a.keyTypes[i], 0)
		} else {
			v.Take(&keys[i], slots)
		}
		dst = state.AppendVec(dst, &v)
	}
	for _, list := range a.byKey {
		for i := range list {
			dst = binary.AppendVarint(binary.AppendVarint(dst, list[i].start), list[i].end)
			for _, x := range a.accs {
				a.buf = x.AppendState(a.buf[:0], int(list[i].group))
				dst = state.AppendBytes(dst, a.buf)
			}
		}
	}
	return dst
}

// Load implements Keyed.
func (a *SessionAggregate) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	to := readTexts(r, a.aggs.texts())
	fired := r.Varint()
	hashes := r.Hashes()
	cols := make([]*batch.Vec, len(a.keyTypes))
	for i := range cols {
		cols[i] = r.Vec(a.keyTypes[i])
		if cols[i].Len != len(hashes) {
			return state.ErrCorrupt
		}
	}
	slot := make([]int32, len(hashes))
	for i := range hashes {
		start, end := r.Varint(), r.Varint()
		own := groups.Has(hashes[i])
		var group int32
		if own && r.Err() == nil {
			a.keys.Find(cols, hashes, batch.Sel{int32(i)}, slot)
			for len(a.byKey) < a.keys.Len() {
				a.byKey = append(a.byKey, nil)
			}
			group = a.newGroup()
			a.byKey[slot[i]] = append(a.byKey[slot[i]], session{start, end, end, group})
			a.ends.push(sessionEnd{end, slot[i]})
		}
		for _, k := range to {
			b := r.Bytes()
			if r.Err() != nil {
				return r.Err()
			}
			if !own || k < 0 {
				continue
			}
			a.accs[k].Resize(int(a.groups))
			if err := a.accs[k].MergeState(int(group), b); err != nil {
				return err
			}
		}
	}
	if r.Rest() > 0 {
		return state.ErrCorrupt
	}
	for _, x := range a.accs {
		x.Resize(int(a.groups))
	}
	a.fired = max(a.fired, fired)
	return r.Err()
}

// Kind implements Keyed.
func (*SessionAggregate) Kind() string { return "SessionAggregate" }

// Fingerprint implements Keyed.
func (a *SessionAggregate) Fingerprint() uint64 { return windowFingerprint(a.keyTypes, a.op.Window) }

// Bytes implements Keyed.
func (a *SessionAggregate) Bytes() int64 {
	n := a.keys.Bytes() + int64(24*cap(a.byKey)+16*cap(a.ends)+32*int(a.groups))
	for _, x := range a.accs {
		n += x.Bytes()
	}
	return n
}
