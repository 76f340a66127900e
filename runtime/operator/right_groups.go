package operator

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

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
