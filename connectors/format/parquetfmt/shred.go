package parquetfmt

import (
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// slots are the entries of one nesting level while a column is shredded: the
// levels reached so far and the row in the level's Vec, -1 where something
// above is NULL or empty.
type slots struct {
	rep, def []uint8
	row      []int32
}

func (s *slots) reset() { s.rep, s.def, s.row = s.rep[:0], s.def[:0], s.row[:0] }

func (s *slots) push(rep, def uint8, row int32) {
	s.rep, s.def, s.row = append(s.rep, rep), append(s.def, def), append(s.row, row)
}

func (s *slots) copy(o *slots) {
	s.rep, s.def, s.row = append(s.rep[:0], o.rep...), append(s.def[:0], o.def...), append(s.row[:0], o.row...)
}

func (sc *scratch) level(depth int) *slots {
	for len(sc.slots) <= depth {
		sc.slots = append(sc.slots, slots{})
	}
	return &sc.slots[depth]
}

// appendFlat appends rows [lo,hi) of the selection of a top-level primitive
// column.
func (l *leaf) appendFlat(sc *scratch, v *batch.Vec, sel batch.Sel, lo, hi int) error {
	index := sc.index[:0]
	if sel == nil {
		for i := lo; i < hi; i++ {
			index = append(index, int32(i))
		}
	} else {
		index = append(index, sel[lo:hi]...)
	}
	sc.index = index
	present := true
	for {
		if v.Enc == batch.Const {
			for k, i := range index {
				if i >= 0 {
					index[k] = 0
				}
			}
		}
		if v.Valid != nil {
			for k, i := range index {
				if i >= 0 && v.Valid[i>>3]&(1<<(i&7)) == 0 {
					index[k], present = -1, false
				}
			}
		}
		if v.Enc != batch.Dict {
			break
		}
		for k, i := range index {
			if i >= 0 {
				index[k] = v.Codes[i]
			}
		}
		v = v.Dict
	}
	if present {
		l.pushPresent(len(index))
		return l.appendValues(v, index)
	}
	l.startDef()
	n := 0
	for _, i := range index {
		if i < 0 {
			l.def = append(l.def, l.maxDef-1)
			continue
		}
		l.def = append(l.def, l.maxDef)
		index[n] = i
		n++
	}
	l.slots += hi - lo
	l.vals += n
	return l.appendValues(v, index[:n])
}

// shred walks a column down to its leaves. The slots at sc.level(depth) refer
// to rows of v and are consumed.
func (n *node) shred(sc *scratch, depth int, v *batch.Vec) error {
	s := sc.level(depth)
	for v.Enc == batch.Dict {
		for k, i := range s.row {
			switch {
			case i < 0:
			case v.Valid != nil && !v.Valid.Get(int(i)):
				s.row[k] = -1
			default:
				s.row[k] = v.Codes[i]
			}
		}
		// A row that turned NULL here keeps the level of its parent, like one
		// that is NULL in the dictionary.
		v = v.Dict
	}
	for k, i := range s.row {
		if i < 0 {
			continue
		}
		if v.Enc == batch.Const {
			i = 0
		}
		if v.Valid != nil && !v.Valid.Get(int(i)) {
			if !n.optional {
				return fmt.Errorf("a map key is NULL")
			}
			s.row[k] = -1
			continue
		}
		s.row[k] = i
		if n.optional {
			s.def[k]++
		}
	}
	switch n.shape {
	case shapeLeaf:
		return n.leaf.appendSlots(sc, s, v)
	case shapeRow:
		return n.each(sc, depth, v)
	}
	// One slot an element; an empty list stays one slot at the list's level.
	sc.level(depth + 1)
	s, down := sc.level(depth), sc.level(depth+1)
	down.reset()
	for k, i := range s.row {
		if i < 0 {
			down.push(s.rep[k], s.def[k], -1)
			continue
		}
		a, b := v.Offsets[i], v.Offsets[i+1]
		if a == b {
			down.push(s.rep[k], s.def[k], -1)
			continue
		}
		rep := s.rep[k]
		for c := a; c < b; c++ {
			down.push(rep, s.def[k]+1, c)
			rep = n.rep
		}
	}
	return n.each(sc, depth+1, v)
}

// each shreds the children, all of which see the slots at depth.
func (n *node) each(sc *scratch, depth int, v *batch.Vec) error {
	for c, child := range n.children {
		sc.level(depth + 1)
		sc.level(depth + 1).copy(sc.level(depth))
		if err := child.shred(sc, depth+1, v.Children[c]); err != nil {
			return err
		}
	}
	return nil
}

func (l *leaf) appendSlots(sc *scratch, s *slots, v *batch.Vec) error {
	index := sc.index[:0]
	for _, i := range s.row {
		if i >= 0 {
			index = append(index, i)
		}
	}
	sc.index = index
	if l.maxRep > 0 {
		l.rep = append(l.rep, s.rep...)
	}
	if len(index) == len(s.row) {
		l.pushPresent(len(index))
	} else {
		l.startDef()
		l.def = append(l.def, s.def...)
		l.slots += len(s.row)
		l.vals += len(index)
	}
	return l.appendValues(v, index)
}

// firstError finds a selected row of v that holds an error value, at any depth.
func firstError(v *batch.Vec, sel batch.Sel, rows int) *batch.ValueError {
	if !anyError(v) {
		return nil
	}
	if sel == nil {
		for i := range rows {
			if e := errorAt(v, i); e != nil {
				return e
			}
		}
		return nil
	}
	for _, i := range sel {
		if e := errorAt(v, int(i)); e != nil {
			return e
		}
	}
	return nil
}

func anyError(v *batch.Vec) bool {
	if v.HasErrs() {
		return true
	}
	if v.Enc == batch.Dict {
		return anyError(v.Dict)
	}
	for _, c := range v.Children {
		if anyError(c) {
			return true
		}
	}
	return false
}

func errorAt(v *batch.Vec, i int) *batch.ValueError {
	if e := v.Err(i); e != nil {
		return e
	}
	if v.IsNull(i) {
		return nil
	}
	for v.Enc == batch.Dict {
		i, v = int(v.Codes[i]), v.Dict
	}
	i = v.Index(i)
	switch v.Type.Physical() {
	case types.PhysRow:
		for _, c := range v.Children {
			if e := errorAt(c, i); e != nil {
				return e
			}
		}
	case types.PhysList, types.PhysMap:
		for k := v.Offsets[i]; k < v.Offsets[i+1]; k++ {
			for _, c := range v.Children {
				if e := errorAt(c, int(k)); e != nil {
					return e
				}
			}
		}
	}
	return nil
}
