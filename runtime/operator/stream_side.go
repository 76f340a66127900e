package operator

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
)

// goneSlot marks a row that is not there any more.
const goneSlot = -3

// streamSide is the rows of one input of a StreamJoin, chained by key.
type streamSide struct {
	rowStore
	slot []int32 // by row; noSlot: it has no partner
	// head is by slot, next and prev by row; loose is the head of rows without a
	// slot.
	head, next, prev []int32
	loose            int32
	// byHash: rows are found again, by hash; counted: equal rows are one, many
	// times.
	byHash, counted bool
	hashes          []uint64
	many            []int32
	// matches is, by row, the number of its partners.
	matches []int32
	ages    ages
	gone    int
}

// grow makes chains for n slots.
func (s *streamSide) grow(n int) {
	for len(s.head) < n {
		s.head = append(s.head, -1)
	}
}

// first is the head of a slot's chain.
func (s *streamSide) first(slot int32) *int32 {
	if slot < 0 {
		return &s.loose
	}
	return &s.head[slot]
}

// append notes a row that the store has taken.
func (s *streamSide) append(row, slot int32, hash uint64) {
	head := s.first(slot)
	s.slot, s.matches = append(s.slot, slot), append(s.matches, 0)
	s.next, s.prev = append(s.next, *head), append(s.prev, -1)
	if *head >= 0 {
		s.prev[*head] = row
	}
	*head = row
	if s.byHash {
		s.hashes = append(s.hashes, hash)
	}
	if s.counted {
		s.many = append(s.many, 0)
	}
}

// unlink takes a row out of its chain.
func (s *streamSide) unlink(row int32) {
	if p := s.prev[row]; p >= 0 {
		s.next[p] = s.next[row]
	} else {
		*s.first(s.slot[row]) = s.next[row]
	}
	if n := s.next[row]; n >= 0 {
		s.prev[n] = s.prev[row]
	}
	s.ages.drop(row)
	s.gone++
}

// find is a row of a slot that is equal to a row of b, -1: none.
func (s *streamSide) find(slot int32, hash uint64, b *batch.Batch, row int32) int32 {
	for at := *s.first(slot); at >= 0; at = s.next[at] {
		if s.hashes[at] == hash && s.slot[at] == slot && equalRows(&s.rows, at, b, row) {
			return at
		}
	}
	return -1
}

// live are the rows that are there.
func (s *streamSide) live() batch.Sel {
	out := batch.Sel{}
	for row, slot := range s.slot {
		if slot != goneSlot {
			out = append(out, int32(row))
		}
	}
	return out
}

func (s *streamSide) bytes() int64 {
	return s.rowStore.bytes() + s.ages.bytes() + 4*int64(cap(s.slot)+cap(s.head)+cap(s.next)+cap(s.prev)+cap(s.many)+cap(s.matches)) + 8*int64(cap(s.hashes))
}

// Save implements Keyed: of each side the rows, how many partners each has, how
// often it is there, and their ages; then what is said of left rows.
func (j *StreamJoin) Save() []byte {
	var dst []byte
	for i := range j.side {
		s := &j.side[i]
		live := s.live()
		dst = s.saveSel(dst, live)
		for _, row := range live {
			dst = j.saveRow(dst, i, row)
		}
		dst = s.ages.save(dst, live)
	}
	return dst
}

// Load implements Keyed.
func (j *StreamJoin) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	if n := state.NewReader(payload).Uvarint(); n == streamParts || n == streamMore {
		if err := j.loadParts(r, groups); err != nil {
			return err
		}
	} else {
		for side := range j.side {
			if err := j.loadSide(r, side, groups); err != nil {
				return err
			}
		}
		if j.says != nil {
			j.says.told(&j.side[1])
		}
		if j.groups != nil {
			j.groups.told()
		}
	}
	if r.Rest() > 0 || r.Err() != nil {
		return state.ErrCorrupt
	}
	if j.disk.over(j.Bytes()) {
		return j.Spill()
	}
	return nil
}

func (j *StreamJoin) loadSide(r *state.Reader, side int, groups state.Range) error {
	p, s := j.plan, &j.side[side]
	b, err := readRows(r, p.in[side])
	if err != nil {
		return err
	}
	kept := make([]keptRow, b.Len)
	for row := range kept {
		if kept[row], err = j.readRow(r, side); err != nil {
			return err
		}
	}
	at := s.ages.read(r, b.Len)
	if err := r.Err(); err != nil {
		return err
	}
	var ids []int32
	var times []int64
	for _, x := range j.add(side, b, p.own(side, b, groups), nil) {
		k := &kept[x.from]
		s.matches[x.row] = k.matches
		if s.counted {
			if j.groups != nil {
				j.groups.change(x.row, k.many-1)
			}
			s.many[x.row] = k.many
		}
		if j.says != nil && side == 0 {
			j.says.set(x.row, k.said)
		}
		s.ages.drop(x.row)
		ids, times = append(ids, x.row), append(times, at[x.from])
	}
	s.ages.restore(ids, times)
	return nil
}
