package operator

import (
	"encoding/binary"
	"math"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
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

// rightGroups are the keys before the operand of a null-aware join: of each, how many
// right rows it has, and how many whose operand is NULL; and its left rows.
type rightGroups struct {
	keys       *state.Keys
	rows, nuls []int32
	// known are, by group, bits of what its left rows were told: 1, it has rows; 2,
	// one with NULL.
	known      []byte
	head       []int32 // by group: its left rows
	next, prev []int32
	of         [2][]int32 // by row; -1: none
	null       []bool     // by right row
	buf        []byte
}

func newRightGroups(keyTypes []types.Type) *rightGroups {
	return &rightGroups{keys: state.NewKeys(keyTypes[:len(keyTypes)-1])}
}

// groupOf finds or makes the group of a row, -1: it equals nothing.
func (g *rightGroups) groupOf(cols []*batch.Vec, row int) int32 {
	for _, c := range cols {
		if c.IsNull(row) || isNaN(c, row) {
			return -1
		}
	}
	hash := uint64(0)
	if len(cols) > 0 {
		hash, g.buf = batch.HashKey(g.buf, cols, row)
	}
	at := g.keys.FindOne(cols, hash, row)
	for len(g.rows) < g.keys.Len() {
		g.rows, g.nuls, g.known, g.head = append(g.rows, 0), append(g.nuls, 0), append(g.known, 0), append(g.head, -1)
	}
	return at
}

// add notes rows that are kept now, once for each time they came.
func (g *rightGroups) add(j *StreamJoin, side int, b *batch.Batch, rows []stored) {
	cols := j.plan.cols
	last := len(cols) - 1
	for _, r := range rows {
		at := g.groupOf(cols[:last], int(r.from))
		if int(r.row) == len(g.of[side]) {
			g.of[side] = append(g.of[side], at)
			if side == 1 {
				g.null = append(g.null, cols[last].IsNull(int(r.from)))
			} else {
				g.next, g.prev = append(g.next, -1), append(g.prev, -1)
			}
		}
		switch {
		case at < 0:
		case side == 1:
			g.change(r.row, 1)
		default:
			if g.next[r.row] = g.head[at]; g.head[at] >= 0 {
				g.prev[g.head[at]] = r.row
			}
			g.head[at] = r.row
		}
	}
}

// change counts a right row n times more.
func (g *rightGroups) change(row, n int32) {
	at := g.of[1][row]
	if at < 0 {
		return
	}
	g.rows[at] += n
	if g.null[row] {
		g.nuls[at] += n
	}
}

// remove notes rows that go, once for each time.
func (g *rightGroups) remove(j *StreamJoin, side int, rows []stored) {
	for _, r := range rows {
		if side == 1 {
			g.change(r.row, -1)
		} else {
			g.unlink(r.row)
		}
	}
}

func (g *rightGroups) unlink(row int32) {
	at := g.of[0][row]
	if at < 0 {
		return
	}
	if p := g.prev[row]; p >= 0 {
		g.next[p] = g.next[row]
	} else {
		g.head[at] = g.next[row]
	}
	if n := g.next[row]; n >= 0 {
		g.prev[n] = g.prev[row]
	}
}

// forget drops a row whose time is over.
func (g *rightGroups) forget(side int, row int32, s *streamSide) {
	if side == 0 {
		g.unlink(row)
		return
	}
	g.change(row, -s.many[row])
}

// changed notes the left rows of a right row's group if what they are told of it has
// changed.
func (g *rightGroups) changed(row int32, note func(int32)) {
	at := g.of[1][row]
	if at < 0 {
		return
	}
	bits := g.bits(at)
	if bits == g.known[at] {
		return
	}
	g.known[at] = bits
	for l := g.head[at]; l >= 0; l = g.next[l] {
		note(l)
	}
}

// bits are what there is to be known of a group.
func (g *rightGroups) bits(at int32) byte {
	bits := byte(0)
	if g.rows[at] > 0 {
		bits |= 1
	}
	if g.nuls[at] > 0 {
		bits |= 2
	}
	return bits
}

// told says that left rows know all of their groups.
func (g *rightGroups) told() {
	for at := range g.known {
		g.known[at] = g.bits(int32(at))
	}
}

// verdict is of a left row without an equal value.
func (g *rightGroups) verdict(row, slot int32) truth {
	at := g.of[0][row]
	switch {
	case slot == errorSlot && (at < 0 || g.rows[at] > 0):
		return truthError
	case at < 0 || g.rows[at] <= 0:
		return truthFalse
	case slot == noSlot || g.nuls[at] > 0:
		return truthUnknown
	}
	return truthFalse
}

func (g *rightGroups) bytes() int64 {
	if g == nil {
		return 0
	}
	return g.keys.Bytes() + 4*int64(cap(g.rows)+cap(g.nuls)+cap(g.head)+cap(g.next)+cap(g.prev)+cap(g.of[0])+cap(g.of[1])) + int64(cap(g.known)+cap(g.null))
}
