package expr

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
)

// run is one Eval.
type run struct {
	p   *Program
	st  *state
	ctx *Context
}

// eval returns the result of a node over the rows of its scope, computing it
// at most once.
func (r run) eval(id int) *batch.Vec {
	st := r.st
	if st.done[id] == st.stamp {
		return st.res[id]
	}
	n := &r.p.nodes[id]
	var v *batch.Vec
	switch e := n.e.(type) {
	case *Column:
		v = &st.in.Cols[e.Index]
	case *Literal:
		v = &st.own[id]
		v.SetConst(e.Value, 0, st.n)
	case *Call:
		v = r.call(id, n, e.Fn.Nulls, e.Determinism(), e.Fn.Shallow)
	case *Cast:
		if n.kernel == nil {
			v = r.relabel(id, n)
		} else {
			v = r.call(id, n, fn.NullStrict, fn.Deterministic, false)
		}
	case *Logic:
		v = r.logic(id, n, e.Op)
	case *Case:
		v = r.cases(id, n, e)
	case *Coalesce:
		v = r.coalesce(id, n)
	case *In:
		v = r.call(id, n, fn.NullStrict, fn.Deterministic, false)
	case *Field:
		v = r.field(id, n, e)
	case *RowOf:
		v = r.row(id, n)
	case *ArrayOf:
		v = r.array(id, n)
	case *MapOf:
		v = r.mapOf(id, n)
	}
	st.done[id], st.res[id] = st.stamp, v
	return v
}

// relabel shows the argument as another type.
func (r run) relabel(id int, n *node) *batch.Vec {
	v := &r.st.own[id]
	*v = *r.eval(n.args[0])
	v.Type = n.typ
	if v.Enc == batch.Dict {
		d := *v.Dict
		d.Type = n.typ
		v.Dict = &d
	}
	return v
}

// lazily evaluates operand i of a node over rows, nil when there are none.
func (r run) lazily(n *node, i int, rows batch.Sel) *batch.Vec {
	if len(rows) == 0 {
		return nil
	}
	if s := n.scopes[i]; s >= 0 {
		r.st.sels[s] = rows
	}
	return r.eval(n.args[i])
}

// evalArgs evaluates all operands of an eager node.
func (r run) evalArgs(id int, n *node) []*batch.Vec {
	args := r.st.args[id][:0]
	for _, a := range n.args {
		args = append(args, r.eval(a))
	}
	r.st.args[id] = args
	return args
}

// call evaluates a kernel: over one row when all arguments are constant, over
// the dictionary when that is the only argument that varies, else over the
// rows of the scope.
func (r run) call(id int, n *node, nulls fn.NullMode, det fn.Determinism, shallow bool) *batch.Vec {
	st := r.st
	args := r.evalArgs(id, n)
	sel := st.sels[n.scope]
	out := &st.own[id]
	nconst, ndict, dictArg := 0, 0, 0
	for i, a := range args {
		switch a.Enc {
		case batch.Const:
			nconst++
		case batch.Dict:
			ndict++
			dictArg = i
		}
	}
	if nconst == len(args) && det != fn.PerCall {
		if len(sel) == 0 {
			out.SetAllNull(n.typ, st.n)
			return out
		}
		r.apply(id, n, nulls, shallow, args, r.ctx.All(1), 1, out)
		out.Enc, out.Len = batch.Const, st.n
		return out
	}
	if ndict == 1 && nconst == len(args)-1 && nulls == fn.NullStrict && det != fn.PerCall {
		if a := args[dictArg]; a.Dict.Enc == batch.Flat && a.Dict.Len <= len(sel) {
			r.callDict(id, n, nulls, shallow, args, dictArg, out)
			return out
		}
	}
	if ndict > 0 {
		args = r.flatArgs(id, args)
	}
	r.apply(id, n, nulls, shallow, args, sel, st.n, out)
	return out
}

// callDict applies the kernel once a dictionary value.
func (r run) callDict(id int, n *node, nulls fn.NullMode, shallow bool, args []*batch.Vec, at int, out *batch.Vec) {
	a := args[at]
	args[at] = a.Dict
	// A fresh dictionary: it leaves with the result.
	dict := new(batch.Vec)
	r.apply(id, n, nulls, shallow, args, r.ctx.All(a.Dict.Len), a.Dict.Len, dict)
	args[at] = a
	out.Type, out.Enc, out.Len = n.typ, batch.Dict, r.st.n
	out.Valid, out.Codes, out.Dict = a.Valid, a.Codes, dict
	out.Errs = append(out.Errs[:0], a.Errs...)
}

