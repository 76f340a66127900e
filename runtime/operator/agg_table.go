package operator

import (
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/types"
)

// aggTable is keys with their aggregates: the state of one window, or of a GROUP
// BY without one.
type aggTable struct {
	types []types.Type
	keys  *state.Keys
	accs  []fn.Accumulator
	// runs are parts of the groups that are on disk, see spiller.
	runs []*spill.Run
	// reached has, by branch of a wide table, a bit for each slot that a row of
	// the branch reached; nil elsewhere. branchOf is, by accumulator, its branch.
	reached  []batch.Bitmap
	branchOf []int
}

// newAggTable makes an empty table. branchOf is, by accumulator, its branch among that many
// of a wide table.
func newAggTable(keyTypes []types.Type, accs []fn.Accumulator, branches int, branchOf []int) *aggTable {
	t := &aggTable{types: keyTypes, keys: state.NewKeys(keyTypes), accs: accs, branchOf: branchOf}
	if branches > 0 {
		t.reached = make([]batch.Bitmap, branches)
	}
	return t
}

// resize gives every slot its place in the accumulators.
func (t *aggTable) resize() {
	n := t.keys.Len()
	for _, a := range t.accs {
		a.Resize(n)
	}
	for i := range t.reached {
		for len(t.reached[i]) < batch.BitmapBytes(n) {
			t.reached[i] = append(t.reached[i], 0)
		}
	}
}

// bytes estimates the memory.
func (t *aggTable) bytes() int64 {
	n := t.held()
	for _, r := range t.runs {
		n += r.Memory()
	}
	return n
}

// held is bytes of the groups that are in memory.
func (t *aggTable) held() int64 {
	n := t.keys.Bytes()
	for _, a := range t.accs {
		n += a.Bytes()
	}
	for _, r := range t.reached {
		n += int64(cap(r))
	}
	return n
}

// save appends the table: hashes, key columns, then by accumulator the state of
// each slot, then the reached bits.
func (t *aggTable) save(dst []byte) []byte {
	dst = slices.Grow(dst, int(t.bytes()))
	dst = state.AppendHashes(dst, t.keys.Hashes())
	for i := range t.keys.Columns() {
		dst = state.AppendVec(dst, &t.keys.Columns()[i])
	}
	return t.saveGroups(dst, slotsOf(0, t.keys.Len(), nil))
}

// saveGroups appends what a table has of slots behind their keys. What is of a branch that
// no row came from is nothing.
func (t *aggTable) saveGroups(dst []byte, slots []int32) []byte {
	var buf []byte
	for i, a := range t.accs {
		var reached batch.Bitmap
		if t.reached != nil {
			reached = t.reached[t.branchOf[i]]
		}
		for _, slot := range slots {
			if buf = buf[:0]; reached == nil || reached.Get(int(slot)) {
				buf = a.AppendState(buf, int(slot))
			}
			dst = state.AppendBytes(dst, buf)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(t.reached)))
	for _, r := range t.reached {
		bits := batch.Bitmap(append(buf[:0], make([]byte, batch.BitmapBytes(len(slots)))...))
		for i, slot := range slots {
			if r.Get(int(slot)) {
				bits.Set(i)
			}
		}
		dst, buf = state.AppendBytes(dst, bits), bits
	}
	return dst
}

// appendKeys appends the hashes of slots, then the columns of their keys.
func appendKeys(dst []byte, k *state.Keys, slots []int32) []byte {
	dst = state.AppendHashes(dst, hashesOf(k, slots))
	var v batch.Vec
	for i := range k.Columns() {
		v.Take(&k.Columns()[i], slots)
		dst = state.AppendVec(dst, &v)
	}
	return dst
}

// readKeys reads what appendKeys has appended.
func readKeys(r *state.Reader, of []types.Type) (cols []*batch.Vec, hashes []uint64, err error) {
	hashes = r.Hashes()
	cols = make([]*batch.Vec, len(of))
	for i, t := range of {
		if cols[i] = r.Vec(t); cols[i].Len != len(hashes) {
			return nil, nil, state.ErrCorrupt
		}
	}
	return cols, hashes, r.Err()
}

// saveSlots appends the slots as a table.
func (t *aggTable) saveSlots(dst []byte, slots []int32) []byte {
	return t.saveGroups(appendKeys(dst, t.keys, slots), slots)
}

