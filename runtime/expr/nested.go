package expr

import (
	"bytes"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
)

// field is a child of the ROW, without a copy: the validity of a ROW is in
// its fields already.
func (r run) field(id int, n *node, e *Field) *batch.Vec {
	st := r.st
	a := r.eval(n.args[0])
	out := &st.own[id]
	switch a.Enc {
	case batch.Flat:
		if !a.HasErrs() {
			return a.Children[e.Index]
		}
		// An error of the row is an error of each field.
		child := a.Children[e.Index]
		out.Reset(n.typ, st.n)
		for _, i := range st.sels[n.scope] {
			if err := a.Err(int(i)); err != nil {
				out.NullRow(int(i))
				out.SetErr(int(i), err.Code, err.Where, err.Message)
			} else {
				out.Put(int(i), child, int(i))
			}
		}
		out.PadOffsets()
		return out
	case batch.Const:
		if err := a.Err(0); err != nil {
			out.SetAllNull(n.typ, st.n)
			out.Errs = append(out.Errs[:0], *err)
			return out
		}
		out.SetConst(a.Children[e.Index], 0, st.n)
		return out
	}
	out.Reset(n.typ, st.n)
	for _, i := range st.sels[n.scope] {
		d, k := a.Dict, int(a.Codes[i])
		switch err := a.Err(int(i)); {
		case err != nil:
			out.NullRow(int(i))
			out.SetErr(int(i), err.Code, err.Where, err.Message)
		case a.IsNull(int(i)):
			out.NullRow(int(i))
		default:
			out.Put(int(i), d.Children[e.Index], d.Index(k))
		}
	}
	out.PadOffsets()
	return out
}

// row shows its arguments as fields, errors included.
func (r run) row(id int, n *node) *batch.Vec {
	st := r.st
	args := r.evalArgs(id, n)
	out := &st.own[id]
	out.Type, out.Enc, out.Len, out.Valid, out.Errs = n.typ, batch.Flat, st.n, nil, nil
	out.Codes, out.Dict = nil, nil
	out.Children = nil
	for i, a := range args {
		c := new(batch.Vec)
		if a.Enc == batch.Flat {
			*c = *a
		} else {
			// Fields of a ROW are always flat.
			c.Flatten(a)
		}
		c.Type = n.typ.Fields[i].Type
		out.Children = append(out.Children, c)
	}
	return out
}

func (r run) array(id int, n *node) *batch.Vec {
	st := r.st
	args := r.evalArgs(id, n)
	out := &st.own[id]
	out.Reset(n.typ, st.n)
	for _, i := range st.sels[n.scope] {
		out.BeginList(int(i))
		for _, a := range args {
			out.Children[0].Append(a, int(i))
		}
		out.Children[0].PadOffsets()
		out.EndList()
	}
	out.PadOffsets()
	return out
}

// mapOf builds maps; of equal keys the last wins, a NULL key is an error.
func (r run) mapOf(id int, n *node) *batch.Vec {
	st := r.st
	args := r.evalArgs(id, n)
	out := &st.own[id]
	out.Reset(n.typ, st.n)
	var errs []batch.ValueError
	var enc [][]byte
rows:
	for _, i := range st.sels[n.scope] {
		row := int(i)
		enc = enc[:0]
		for k := 0; k < len(args); k += 2 {
			e := args[k].DeepErr(row)
			if e == nil && args[k].IsNull(row) {
				e = &batch.ValueError{Code: batch.CodeArgument, Where: st.sites[id].Text(), Message: "a map key is NULL"}
			}
			if e != nil {
				c := *e
				c.Row = i
				errs = append(errs, c)
				continue rows
			}
			enc = append(enc, batch.AppendValue(nil, args[k], row))
		}
		out.BeginList(row)
	entries:
		for k := range enc {
			for later := k + 1; later < len(enc); later++ {
				if bytes.Equal(enc[k], enc[later]) {
					continue entries
				}
			}
			out.Children[0].Append(args[2*k], row)
			out.Children[1].Append(args[2*k+1], row)
		}
		out.Children[0].PadOffsets()
		out.Children[1].PadOffsets()
		out.EndList()
	}
	out.PadOffsets()
	for _, e := range errs {
		out.NullRow(int(e.Row))
	}
	addErrs(out, errs)
	return out
}

// inSet is the constant list of IN, by canonical encoding.
type inSet struct {
	values  map[string]struct{}
	hasNull bool
}

func newInSet(e *In) *inSet {
	s := &inSet{values: make(map[string]struct{}, len(e.List))}
	for _, l := range e.List {
		if l.Value.IsNull(0) {
			s.hasNull = true
			continue
		}
		s.values[string(batch.AppendValue(nil, l.Value, 0))] = struct{}{}
	}
	return s
}

// kernel evaluates x IN (literals): TRUE when found, else NULL when the list
// holds NULL, else FALSE. A NULL x never comes here.
func (s *inSet) kernel(_ *fn.Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	var buf [64]byte
	enc := buf[:0]
	for _, i := range sel {
		enc = batch.AppendValue(enc[:0], args[0], int(i))
		if _, ok := s.values[string(enc)]; ok {
			out.Bools.Set(int(i))
		} else if s.hasNull {
			out.SetNull(int(i))
		}
	}
}