// flatArgs replaces dictionary arguments by flat copies.
func (r run) flatArgs(id int, args []*batch.Vec) []*batch.Vec {
	tmp := r.st.tmp[id]
	if len(tmp) < len(args) {
		tmp = make([]batch.Vec, len(args))
		r.st.tmp[id] = tmp
	}
	for i, a := range args {
		if a.Enc == batch.Dict {
			tmp[i].Flatten(a)
			args[i] = &tmp[i]
		}
	}
	return args
}

// apply runs the kernel over the rows of sel whose arguments allow it and
// gives the others their NULL or error.
func (r run) apply(id int, n *node, nulls fn.NullMode, shallow bool, args []*batch.Vec, sel batch.Sel, rows int, out *batch.Vec) {
	st := r.st
	out.Reset(n.typ, rows)
	good := sel
	anyNull, anyErr := false, false
	for _, a := range args {
		if a.Valid != nil && nulls == fn.NullStrict {
			anyNull = true
		}
		if shallow && a.HasErrs() || !shallow && a.HasDeepErrs() {
			anyErr = true
		}
	}
	pre := st.pre[id][:0]
	bad := st.bufs[id][1][:0]
	if anyNull || anyErr {
		good, bad, pre = split(args, sel, nulls, shallow, anyErr, st.bufs[id][0][:0], bad, pre)
		st.bufs[id][0], st.bufs[id][1], st.pre[id] = good, bad, pre
	}
	if len(good) > 0 {
		r.ctx.Call(n.kernel, &st.sites[id], &st.slots[id], st.stamp, args, good, out)
	}
	out.PadOffsets()
	for _, row := range bad {
		out.NullRow(int(row))
	}
	addErrs(out, pre)
}

// split divides sel into the rows a kernel sees and those decided already.
func split(args []*batch.Vec, sel batch.Sel, nulls fn.NullMode, shallow, anyErr bool,
	good, bad []int32, pre []batch.ValueError) (batch.Sel, []int32, []batch.ValueError) {
	if !anyErr && len(args) <= 2 {
		return splitNulls(args, sel, good, bad, pre)
	}
rows:
	for _, row := range sel {
		if anyErr {
			for _, a := range args {
				e := a.Err(int(row))
				if e == nil && !shallow {
					e = a.DeepErr(int(row))
				}
				if e != nil {
					c := *e
					c.Row = row
					pre, bad = append(pre, c), append(bad, row)
					continue rows
				}
			}
		}
		if nulls == fn.NullStrict {
			for _, a := range args {
				if a.Valid != nil && !a.Valid.Get(a.Index(int(row))) {
					bad = append(bad, row)
					continue rows
				}
			}
		}
		good = append(good, row)
	}
	return good, bad, pre
}

// splitNulls is split for NULL-strict kernels of one or two arguments.
func splitNulls(args []*batch.Vec, sel batch.Sel, good, bad []int32, pre []batch.ValueError) (batch.Sel, []int32, []batch.ValueError) {
	var valid [2]batch.Bitmap
	var masks [2]int32
	n := 0
	for _, a := range args {
		if a.Valid != nil {
			valid[n], masks[n] = a.Valid, -1
			if a.Enc == batch.Const {
				masks[n] = 0
			}
			n++
		}
	}
	if n == 1 {
		v, m := valid[0], masks[0]
		for _, i := range sel {
			if v.Get(int(i & m)) {
				good = append(good, i)
			} else {
				bad = append(bad, i)
			}
		}
		return good, bad, pre
	}
	for _, i := range sel {
		if valid[0].Get(int(i&masks[0])) && valid[1].Get(int(i&masks[1])) {
			good = append(good, i)
		} else {
			bad = append(bad, i)
		}
	}
	return good, bad, pre
}

// addErrs adds the errors of rows that v has no error for yet; their rows are
// NULL in v already.
func addErrs(v *batch.Vec, errs []batch.ValueError) {
	if len(errs) == 0 {
		return
	}
	sorted := len(v.Errs) == 0
	v.Errs = append(v.Errs, errs...)
	if !sorted {
		slices.SortFunc(v.Errs, func(a, b batch.ValueError) int { return int(a.Row) - int(b.Row) })
	}
}
