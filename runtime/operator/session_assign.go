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

// SessionAssign gives the rows of each session with its bounds when the session
// is over: one subtask. It keeps the rows until then.
type SessionAssign struct {
	op       *graph.SessionAssign
	in, out  *batch.Schema
	sessions *sessions
	held     *sessionRows
	cols     []*batch.Vec
	slots    []int32
	good     batch.Sel
	result   batch.Batch
}

var _ Spilling = (*SessionAssign)(nil)

// NewSessionAssign makes a subtask over the columns of in, with no state.
func NewSessionAssign(op *graph.SessionAssign, in, out *batch.Schema) (*SessionAssign, error) {
	ws, err := NewWindows(op.Window, in.Fields[op.Time].Type)
	if err != nil {
		return nil, err
	}
	if len(out.Fields) != len(in.Fields)+3 {
		return nil, fmt.Errorf("session table of %d columns over %d", len(out.Fields), len(in.Fields))
	}
	a := &SessionAssign{op: op, in: in, out: out, held: newSessionRows(in)}
	a.sessions = newSessions(ws, typesAt(in, op.Keys), op.Lateness, op.HoldMillis(), a.held)
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
	for _, row := range a.good {
		a.held.add(a.slots[row], in.Batch, row)
	}
	a.sessions.settle()
	return nil
}

// Advance implements Keyed.
func (a *SessionAssign) Advance(_ *expr.Context, time int64, out *Results) error {
	err := a.sessions.fire(time, func(s *sessions, due []firedSession) error {
		held := s.held.(*sessionRows)
		sel := batch.Sel{}
		var spans []Span
		for i := range due {
			span := s.span(due[i].session)
			for _, row := range held.members[due[i].number] {
				sel, spans = append(sel, row), append(spans, span)
			}
		}
		for from := 0; from < len(sel); from += emitRows {
			to := min(from+emitRows, len(sel))
			if err := a.emit(&held.rows, sel[from:to], spans[from:to], out); err != nil {
				return err
			}
		}
		return nil
	})
	a.held.compact()
	return err
}

func (a *SessionAssign) emit(rows *batch.Batch, sel batch.Sel, spans []Span, out *Results) error {
	b, n := &a.result, len(a.in.Fields)
	b.Reset(a.out)
	b.Len = len(sel)
	for i := range n {
		b.Cols[i].Take(&rows.Cols[i], sel)
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

// Save implements Keyed: the sessions, then their rows, each with the place of its
// session among them.
func (a *SessionAssign) Save() []byte { return a.sessions.saveHere(nil) }

// SpillTo implements Spilling.
func (a *SessionAssign) SpillTo(s *spill.Store, budget int64) { a.sessions.disk.SpillTo(s, budget) }

// Spill implements Spilling.
func (a *SessionAssign) Spill() error {
	if a.sessions.disk.store == nil {
		return nil
	}
	if err := a.checkKeys(); err != nil {
		return err
	}
	return a.sessions.disk.evict()
}

// checkKeys is an error where the rows of a key do not fit.
func (a *SessionAssign) checkKeys() error {
	most := 0
	for _, list := range a.sessions.byKey {
		rows := 0
		for _, s := range list {
			rows += len(a.held.members[s.number])
		}
		most = max(most, rows)
	}
	return checkKey("a session window", int64(most)*a.held.bytes()/int64(max(a.held.rows.Len, 1)), a.sessions.disk.budget)
}

// Spilled implements Spilling.
func (a *SessionAssign) Spilled() bool { return a.sessions.disk.spilled() }

// SaveTo implements Spilling.
func (a *SessionAssign) SaveTo(p *state.Payload) error {
	a.sessions.saveTo(p, nil)
	return nil
}

// Load implements Keyed.
func (a *SessionAssign) Load(payload []byte, groups state.Range) error {
	return a.sessions.load(state.NewReader(payload), groups)
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
func (a *SessionAssign) Bytes() int64 { return a.sessions.Bytes() }
