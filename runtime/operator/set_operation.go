package operator

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/types"
)

// SetOperation is INTERSECT or EXCEPT of two inputs that end: it counts the rows
// of each side.
type SetOperation struct {
	op     *graph.SetOperation
	schema *batch.Schema
	types  []types.Type
	keys   *state.Keys
	counts [2][]int64
	done   bool
	cols   []*batch.Vec
	slots  []int32
	good   batch.Sel
	result batch.Batch
	disk   spillPlace
	runs   []*spill.Run
}

// NewSetOperation makes a subtask.
func NewSetOperation(op *graph.SetOperation, schema *batch.Schema) *SetOperation {
	s := &SetOperation{op: op, schema: schema, types: typesAt(schema, columnsOf(schema))}
	s.keys = state.NewKeys(s.types)
	return s
}

// Fold implements Keyed. A row with an error anywhere is equal to no other.
func (s *SetOperation) Fold(_ *expr.Context, in *KeyedRows, out *Results) error {
	s.good = s.good[:0]
	for _, row := range in.Sel {
		if e := rowError(in.Batch, int(row)); e != nil {
			x := *e
			x.Row = row
			out.Dead(in.Batch, &x)
			continue
		}
		s.good = append(s.good, row)
	}
	s.cols = colsAt(in.Batch, columnsOf(s.schema), s.cols)
	s.slots = slices.Grow(s.slots[:0], in.Batch.Len)[:in.Batch.Len]
	s.keys.Find(s.cols, in.Hashes, s.good, s.slots)
	s.resize()
	for _, row := range s.good {
		s.counts[in.Input][s.slots[row]]++
	}
	return nil
}

func (s *SetOperation) resize() {
	for i := range s.counts {
		s.counts[i] = append(s.counts[i], make([]int64, s.keys.Len()-len(s.counts[i]))...)
	}
}

// copies is how often the result has a row.
func (s *SetOperation) copies(slot int) int64 {
	return copiesOf(s.op, s.counts[0][slot], s.counts[1][slot])
}

// copiesOf is how often the result has a row that the sides have l and r times.
func copiesOf(op *graph.SetOperation, l, r int64) int64 {
	n := max(l-r, 0)
	switch {
	case op.Kind == graph.Intersect:
		n = min(l, r)
	case !op.All && r > 0:
		n = 0
	}
	if !op.All {
		n = min(n, 1)
	}
	return n
}

// Advance implements Keyed.
func (s *SetOperation) Advance(_ *expr.Context, time int64, out *Results) error {
	if time < batch.MaxWatermark || s.done {
		return nil
	}
	s.done = true
	if len(s.runs) > 0 {
		return s.closeRuns(out)
	}
	return s.give(out)
}

// give gives the rows in memory, and forgets them.
func (s *SetOperation) give(out *Results) error {
	var sel batch.Sel
	for slot := range s.keys.Len() {
		for range s.copies(slot) {
			if sel = append(sel, int32(slot)); len(sel) == emitRows {
				if err := s.emit(sel, out); err != nil {
					return err
				}
				sel = sel[:0]
			}
		}
	}
	if err := s.emit(sel, out); err != nil {
		return err
	}
	s.keys, s.counts = state.NewKeys(s.types), [2][]int64{}
	return nil
}

func (s *SetOperation) emit(sel batch.Sel, out *Results) error {
	if len(sel) == 0 {
		return nil
	}
	s.result.Reset(s.schema)
	s.result.Len = len(sel)
	for i := range s.result.Cols {
		s.result.Cols[i].Take(&s.keys.Columns()[i], sel)
	}
	return out.Emit(&s.result)
}

// Save implements Keyed: rows, and how often each side has them.
func (s *SetOperation) Save() []byte {
	return s.saveSlots(s.head(), slotsOf(0, s.keys.Len(), []int32{}))
}

// head begins a saved state: 1: the rows are given.
func (s *SetOperation) head() []byte {
	if s.done {
		return []byte{1}
	}
	return []byte{0}
}

// Load implements Keyed.
func (s *SetOperation) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	s.done = r.Byte() == 1 || s.done
	for r.Rest() > 0 {
		if err := s.loadSlots(r, groups.Has); err != nil {
			return err
		}
		if s.disk.over(s.Bytes()) {
			if err := s.Spill(); err != nil {
				return err
			}
		}
	}
	return r.Err()
}

// Kind implements Keyed.
func (s *SetOperation) Kind() string { return "SetOperation" }

// Fingerprint implements Keyed.
func (s *SetOperation) Fingerprint() uint64 { return state.Fingerprint(s.types) }

// Bytes implements Keyed.
func (s *SetOperation) Bytes() int64 {
	n := s.inMemory()
	for _, r := range s.runs {
		n += r.Memory()
	}
	return n
}

func (s *SetOperation) inMemory() int64 {
	return s.keys.Bytes() + 8*int64(cap(s.counts[0])+cap(s.counts[1]))
}