// take is a table of the slots of live alone, with accumulators made anew.
func (t *aggTable) take(live []int32, accs []fn.Accumulator) *aggTable {
	into := slices.Repeat([]int32{-1}, t.keys.Len())
	for i, slot := range live {
		into[slot] = int32(i)
	}
	out := &aggTable{types: t.types, keys: t.keys.Take(live), accs: accs, runs: t.runs}
	out.resize()
	for i := range accs {
		accs[i].Merge(t.accs[i], into)
	}
	return out
}

// load takes in what is of the given groups. to says, by accumulator in the
// saved state, which of the table's it is, -1: none any more; branches likewise.
func (t *aggTable) load(r *state.Reader, keyTypes []types.Type, groups state.Range, to, branches []int) error {
	_, err := t.loadSlots(r, keyTypes, groups, to, branches)
	return err
}

// loadSlots is load; it gives the slot of each saved one, -1: it is of another
// group.
func (t *aggTable) loadSlots(r *state.Reader, keyTypes []types.Type, groups state.Range, to, branches []int) ([]int32, error) {
	return t.loadWhere(r, keyTypes, func(_ []*batch.Vec, _ int, h uint64) bool { return groups.Has(h) }, to, branches)
}

// wanted says of a saved key, by its place in the columns and its hash, whether it is
// to be loaded.
type wanted func(cols []*batch.Vec, i int, hash uint64) bool

// loadWhere is loadSlots of the keys that are wanted.
func (t *aggTable) loadWhere(r *state.Reader, keyTypes []types.Type, is wanted, to, branches []int) ([]int32, error) {
	hashes := r.Hashes()
	cols := make([]*batch.Vec, len(keyTypes))
	for i := range cols {
		cols[i] = r.Vec(keyTypes[i])
		if cols[i].Len != len(hashes) {
			return nil, state.ErrCorrupt
		}
	}
	sel := batch.Sel{}
	for i, h := range hashes {
		if is(cols, i, h) {
			sel = append(sel, int32(i))
		}
	}
	slots := make([]int32, len(hashes))
	for i := range slots {
		slots[i] = -1
	}
	t.keys.Find(cols, hashes, sel, slots)
	t.resize()
	for _, a := range to {
		for i := range hashes {
			b := r.Bytes()
			if r.Err() != nil {
				return nil, r.Err()
			}
			if slots[i] < 0 || a < 0 || len(b) == 0 {
				continue
			}
			if err := t.accs[a].MergeState(int(slots[i]), b); err != nil {
				return nil, err
			}
		}
	}
	if n := r.Count(); n != len(branches) {
		return nil, state.ErrCorrupt
	}
	for _, to := range branches {
		bits := batch.Bitmap(r.Bytes())
		if len(bits) < batch.BitmapBytes(len(hashes)) {
			return nil, state.ErrCorrupt
		}
		for i := range hashes {
			if slots[i] >= 0 && to >= 0 && bits.Get(i) {
				t.reached[to].Set(int(slots[i]))
			}
		}
	}
	return slots, r.Err()
}

// appendTexts and readTexts are the names of accumulators in saved state: one
// slot of state for each canonical call text, so that adding a call keeps the
// others.
func appendTexts(dst []byte, texts []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(texts)))
	for _, s := range texts {
		dst = state.AppendBytes(dst, s)
	}
	return dst
}

func readTexts(r *state.Reader, own []string) []int {
	to := make([]int, r.Count())
	for i := range to {
		to[i] = -1
		s := r.String()
		for k := range own {
			if own[k] == s {
				to[i] = k
			}
		}
	}
	return to
}

// slotsOf is the slots of a chunk as the accumulators and Take want them.
func slotsOf(from, to int, buf []int32) []int32 {
	buf = buf[:0]
	for s := from; s < to; s++ {
		buf = append(buf, int32(s))
	}
	return buf
}

func typesAt(s *batch.Schema, cols []int) []types.Type {
	out := make([]types.Type, len(cols))
	for i, c := range cols {
		out[i] = s.Fields[c].Type
	}
	return out
}

func colsAt(b *batch.Batch, cols []int, out []*batch.Vec) []*batch.Vec {
	out = out[:0]
	for _, c := range cols {
		out = append(out, &b.Cols[c])
	}
	return out
}
