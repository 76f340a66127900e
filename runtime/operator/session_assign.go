package operator

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// SessionAssign gives the rows of each session with its bounds when the session
// is over: one subtask. It keeps the rows until then.
type SessionAssign struct {
	op       *graph.SessionAssign
	in, out  *batch.Schema
	sessions *sessions
	rows     batch.Batch // kept
	gone     int         // of them, given already
	members  [][]int32   // rows by a session's number
	cols     []*batch.Vec
	slots    []int32
	good     batch.Sel
	result   batch.Batch
}

// NewSessionAssign makes a subtask over the columns of in, with no state.
func NewSessionAssign(op *graph.SessionAssign, in, out *batch.Schema) (*SessionAssign, error) {
	ws, err := NewWindows(op.Window, in.Fields[op.Time].Type)
	if err != nil {
		return nil, err
	}
	if len(out.Fields) != len(in.Fields)+3 {
		return nil, fmt.Errorf("session table of %d columns over %d", len(out.Fields), len(in.Fields))
	}
	a := &SessionAssign{op: op, in: in, out: out}
	a.sessions = newSessions(ws, typesAt(in, op.Keys), op.Lateness, op.HoldMillis(), a.unite)
	resetRows(&a.rows, in)
	return a, nil
}

// resetRows empties a batch that rows are appended to.
func resetRows(b *batch.Batch, s *batch.Schema) {
	b.Reset(s)
	for i := range b.Cols {
		b.Cols[i].Reset(s.Fields[i].Type, 0)
	}
}

// appendRow appends a row of another batch.
func appendRow(b, from *batch.Batch, row int32) {
	for i := range b.Cols {
		b.Cols[i].Append(&from.Cols[i], int(row))
	}
	b.Len++
}

// wholeRows are the rows of in that have no error anywhere; others cannot be kept
// and are dead.
func wholeRows(in *KeyedRows, out *Results, good batch.Sel) batch.Sel {
	good = good[:0]
	if good == nil {
		good = batch.Sel{}
	}
	for _, row := range in.Sel {
		if e := rowError(in.Batch, int(row)); e != nil {
			x := *e
			x.Row = row
			out.Dead(in.Batch, &x)
			continue
		}
		good = append(good, row)
	}
	return good
}

// Fold implements Keyed.
func (a *SessionAssign) Fold(_ *expr.Context, in *KeyedRows, out *Results) error {
	a.good = wholeRows(in, out, a.good)
	a.cols = colsAt(in.Batch, a.op.Keys, a.cols)
	a.slots = slices.Grow(a.slots[:0], in.Batch.Len)[:in.Batch.Len]
	if err := a.sessions.join(a.cols, in.Hashes, &in.Batch.Cols[a.op.Time], a.good, a.slots); err != nil {
		return err
	}
	a.resize()
	for _, row := range a.good {
		a.members[a.slots[row]] = append(a.members[a.slots[row]], int32(a.rows.Len))
		appendRow(&a.rows, in.Batch, row)
	}
	a.sessions.settle()
	return nil
}

func (a *SessionAssign) resize() {
	for len(a.members) < int(a.sessions.numbers) {
		a.members = append(a.members, nil)
	}
}

func (a *SessionAssign) unite(to, from int32) error {
	a.resize()
	a.members[to] = append(a.members[to], a.members[from]...)
	a.members[from] = nil
	return nil
}

// Advance implements Keyed.
func (a *SessionAssign) Advance(_ *expr.Context, time int64, out *Results) error {
	due := a.sessions.due(time)
	sel := batch.Sel{}
	var spans []Span
	for i := range due {
		s := a.sessions.span(due[i].session)
		for _, row := range a.members[due[i].number] {
			sel, spans = append(sel, row), append(spans, s)
		}
		a.gone += len(a.members[due[i].number])
		a.members[due[i].number] = nil
	}
	for from := 0; from < len(sel); from += emitRows {
		to := min(from+emitRows, len(sel))
		if err := a.emit(sel[from:to], spans[from:to], out); err != nil {
			return err
		}
	}
	a.sessions.release(due)
	a.compact()
	return nil
}

func (a *SessionAssign) emit(sel batch.Sel, spans []Span, out *Results) error {
	b, n := &a.result, len(a.in.Fields)
	b.Reset(a.out)
	b.Len = len(sel)
	for i := range n {
		b.Cols[i].Take(&a.rows.Cols[i], sel)
	}
	bounds := b.Cols[n:]
	for i := range bounds {
		bounds[i].Reset(a.out.Fields[n+i].Type, b.Len)
	}
	for i := range spans {
		put(bounds, i, spans[i])
	}
	return out.Emit(b)
}

// compact forgets rows that have been given when they are most of them.
func (a *SessionAssign) compact() {
	if a.gone < 1024 || a.gone < a.rows.Len/2 {
		return
	}
	sel := batch.Sel{}
	for g, rows := range a.members {
		for k, row := range rows {
			a.members[g][k] = int32(len(sel))
			sel = append(sel, row)
		}
	}
	var kept batch.Batch
	kept.Take(&a.rows, sel)
	a.rows, a.gone = kept, 0
}

// Save implements Keyed: the sessions, then their rows, each with the place of its
// session among them.
func (a *SessionAssign) Save() []byte {
	dst, numbers := a.sessions.save(nil)
	sel := batch.Sel{}
	var of []int64
	for k, g := range numbers {
		for _, row := range a.members[g] {
			sel, of = append(sel, row), append(of, int64(k))
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(sel)))
	for _, k := range of {
		dst = binary.AppendUvarint(dst, uint64(k))
	}
	for i := range a.rows.Cols {
		var v batch.Vec
		v.Take(&a.rows.Cols[i], sel)
		dst = state.AppendVec(dst, &v)
	}
	return dst
}

// Load implements Keyed.
func (a *SessionAssign) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	numbers, err := a.sessions.load(r, groups)
	if err != nil {
		return err
	}
	a.resize()
	of := make([]uint64, r.Count())
	for i := range of {
		if of[i] = r.Uvarint(); of[i] >= uint64(len(numbers)) {
			return state.ErrCorrupt
		}
	}
	saved := batch.Batch{Schema: a.in, Cols: make([]batch.Vec, len(a.in.Fields)), Len: len(of)}
	for i, f := range a.in.Fields {
		v := r.Vec(f.Type)
		if v.Len != len(of) {
			return state.ErrCorrupt
		}
		saved.Cols[i] = *v
	}
	if r.Err() != nil || r.Rest() > 0 {
		return state.ErrCorrupt
	}
	for i, k := range of {
		if g := numbers[k]; g >= 0 {
			a.members[g] = append(a.members[g], int32(a.rows.Len))
			appendRow(&a.rows, &saved, int32(i))
		}
	}
	return nil
}

// Kind implements Keyed.
func (*SessionAssign) Kind() string { return "SessionAssign" }

// Fingerprint implements Keyed.
func (a *SessionAssign) Fingerprint() uint64 {
	ts := []types.Type{}
	for _, f := range a.in.Fields {
		ts = append(ts, f.Type)
	}
	return windowFingerprint(append(ts, a.sessions.keyTypes...), a.op.Window)
}

// Bytes implements Keyed.
func (a *SessionAssign) Bytes() int64 {
	return a.sessions.bytes() + state.BatchBytes(&a.rows) + int64(4*a.rows.Len+24*len(a.members))
}
