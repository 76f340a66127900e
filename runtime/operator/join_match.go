package operator

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
)

// matching pairs the rows of a joinTable, a chunk of pairs at a time.
type matching struct {
	*joinTable
	ctx *expr.Context
	res *Results

	// left is the truth of each left row so far, failed its errors.
	left   []truth
	failed map[int32]batch.ValueError
	// match is, by left row of a single join, the right row: -1 none, -2 several.
	match []int32
	right batch.Bitmap
}

const several = -2

func (m *matching) run() error {
	m.start()
	if err := m.pairOff(); err != nil {
		return err
	}
	if err := m.giveLeft(); err != nil {
		return err
	}
	return m.giveRight()
}

// start forgets what is known of rows.
func (m *matching) start() {
	m.startLeft()
	m.right = nil
	if m.op.Kind.KeepsRight() {
		m.right = make(batch.Bitmap, batch.BitmapBytes(m.side[1].rows.Len))
	}
}

// startLeft forgets what is known of left rows.
func (m *matching) startLeft() {
	n := m.side[0].rows.Len
	m.left = resized(m.left, n)
	clear(m.left)
	m.failed = nil
	if m.op.Kind == graph.SingleJoin {
		m.match = resized(m.match, n)
		for i := range m.match {
			m.match[i] = -1
		}
	}
}

// pairOff looks at the left rows' pairs.
func (m *matching) pairOff() error {
	if m.keysDecide() {
		m.byKeys()
		return nil
	}
	return m.byPairs()
}

// giveLeft gives what is there of left rows, all of whose pairs were looked at, beside
// their pairs.
func (m *matching) giveLeft() error {
	switch m.op.Kind {
	case graph.SemiJoin, graph.AntiJoin:
		return m.emitLeft()
	case graph.MarkJoin:
		return m.emitMarks()
	case graph.SingleJoin:
		return m.emitSingle()
	case graph.LeftJoin, graph.FullJoin:
		m.pass = m.pass[:0]
		for i, x := range m.left {
			if x != truthTrue {
				m.pass = append(m.pass, int32(i))
			}
		}
		return m.emitPadded(0, m.pass)
	}
	return nil
}

// giveRight pads the right rows that have met no left one.
func (m *matching) giveRight() error {
	if !m.op.Kind.KeepsRight() {
		return nil
	}
	m.pass = m.pass[:0]
	for i := range m.side[1].rows.Len {
		if !m.right.Get(i) {
			m.pass = append(m.pass, int32(i))
		}
	}
	return m.emitPadded(1, m.pass)
}

func (m *matching) byKeys() {
	for i, slot := range m.leftSlot {
		switch {
		case slot >= 0 && m.head[slot] >= 0:
			m.left[i] = truthTrue
		case m.op.NullAware:
			m.left[i] = max(m.left[i], m.nullAware(i, slot))
		case slot == errorSlot:
			m.left[i] = truthError
		}
	}
}

// nullAware is the truth of x IN (...) for a left row without an equal value.
func (m *matching) nullAware(row int, slot int32) truth {
	g := m.leftGroup[row]
	switch {
	case slot == errorSlot && (g < 0 || m.groupRows[g]):
		return truthError
	case g < 0 || !m.groupRows[g]:
		return truthFalse // nothing to compare with
	case slot == noSlot || m.groupNull[g]:
		return truthUnknown
	}
	return truthFalse
}

// byPairs looks at every pair of equal keys.
func (m *matching) byPairs() error {
	for i, slot := range m.leftSlot {
		if slot == errorSlot {
			m.left[i] = truthError
		}
		if slot < 0 {
			continue
		}
		for r := m.head[slot]; r >= 0; r = m.next[r] {
			m.li, m.ri = append(m.li, int32(i)), append(m.ri, r)
			if len(m.li) == emitRows {
				if err := m.flush(); err != nil {
					return err
				}
			}
		}
	}
	return m.flush()
}

// flush decides about the pairs collected.
func (m *matching) flush() error {
	if len(m.li) == 0 {
		return nil
	}
	defer func() { m.li, m.ri = m.li[:0], m.ri[:0] }()
	givesPairs := m.op.Kind <= graph.FullJoin
	if givesPairs || m.cond.prog != nil {
		m.pairUp()
	}
	m.pass = m.pass[:0]
	if m.cond.prog == nil {
		for k := range m.li {
			m.decide(k, truthTrue)
		}
	} else {
		m.cond.prog.Eval(m.ctx, &m.pairs, nil, m.cond.out)
		for k := range m.li {
			m.decide(k, truthAt(&m.cond.out[0], k))
		}
	}
	if !givesPairs {
		return nil
	}
	return m.emitPassed()
}

// emitPassed gives the pairs that the condition let through.
func (m *matching) emitPassed() error {
	if len(m.pass) == 0 {
		return nil
	}
	m.pairs.Schema = m.out
	if len(m.pass) == len(m.li) {
		return m.res.Emit(&m.pairs)
	}
	m.result.Take(&m.pairs, m.pass)
	return m.res.Emit(&m.result)
}

// pairUp makes the pairs' columns.
func (m *matching) pairUp() {
	m.pairs.Reset(m.pair)
	m.pairs.Len = len(m.li)
	width := len(m.in[0].Fields)
	for c := range m.pairs.Cols {
		if c < width {
			m.pairs.Cols[c].Take(&m.side[0].rows.Cols[c], m.li)
		} else {
			m.pairs.Cols[c].Take(&m.side[1].rows.Cols[c-width], m.ri)
		}
	}
}

