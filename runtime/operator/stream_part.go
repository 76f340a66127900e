package operator

import (
	"encoding/binary"
	"math"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
)

// joinPart is some keys of a StreamJoin and, of each side, their rows: the columns, which
// are not in it, then of each row its key by place, and what Save has of it, then the ages.
type joinPart struct {
	keys []byte
	rows [2]batch.Sel
	rest [2][]byte
}

// savePart appends a joinPart with the columns.
func (j *StreamJoin) savePart(dst []byte, slots []int32, loose bool) []byte {
	return j.part(slots, loose).save(dst, &[2]rowStore{j.side[0].rowStore, j.side[1].rowStore})
}

func (x *joinPart) save(dst []byte, from *[2]rowStore) []byte {
	dst = append(dst, x.keys...)
	for i := range from {
		dst = append(from[i].saveSel(dst, x.rows[i]), x.rest[i]...)
	}
	return dst
}

// part is the keys of slots. loose: rows whose key equals nothing are among them.
func (j *StreamJoin) part(slots []int32, loose bool) *joinPart {
	x := &joinPart{keys: appendKeys(nil, j.keys, slots)}
	for i := range j.side {
		s := &j.side[i]
		rows, of := batch.Sel{}, []uint64{}
		if loose {
			rows = s.of(noSlot, rows)
			for _, row := range rows {
				of = append(of, uint64(s.slot[row]-errorSlot)) // 0 or 1
			}
		}
		for k, slot := range slots {
			rows = s.of(slot, rows)
			for len(of) < len(rows) {
				of = append(of, uint64(k)+2)
			}
		}
		var rest []byte
		for k, row := range rows {
			rest = j.saveRow(binary.AppendUvarint(rest, of[k]), i, row)
		}
		x.rows[i], x.rest[i] = rows, s.ages.save(rest, rows)
	}
	return x
}

// saveRow appends what is kept of a row beside its columns.
func (j *StreamJoin) saveRow(dst []byte, side int, row int32) []byte {
	s := &j.side[side]
	dst = binary.AppendUvarint(dst, uint64(max(s.matches[row], 0)))
	if s.counted {
		dst = binary.AppendUvarint(dst, uint64(s.many[row]))
	}
	if j.says != nil && side == 0 {
		dst = j.says.save(dst, row)
	}
	return dst
}

// keptRow is what saveRow has written.
type keptRow struct {
	matches, many int32
	said          saidOf
}

func (j *StreamJoin) readRow(r *state.Reader, side int) (keptRow, error) {
	var x keptRow
	n := r.Uvarint()
	if n > math.MaxInt32 {
		return x, state.ErrCorrupt
	}
	x.matches = int32(n)
	if j.side[side].counted {
		if n = r.Uvarint(); n == 0 || n > math.MaxInt32 {
			return x, state.ErrCorrupt
		}
		x.many = int32(n)
	}
	if j.says != nil && side == 0 {
		x.said = readSaid(r)
	}
	return x, r.Err()
}

// loadPart reads a savePart of an instant. Keys that are wanted replace those there are;
// free says whether a row whose key equals nothing is wanted, nil: all of them.
func (j *StreamJoin) loadPart(r *state.Reader, is wanted, free func(side int, b *batch.Batch, row int) bool, now int64) error {
	hashes := r.Hashes()
	cols := make([]*batch.Vec, len(j.plan.keyTypes))
	for i := range cols {
		if cols[i] = r.Vec(j.plan.keyTypes[i]); cols[i].Len != len(hashes) {
			return state.ErrCorrupt
		}
	}
	slots := make([]int32, len(hashes))
	for k, h := range hashes {
		slots[k] = -1
		if !is(cols, k, h) {
			continue
		}
		slots[k] = j.keys.FindOne(cols, h, k)
		for i := range j.side {
			j.side[i].grow(j.keys.Len())
			j.side[i].forgetAll(slots[k])
		}
	}
	for side := range j.side {
		if err := j.loadRowsOf(r, side, slots, free, now); err != nil {
			return err
		}
	}
	if j.says != nil {
		for _, slot := range slots {
			if slot >= 0 {
				j.says.look(&j.side[1], slot)
			}
		}
	}
	return r.Err()
}

// forgetAll lets go of the rows of a slot.
func (s *streamSide) forgetAll(slot int32) {
	for row := s.head[slot]; row >= 0; row = s.head[slot] {
		s.unlink(row)
		s.slot[row] = goneSlot
	}
}

// look notes whether a key has a right row.
func (s *leftSays) look(right *streamSide, slot int32) {
	for len(s.present) < len(right.head) {
		s.present = append(s.present, false)
	}
	s.present[slot] = right.head[slot] >= 0
}

// loadRowsOf reads the rows of a side and takes in those of slots that are not -1. Those
// whose time is over are left out.
func (j *StreamJoin) loadRowsOf(r *state.Reader, side int, slots []int32, free func(side int, b *batch.Batch, row int) bool, now int64) error {
	s := &j.side[side]
	b, err := readRows(r, j.plan.in[side])
	if err != nil {
		return err
	}
	kept, to := make([]keptRow, b.Len), make([]int32, b.Len)
	for row := range b.Len {
		key := r.Uvarint()
		switch {
		case key >= uint64(len(slots))+2:
			return state.ErrCorrupt
		case key >= 2:
			to[row] = slots[key-2]
			if to[row] < 0 {
				to[row] = goneSlot
			}
		case free == nil || free(side, b, row):
			to[row] = int32(key) + errorSlot
		default:
			to[row] = goneSlot
		}
		if kept[row], err = j.readRow(r, side); err != nil {
			return err
		}
	}
	at := readAges(r, b.Len, now)
	if err := r.Err(); err != nil {
		return err
	}
	sel := batch.Sel{}
	for row := range b.Len {
		switch {
		case to[row] == goneSlot:
		case s.ages.on() && s.ages.over(at[row]):
			j.disk.expired++
		default:
			sel = append(sel, int32(row))
		}
	}
	j.all = colsAt(b, columnsOf(b.Schema), j.all)
	first := int32(s.rowStore.add(b, sel))
	for i, row := range sel {
		var hash uint64
		if s.byHash {
			hash = j.hash(row)
		}
		id, x := first+int32(i), &kept[row]
		s.append(id, to[row], hash)
		s.matches[id] = x.matches
		if s.counted {
			s.many[id] = x.many
		}
		if j.says != nil && side == 0 {
			j.says.grow(s.rows.Len)
			j.says.set(id, x.said)
		}
		s.ages.hold(id, at[row])
	}
	return nil
}
