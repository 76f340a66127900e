package operator

import (
	"encoding/binary"
	"math"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
)

// leftSays is what a SEMI, ANTI or MARK join has said of each left row.
type leftSays struct {
	is []saidOf
	// present is, by key slot, whether a right row of the key was there when its left
	// rows were looked at.
	present []bool
	// failed are the errors of conditions, by left row, since the last restart.
	failed map[int32]batch.ValueError
	out    batch.Batch
	kinds  []batch.Kind
	dirty  []int32
	marked map[int32]bool
}

// saidOf is of one left row: what was said, and, where a condition decides, how many
// of its pairs are TRUE, errors and unknown.
type saidOf struct {
	is                truth
	trues, errs, nuls int32
}

func (s *leftSays) grow(n int) {
	for len(s.is) < n {
		s.is = append(s.is, saidOf{})
	}
}

func (s *leftSays) set(row int32, x saidOf) { s.is[row] = x }

func (s *leftSays) save(dst []byte, row int32) []byte {
	x := &s.is[row]
	dst = append(dst, byte(x.is))
	for _, n := range [...]int32{x.trues, x.errs, x.nuls} {
		dst = binary.AppendUvarint(dst, uint64(max(n, 0)))
	}
	return dst
}

func readSaid(r *state.Reader) saidOf {
	x := saidOf{is: truth(r.Byte())}
	for _, n := range [...]*int32{&x.trues, &x.errs, &x.nuls} {
		*n = int32(min(r.Uvarint(), math.MaxInt32))
	}
	return x
}

// say deals with rows that come or go.
func (j *StreamJoin) say(m *matching, side int, rows []stored, sign int32, kind func(stored) batch.Kind) error {
	s := j.says
	resetRows(&s.out, m.out)
	s.kinds = s.kinds[:0]
	conditional := j.plan.op.Condition != nil
	switch {
	case side == 0 && sign < 0:
		for _, r := range rows {
			if err := j.appear(m, r.row, s.is[r.row].is, kind(r)); err != nil {
				return err
			}
			delete(s.failed, r.row)
		}
	case side == 0:
		if conditional {
			if err := j.count(m, 0, rows, 1); err != nil {
				return err
			}
		}
		for _, r := range rows {
			s.is[r.row].is = j.verdict(r.row)
			if err := j.appear(m, r.row, s.is[r.row].is, kind(r)); err != nil {
				return err
			}
		}
	default:
		s.dirty, s.marked = s.dirty[:0], map[int32]bool{}
		if conditional {
			if err := j.count(m, 1, rows, sign); err != nil {
				return err
			}
		} else {
			j.lookAgain(rows)
		}
		for _, row := range s.dirty {
			if err := j.changed(m, row); err != nil {
				return err
			}
		}
	}
	return j.give(m)
}

// note adds a left row to those to look at again.
func (s *leftSays) note(row int32) {
	if !s.marked[row] {
		s.marked[row] = true
		s.dirty = append(s.dirty, row)
	}
}

// lookAgain notes the left rows of keys that have their first right row now, or none
// any more, and those of groups of which that is so.
func (j *StreamJoin) lookAgain(rows []stored) {
	s, left, right := j.says, &j.side[0], &j.side[1]
	for len(s.present) < len(right.head) {
		s.present = append(s.present, false)
	}
	for _, r := range rows {
		if slot := right.slot[r.row]; slot >= 0 && s.present[slot] != (right.head[slot] >= 0) {
			s.present[slot] = right.head[slot] >= 0
			for l := left.head[slot]; l >= 0; l = left.next[l] {
				s.note(l)
			}
		}
		if j.groups != nil {
			j.groups.changed(r.row, s.note)
		}
	}
}

// told says that left rows know what there is of the right side.
func (s *leftSays) told(right *streamSide) {
	s.present = s.present[:0]
	for _, first := range right.head {
		s.present = append(s.present, first >= 0)
	}
}