// decide notes what pair k is.
func (m *matching) decide(k int, x truth) {
	l, r := m.li[k], m.ri[k]
	if x == truthError {
		e := *m.cond.out[0].Err(k)
		if m.op.Kind <= graph.FullJoin {
			// The pair is dead, not without a match: nothing is padded for it.
			e.Row = int32(k)
			m.res.Dead(&m.pairs, &e)
			m.left[l] = truthTrue
			if m.right != nil {
				m.right.Set(int(r))
			}
			return
		}
		if m.failed == nil {
			m.failed = map[int32]batch.ValueError{}
		}
		if _, ok := m.failed[l]; !ok {
			m.failed[l] = e
		}
	}
	m.left[l] = max(m.left[l], x)
	if x != truthTrue {
		return
	}
	m.pass = append(m.pass, int32(k))
	if m.right != nil {
		m.right.Set(int(r))
	}
	if m.match != nil {
		if m.match[l] == -1 {
			m.match[l] = r
		} else {
			m.match[l] = several
		}
	}
}

// leftError is the error of a left row.
func (m *matching) leftError(row int32) batch.ValueError {
	if e, ok := m.failed[row]; ok {
		return e
	}
	for _, c := range m.op.InputKeys(0) {
		if e := m.side[0].rows.Cols[c].DeepErr(int(row)); e != nil {
			return *e
		}
	}
	return batch.ValueError{Code: batch.CodeArgument, Message: "BUG: a join's row failed without a reason"}
}

// emitLeft gives the left rows of SEMI and ANTI.
func (m *matching) emitLeft() error {
	want := truthTrue
	if m.op.Kind == graph.AntiJoin {
		want = truthFalse
	}
	m.pass = m.pass[:0]
	for i, x := range m.left {
		switch {
		case x == truthError:
			e := m.leftError(int32(i))
			e.Row = int32(i)
			m.res.Dead(&m.side[0].rows, &e)
		case (x == truthTrue) == (want == truthTrue):
			m.pass = append(m.pass, int32(i))
		}
	}
	return m.emitChunks(m.pass, func(sel batch.Sel, out *batch.Batch) {
		for c := range out.Cols {
			out.Cols[c].Take(&m.side[0].rows.Cols[c], sel)
		}
	})
}

// emitChunks gives the rows of sel in batches that fill makes.
func (m *matching) emitChunks(sel batch.Sel, fill func(batch.Sel, *batch.Batch)) error {
	for len(sel) > 0 {
		n := min(len(sel), emitRows)
		m.result.Reset(m.out)
		m.result.Len = n
		fill(sel[:n], &m.result)
		if err := m.res.Emit(&m.result); err != nil {
			return err
		}
		sel = sel[n:]
	}
	return nil
}

func (m *matching) allLeft() batch.Sel {
	sel := make(batch.Sel, len(m.left))
	for i := range sel {
		sel[i] = int32(i)
	}
	return sel
}

func (m *matching) emitMarks() error {
	width := len(m.in[0].Fields)
	return m.emitChunks(m.allLeft(), func(sel batch.Sel, out *batch.Batch) {
		for c := range width {
			out.Cols[c].Take(&m.side[0].rows.Cols[c], sel)
		}
		v := &out.Cols[width]
		v.Reset(types.NewBoolean(), len(sel))
		for k, row := range sel {
			switch m.left[row] {
			case truthError:
				e := m.leftError(row)
				v.SetErr(k, e.Code, e.Where, e.Message)
			case truthUnknown:
				v.SetNull(k)
			default:
				v.Bools.Put(k, m.left[row] == truthTrue)
			}
		}
	})
}

// emitSingle gives every left row with the columns of its one match.
func (m *matching) emitSingle() error {
	width := len(m.in[0].Fields)
	return m.emitChunks(m.allLeft(), func(sel batch.Sel, out *batch.Batch) {
		for c := range out.Cols {
			v := &out.Cols[c]
			if c < width {
				v.Take(&m.side[0].rows.Cols[c], sel)
				continue
			}
			v.Reset(m.in[1].Fields[c-width].Type, len(sel))
			for k, row := range sel {
				switch r := m.match[row]; {
				case m.left[row] == truthError:
					e := m.leftError(row)
					v.NullRow(k)
					v.SetErr(k, e.Code, e.Where, e.Message)
				case r == several:
					v.NullRow(k)
					v.SetErr(k, CodeSubqueryRows, m.out.Fields[c].Name, "the scalar sub-query gives more than one row")
				case r < 0:
					v.NullRow(k)
				default:
					v.Put(k, &m.side[1].rows.Cols[c-width], int(r))
				}
			}
			v.PadOffsets()
		}
	})
}

// emitPadded gives rows of one side with NULLs for the other.
func (m *matching) emitPadded(side int, rows batch.Sel) error {
	width := len(m.in[0].Fields)
	return m.emitChunks(rows, func(sel batch.Sel, out *batch.Batch) {
		if side == 0 {
			m.pad(out, 0, width, 0, sel)
			m.pad(out, width, len(out.Cols), -1, sel)
			return
		}
		m.pad(out, 0, width, -1, sel)
		m.pad(out, width, len(out.Cols), 1, sel)
	})
}

// pad fills columns from to to with rows of a side, or with NULLs (-1).
func (m *matching) pad(out *batch.Batch, from, to, side int, sel batch.Sel) {
	for c := from; c < to; c++ {
		if side >= 0 {
			out.Cols[c].Take(&m.side[side].rows.Cols[c-from], sel)
			continue
		}
		out.Cols[c].Reset(m.pair.Fields[c].Type, 0)
		appendNulls(&out.Cols[c], len(sel))
	}
}
