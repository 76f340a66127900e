package expr

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
)

// truth is the value of a BOOLEAN in the logic of three states and errors.
type truth uint8

const (
	isFalse truth = iota
	isTrue
	isNull
	isError
)

// truthOf reads row i of a BOOLEAN of any encoding.
func truthOf(v *batch.Vec, i int32) truth {
	k := int(i)
	switch v.Enc {
	case batch.Const:
		k = 0
	case batch.Dict:
		if v.Err(k) != nil {
			return isError
		}
		if v.IsNull(k) {
			return isNull
		}
		v, k = v.Dict, int(v.Codes[k])
		if v.Enc == batch.Const {
			k = 0
		}
	}
	if v.Valid != nil && !v.Valid.Get(k) {
		if len(v.Errs) > 0 && v.Err(k) != nil {
			return isError
		}
		return isNull
	}
	if v.Bools.Get(k) {
		return isTrue
	}
	return isFalse
}

// logic evaluates AND and OR: the dominating value (FALSE, TRUE) ends a row;
// the rest go on to the next operand; an error beats NULL.
func (r run) logic(id int, n *node, op LogicOp) *batch.Vec {
	st := r.st
	sel := st.sels[n.scope]
	out := &st.own[id]
	out.Reset(n.typ, st.n)
	dominant := isFalse
	if op == Or {
		dominant = isTrue
	}
	// Rows start as the neutral value and are lowered to NULL or error.
	if op == And {
		for _, i := range sel {
			out.Bools.Set(int(i))
		}
	}
	errs := st.pre[id][:0]
	cur, free := sel, 0
	for a := range n.args {
		v := r.lazily(n, a, cur)
		if v == nil {
			break
		}
		next := st.bufs[id][free][:0]
		for _, i := range cur {
			switch t := truthOf(v, i); {
			case t == dominant:
				out.Bools.Put(int(i), op == Or)
				if out.Valid != nil {
					out.Valid.Set(int(i))
				}
				continue
			case t == isNull:
				out.SetNull(int(i))
			case t == isError:
				out.SetNull(int(i))
				e := *v.Err(int(i))
				e.Row = i
				errs = append(errs, e)
			}
			next = append(next, i)
		}
		st.bufs[id][free] = next
		cur, free = next, 1-free
	}
	// Rows that met the dominating value after an error have no error; of
	// several errors of a row the first operand's counts.
	slices.SortStableFunc(errs, func(a, b batch.ValueError) int { return int(a.Row) - int(b.Row) })
	last := int32(-1)
	for _, e := range errs {
		if e.Row != last && !out.Valid.Get(int(e.Row)) {
			out.Errs = append(out.Errs, e)
		}
		last = e.Row
	}
	st.pre[id] = errs
	return out
}

// merge collects rows of several branch results into one.
type merge struct {
	out  *batch.Vec
	errs []batch.ValueError
	// pick is, a row, 1 + the branch that gives it, 0 for one that is NULL, -1
	// for one that is copied already.
	pick []int32
	from []*batch.Vec
	late bool // rows wait for finish
}

const copied = -1

func (r run) newMerge(id int, n *node) *merge {
	m := r.st.merge[id]
	if m == nil {
		m = new(merge)
		r.st.merge[id] = m
	}
	m.out, m.errs, m.from, m.late = &r.st.own[id], m.errs[:0], m.from[:0], false
	m.out.Reset(n.typ, r.st.n)
	if cap(m.pick) < r.st.n {
		m.pick = make([]int32, r.st.n)
	}
	m.pick = m.pick[:r.st.n]
	return m
}

// take gives rows to a branch result; v nil stands for NULL. Fixed-width
// values are copied at once, others wait until all rows are known, because
// they must be written in order.
func (m *merge) take(v *batch.Vec, rows batch.Sel) {
	if len(rows) == 0 {
		return
	}
	k := int32(0)
	if v != nil {
		if m.out.CopyRows(v, rows) {
			k = copied
		} else {
			m.from = append(m.from, v)
			k = int32(len(m.from))
		}
	}
	m.late = m.late || k != copied
	for _, i := range rows {
		m.pick[i] = k
	}
}

// finish copies the rows that wait; error rows take their error.
func (m *merge) finish(sel batch.Sel) *batch.Vec {
	if m.late {
		for _, i := range sel {
			switch k := m.pick[i]; {
			case k > 0:
				m.out.Put(int(i), m.from[k-1], int(i))
			case k == 0:
				m.out.NullRow(int(i))
			}
		}
	}
	m.out.PadOffsets()
	addErrs(m.out, m.errs)
	return m.out
}

func (m *merge) fail(v *batch.Vec, row int32) {
	e := *v.Err(int(row))
	e.Row = row
	m.errs = append(m.errs, e)
	m.pick[row] = 0
	m.late = true
}

// rows gives list k of a node, empty.
func (r run) rows(id, k int) []int32 {
	l := r.st.lists[id]
	for len(l) <= k {
		l = append(l, nil)
	}
	r.st.lists[id] = l
	return l[k][:0]
}

func (r run) cases(id int, n *node, e *Case) *batch.Vec {
	st := r.st
	sel := st.sels[n.scope]
	m := r.newMerge(id, n)
	rest := sel
	for c := range e.Conds {
		cond := r.lazily(n, 2*c, rest)
		if cond == nil {
			break
		}
		yes, no := r.rows(id, 2*c), r.rows(id, 2*c+1)
		for _, i := range rest {
			switch truthOf(cond, i) {
			case isTrue:
				yes = append(yes, i)
			case isError:
				m.fail(cond, i)
			default:
				no = append(no, i)
			}
		}
		st.lists[id][2*c], st.lists[id][2*c+1] = yes, no
		m.take(r.lazily(n, 2*c+1, yes), yes)
		rest = no
	}
	if e.Else != nil {
		m.take(r.lazily(n, len(n.args)-1, rest), rest)
	} else {
		m.take(nil, rest)
	}
	slices.SortFunc(m.errs, func(a, b batch.ValueError) int { return int(a.Row) - int(b.Row) })
	return m.finish(sel)
}

func (r run) coalesce(id int, n *node) *batch.Vec {
	st := r.st
	sel := st.sels[n.scope]
	m := r.newMerge(id, n)
	rest := sel
	for a := range n.args {
		v := r.lazily(n, a, rest)
		if v == nil {
			break
		}
		has, null := r.rows(id, 2*a), r.rows(id, 2*a+1)
		for _, i := range rest {
			if v.IsNull(int(i)) && v.Err(int(i)) == nil {
				null = append(null, i)
			} else {
				has = append(has, i)
			}
		}
		st.lists[id][2*a], st.lists[id][2*a+1] = has, null
		m.take(v, has)
		rest = null
	}
	m.take(nil, rest)
	return m.finish(sel)
}