// count evaluates the condition for the pairs of rows of a side, and adds to what is
// known of the left ones.
func (j *StreamJoin) count(m *matching, side int, rows []stored, sign int32) error {
	s, mine, other := j.says, &j.side[side], &j.side[1-side]
	flush := func() {
		if len(m.li) == 0 {
			return
		}
		m.truths()
		for k, l := range m.li {
			x := &s.is[l]
			switch m.truthOf(k) {
			case truthTrue:
				x.trues += sign
			case truthUnknown:
				x.nuls += sign
			case truthError:
				if x.errs += sign; s.failed == nil {
					s.failed = map[int32]batch.ValueError{}
				}
				s.failed[l] = *m.cond.out[0].Err(k)
			default:
				continue
			}
			if side == 1 {
				s.note(l)
			}
		}
		m.li, m.ri = m.li[:0], m.ri[:0]
	}
	for _, r := range rows {
		if mine.slot[r.row] < 0 {
			continue
		}
		for o := other.head[mine.slot[r.row]]; o >= 0; o = other.next[o] {
			l, ri := r.row, o
			if side == 1 {
				l, ri = o, r.row
			}
			if m.li, m.ri = append(m.li, l), append(m.ri, ri); len(m.li) == emitRows {
				flush()
			}
		}
	}
	flush()
	return nil
}

// verdict is what is to be said of a left row now.
func (j *StreamJoin) verdict(row int32) truth {
	x, slot := &j.says.is[row], j.side[0].slot[row]
	switch {
	case x.trues > 0:
		return truthTrue
	case x.errs > 0:
		return truthError
	case x.nuls > 0:
		return truthUnknown
	case j.plan.op.Condition == nil && slot >= 0 && j.side[1].head[slot] >= 0:
		return truthTrue
	case j.groups != nil:
		return j.groups.verdict(row, slot)
	case slot == errorSlot:
		return truthError
	}
	return truthFalse
}

// shows reports that a left row is among the result.
func (j *StreamJoin) shows(x truth) bool {
	switch j.plan.op.Kind {
	case graph.SemiJoin:
		return x == truthTrue
	case graph.AntiJoin:
		return x == truthFalse || x == truthUnknown
	}
	return true
}

// changed says of a left row what is true of it now.
func (j *StreamJoin) changed(m *matching, row int32) error {
	was, is := j.says.is[row].is, j.verdict(row)
	j.side[0].ages.touch(row)
	if was == is {
		return nil
	}
	j.says.is[row].is = is
	if j.plan.op.Kind == graph.MarkJoin {
		if err := j.appear(m, row, was, batch.UpdateBefore); err != nil {
			return err
		}
		return j.appear(m, row, is, batch.UpdateAfter)
	}
	if j.shows(was) == j.shows(is) {
		return nil
	}
	if j.shows(was) {
		if err := j.appear(m, row, was, batch.Delete); err != nil || is != truthError {
			return err
		}
	}
	return j.appear(m, row, is, batch.Insert)
}

// appear gives a left row with what is said of it, if that shows it. One of which
// nothing can be said is dead.
func (j *StreamJoin) appear(m *matching, row int32, x truth, kind batch.Kind) error {
	s, left := j.says, &j.side[0].rows
	mark := j.plan.op.Kind == graph.MarkJoin
	if x == truthError && !mark {
		if kind == batch.Insert || kind == batch.UpdateAfter {
			e := j.errorOf(row)
			e.Row = row
			m.res.Dead(left, &e)
		}
		return nil
	}
	if !j.shows(x) {
		return nil
	}
	width := len(left.Cols)
	for c := range width {
		s.out.Cols[c].Append(&left.Cols[c], int(row))
	}
	if mark {
		v := &s.out.Cols[width]
		switch x {
		case truthError, truthUnknown:
			v.AppendNull()
			if x == truthError {
				e := j.errorOf(row)
				v.SetErr(v.Len-1, e.Code, e.Where, e.Message)
			}
		default:
			v.Grow(1)
			v.Bools.Put(v.Len-1, x == truthTrue)
		}
	}
	s.out.Len++
	if s.kinds = append(s.kinds, kind); s.out.Len >= emitRows {
		return j.give(m)
	}
	return nil
}

// errorOf is why nothing can be said of a left row.
func (j *StreamJoin) errorOf(row int32) batch.ValueError {
	if e, ok := j.says.failed[row]; ok {
		return e
	}
	for _, c := range j.plan.op.InputKeys(0) {
		if e := j.side[0].rows.Cols[c].DeepErr(int(row)); e != nil {
			return *e
		}
	}
	return batch.ValueError{Code: batch.CodeArgument, Message: "the condition of a sub-query is an error for some of its rows"}
}

// give passes on what has gathered.
func (j *StreamJoin) give(m *matching) error {
	s := j.says
	if s.out.Len == 0 {
		return nil
	}
	for i := range s.out.Cols {
		s.out.Cols[i].PadOffsets()
	}
	s.out.Kinds = s.kinds
	err := m.res.Emit(&s.out)
	resetRows(&s.out, m.out)
	s.kinds = s.kinds[:0]
	return err
}
