package operator

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
)

// SessionAggregate is GROUP BY keys and a session of the keys: one subtask.
type SessionAggregate struct {
	op       *graph.WindowAggregate
	schema   *batch.Schema
	aggs     *aggSet
	sessions *sessions
	accs     []fn.Accumulator // by the sessions' numbers
	cols     []*batch.Vec
	slots    []int32
	groups   []int32
	buf      []byte
	out      batch.Batch
}

// NewSessionAggregate makes a subtask over the columns of in, with no state.
func NewSessionAggregate(op *graph.WindowAggregate, in, out *batch.Schema) (*SessionAggregate, error) {
	ws, aggs, err := windowParts(op, in, out)
	if err != nil {
		return nil, err
	}
	a := &SessionAggregate{op: op, schema: out, aggs: aggs, accs: aggs.accumulators(nil)}
	a.sessions = newSessions(ws, typesAt(in, op.Keys), op.Lateness, op.HoldMillis(), a.unite)
	return a, nil
}

// Fold implements Keyed.
func (a *SessionAggregate) Fold(ctx *expr.Context, in *KeyedRows, out *Results) error {
	sel := a.aggs.eval(ctx, in, out)
	a.cols = colsAt(in.Batch, a.op.Keys, a.cols)
	a.slots = slices.Grow(a.slots[:0], in.Batch.Len)[:in.Batch.Len]
	if err := a.sessions.join(a.cols, in.Hashes, &in.Batch.Cols[a.op.Time], sel, a.slots); err != nil {
		return err
	}
	a.resize()
	a.aggs.update(a.accs, a.slots, sel)
	a.sessions.settle()
	return nil
}

func (a *SessionAggregate) resize() {
	for _, x := range a.accs {
		x.Resize(int(a.sessions.numbers))
	}
}

// unite moves what a session holds into another one.
func (a *SessionAggregate) unite(to, from int32) error {
	for _, x := range a.accs {
		x.Resize(int(a.sessions.numbers))
		a.buf = x.AppendState(a.buf[:0], int(from))
		if err := x.MergeState(int(to), a.buf); err != nil {
			return err
		}
		x.Clear(int(from))
	}
	return nil
}

// Advance implements Keyed.
func (a *SessionAggregate) Advance(_ *expr.Context, time int64, out *Results) error {
	due := a.sessions.due(time)
	for from := 0; from < len(due); from += emitRows {
		if err := a.emit(due[from:min(from+emitRows, len(due))], out); err != nil {
			return err
		}
	}
	for _, f := range due {
		for _, x := range a.accs {
			x.Clear(int(f.number))
		}
	}
	a.sessions.release(due)
	return nil
}

func (a *SessionAggregate) emit(due []firedSession, out *Results) error {
	b := &a.out
	b.Reset(a.schema)
	b.Len = len(due)
	a.slots, a.groups = a.slots[:0], a.groups[:0]
	for i := range due {
		a.slots, a.groups = append(a.slots, due[i].key), append(a.groups, due[i].number)
	}
	keys := a.sessions.keys.Columns()
	for i := range keys {
		b.Cols[i].Take(&keys[i], a.slots)
	}
	for i, call := range a.aggs.outputs {
		a.accs[call].Emit(a.groups, a.aggs.calls[call].where, &b.Cols[len(keys)+i])
	}
	n := len(a.op.Keys) + len(a.op.Aggregates)
	bounds := b.Cols[n:]
	for i := range bounds {
		bounds[i].Reset(a.schema.Fields[n+i].Type, b.Len)
	}
	for i := range due {
		put(bounds, i, a.sessions.span(due[i].session))
	}
	return out.Emit(b)
}

// Save implements Keyed: the texts of the calls, the sessions, then what each has
// folded.
func (a *SessionAggregate) Save() []byte {
	dst, numbers := a.sessions.save(appendTexts(nil, a.aggs.texts()))
	for _, g := range numbers {
		for _, x := range a.accs {
			a.buf = x.AppendState(a.buf[:0], int(g))
			dst = state.AppendBytes(dst, a.buf)
		}
	}
	return dst
}

// Load implements Keyed.
func (a *SessionAggregate) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	to := readTexts(r, a.aggs.texts())
	numbers, err := a.sessions.load(r, groups)
	if err != nil {
		return err
	}
	a.resize()
	for _, g := range numbers {
		for _, k := range to {
			b := r.Bytes()
			if r.Err() != nil {
				return r.Err()
			}
			if g < 0 || k < 0 {
				continue
			}
			if err := a.accs[k].MergeState(int(g), b); err != nil {
				return err
			}
		}
	}
	if r.Rest() > 0 {
		return state.ErrCorrupt
	}
	return r.Err()
}

// Kind implements Keyed.
func (*SessionAggregate) Kind() string { return "SessionAggregate" }

// Fingerprint implements Keyed.
func (a *SessionAggregate) Fingerprint() uint64 {
	return windowFingerprint(a.sessions.keyTypes, a.op.Window)
}

// Bytes implements Keyed.
func (a *SessionAggregate) Bytes() int64 {
	n := a.sessions.bytes()
	for _, x := range a.accs {
		n += x.Bytes()
	}
	return n
}
