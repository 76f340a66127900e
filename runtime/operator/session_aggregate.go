package operator

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// SessionAggregate is GROUP BY keys and a session of the keys: one subtask.
type SessionAggregate struct {
	op       *graph.WindowAggregate
	schema   *batch.Schema
	aggs     *aggSet
	sessions *sessions
	held     *sessionAccs
	cols     []*batch.Vec
	slots    []int32
	groups   []int32
	out      batch.Batch
}

var _ Spilling = (*SessionAggregate)(nil)

// NewSessionAggregate makes a subtask over the columns of in, with no state.
func NewSessionAggregate(op *graph.WindowAggregate, in, out *batch.Schema) (*SessionAggregate, error) {
	ws, aggs, err := windowParts(op, in, out)
	if err != nil {
		return nil, err
	}
	a := &SessionAggregate{op: op, schema: out, aggs: aggs, held: &sessionAccs{aggs: aggs, accs: aggs.accumulators(nil)}}
	a.sessions = newSessions(ws, typesAt(in, op.Keys), op.Lateness, op.HoldMillis(), a.held)
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
	a.aggs.update(a.held.accs, a.slots, sel)
	a.sessions.settle()
	return nil
}

// Advance implements Keyed.
func (a *SessionAggregate) Advance(_ *expr.Context, time int64, out *Results) error {
	return a.sessions.fire(time, func(s *sessions, due []firedSession) error { return a.emit(s, due, out) })
}

func (a *SessionAggregate) emit(s *sessions, due []firedSession, out *Results) error {
	b := &a.out
	b.Reset(a.schema)
	b.Len = len(due)
	a.slots, a.groups = a.slots[:0], a.groups[:0]
	for i := range due {
		a.slots, a.groups = append(a.slots, due[i].key), append(a.groups, due[i].number)
	}
	keys, accs := s.keys.Columns(), s.held.(*sessionAccs).accs
	for i := range keys {
		b.Cols[i].Take(&keys[i], a.slots)
	}
	for i, call := range a.aggs.outputs {
		accs[call].Emit(a.groups, a.aggs.calls[call].where, &b.Cols[len(keys)+i])
	}
	n := len(a.op.Keys) + len(a.op.Aggregates)
	bounds := b.Cols[n:]
	for i := range bounds {
		bounds[i].Reset(a.schema.Fields[n+i].Type, b.Len)
	}
	for i := range due {
		put(bounds, i, s.span(due[i].session))
	}
	return out.Emit(b)
}

// Save implements Keyed: the texts of the calls, the sessions, then what each has
// folded.
func (a *SessionAggregate) Save() []byte {
	return a.sessions.saveHere(appendTexts(nil, a.aggs.texts()))
}

// SpillTo implements Spilling.
func (a *SessionAggregate) SpillTo(s *spill.Store, budget int64) { a.sessions.disk.SpillTo(s, budget) }

// Spill implements Spilling.
func (a *SessionAggregate) Spill() error { return a.sessions.disk.evict() }

// Spilled implements Spilling.
func (a *SessionAggregate) Spilled() bool { return a.sessions.disk.spilled() }

// SaveTo implements Spilling.
func (a *SessionAggregate) SaveTo(p *state.Payload) error {
	a.sessions.saveTo(p, appendTexts(nil, a.aggs.texts()))
	return nil
}

// Load implements Keyed.
func (a *SessionAggregate) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	a.held.to = readTexts(r, a.aggs.texts())
	defer func() { a.held.to = nil }()
	return a.sessions.load(r, groups)
}

// Kind implements Keyed.
func (*SessionAggregate) Kind() string { return "SessionAggregate" }

// Fingerprint implements Keyed.
func (a *SessionAggregate) Fingerprint() uint64 {
	return windowFingerprint(a.sessions.keyTypes, a.op.Window)
}

// Bytes implements Keyed.
func (a *SessionAggregate) Bytes() int64 { return a.sessions.Bytes() }

// sessionAccs are what sessions have folded.
type sessionAccs struct {
	aggs *aggSet
	accs []fn.Accumulator
	// to is, while saved state is loaded, by accumulator of its own which one it is now,
	// -1: none any more.
	to  []int
	own []int
	buf []byte
}

func (h *sessionAccs) fresh() sessionHeld {
	return &sessionAccs{aggs: h.aggs, accs: h.aggs.accumulators(nil)}
}

func (h *sessionAccs) resize(numbers int32) {
	for _, x := range h.accs {
		x.Resize(int(numbers))
	}
}

func (h *sessionAccs) unite(to, from int32) error {
	for _, x := range h.accs {
		h.buf = x.AppendState(h.buf[:0], int(from))
		if err := x.MergeState(int(to), h.buf); err != nil {
			return err
		}
		x.Clear(int(from))
	}
	return nil
}

func (h *sessionAccs) clear(number int32) {
	for _, x := range h.accs {
		x.Clear(int(number))
	}
}

func (h *sessionAccs) take(numbers []int32) {
	old := h.accs
	h.accs = h.aggs.accumulators(nil)
	h.resize(int32(len(numbers)))
	most := int32(-1)
	if len(numbers) > 0 {
		most = slices.Max(numbers)
	}
	into := slices.Repeat([]int32{-1}, int(most)+1)
	for i, n := range numbers {
		into[n] = int32(i)
	}
	for i := range h.accs {
		h.accs[i].Merge(old[i], into)
	}
}

func (h *sessionAccs) save(dst []byte, numbers []int32) []byte {
	for _, n := range numbers {
		for _, x := range h.accs {
			h.buf = x.AppendState(h.buf[:0], int(n))
			dst = state.AppendBytes(dst, h.buf)
		}
	}
	return dst
}

func (h *sessionAccs) load(r *state.Reader, sessions []int32) error {
	to := h.to
	if to == nil {
		h.own = numbers(len(h.accs), h.own)
		to = h.own
	}
	for _, n := range sessions {
		for _, k := range to {
			b := r.Bytes()
			if r.Err() != nil {
				return r.Err()
			}
			if n < 0 || k < 0 {
				continue
			}
			if err := h.accs[k].MergeState(int(n), b); err != nil {
				return err
			}
		}
	}
	return r.Err()
}

func (h *sessionAccs) bytes() int64 {
	var n int64
	for _, x := range h.accs {
		n += x.Bytes()
	}
	return n
}
