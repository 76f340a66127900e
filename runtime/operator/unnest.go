package operator

import (
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
)

// Unnest is CROSS (or LEFT) JOIN UNNEST: one row for each element. A row whose
// array or map is an error fails: it is not known how many rows it is.
type Unnest struct {
	prog              *expr.Program
	outer, ordinality bool
	schema            *batch.Schema
	inputs            int

	// filter is the condition of a LEFT JOIN, nil without.
	filter  *expr.Filter
	pass    batch.Sel
	faulty  []batch.ValueError
	parents batch.Sel // the input rows whose value is no error
	all     []unnested

	value  []batch.Vec
	batch  batch.Batch
	kinds  []batch.Kind
	parent batch.Sel // input row of each output row
	elem   []int32   // element of each output row, -1: none (outer)
	ord    []int64
	origin []int32
}

// NewUnnest compiles the value over the columns of in, and the condition over out's.
func NewUnnest(op *graph.Unnest, in, out *batch.Schema) (*Unnest, error) {
	prog, err := expr.Compile([]expr.Expr{op.Value}, in, expr.Options{})
	if err != nil {
		return nil, fmt.Errorf("compiling an UNNEST: %w", err)
	}
	u := &Unnest{prog: prog, outer: op.Outer, ordinality: op.Ordinality, schema: out, inputs: len(in.Fields),
		value: make([]batch.Vec, 1)}
	want := len(in.Fields) + elementColumns(op.Value.Type())
	if op.Ordinality {
		want++
	}
	if len(out.Fields) != want {
		return nil, fmt.Errorf("UNNEST of %s gives %d columns, not %d", op.Value.Type(), want, len(out.Fields))
	}
	if op.Condition != nil {
		if u.filter, err = expr.CompileFilter(op.Condition, out, expr.Options{}); err != nil {
			return nil, fmt.Errorf("compiling the condition of an UNNEST: %w", err)
		}
	}
	return u, nil
}

func elementColumns(t types.Type) int {
	switch {
	case t.Kind == types.Map:
		return 2
	case t.Elem != nil && t.Elem.Kind == types.Row:
		return len(t.Elem.Fields)
	}
	return 1
}

// Eval implements Operator.
func (u *Unnest) Eval(ctx *expr.Context, in *Rows, out *Rows) {
	out.inherit(in)
	u.prog.Eval(ctx, in.Batch, in.Sel, u.value)
	u.expand(ctx, in, out)
	u.gather(in)
	if u.filter != nil {
		u.choose(ctx, in, out)
		u.gather(in)
	}
	out.Batch, out.Sel, out.Origin = &u.batch, nil, u.origin
}

// expand lists the output rows.
func (u *Unnest) expand(ctx *expr.Context, in *Rows, out *Rows) {
	v := &u.value[0]
	u.parent, u.elem, u.ord, u.origin = u.parent[:0], u.elem[:0], u.ord[:0], u.origin[:0]
	u.parents = u.parents[:0]
	if u.parent == nil {
		u.parent = batch.Sel{}
	}
	add := func(row, elem int32, ord int64) {
		u.parent = append(u.parent, row)
		u.elem = append(u.elem, elem)
		u.ord = append(u.ord, ord)
		u.origin = append(u.origin, in.Source(row))
	}
	for _, row := range in.all(ctx) {
		if v.HasErrs() {
			if e := v.Err(int(row)); e != nil {
				out.fail(in, e, row)
				continue
			}
		}
		u.parents = append(u.parents, row)
		from, to := 0, 0
		if !v.IsNull(int(row)) {
			from, to = v.Range(int(row))
		}
		for i := from; i < to; i++ {
			add(row, int32(i), int64(i-from+1))
		}
		switch {
		case to > from || u.filter != nil:
		case u.outer:
			add(row, -1, 0)
		default:
			if n := len(out.Empty); n == 0 || out.Empty[n-1] != in.Source(row) {
				out.Empty = append(out.Empty, in.Source(row))
			}
		}
	}
}

// choose keeps the elements for which the condition is TRUE, and gives the rows of
// which none is left NULLs. Where it is an error the row fails: it is not known which
// elements it has.
func (u *Unnest) choose(ctx *expr.Context, in, out *Rows) {
	u.pass, u.faulty = u.filter.Eval(ctx, &u.batch, nil, u.pass[:0], u.faulty[:0])
	for i := range u.faulty {
		out.fail(in, &u.faulty[i], u.parent[u.faulty[i].Row])
	}
	all := u.all[:0]
	n, pass, faulty := 0, u.pass, u.faulty
	for _, row := range u.parents {
		fine, none := true, true
		for n < len(u.parent) && u.parent[n] == row {
			n++
		}
		for len(faulty) > 0 && int(faulty[0].Row) < n {
			fine, faulty = false, faulty[1:]
		}
		for len(pass) > 0 && int(pass[0]) < n {
			if fine {
				all = append(all, unnested{row, u.elem[pass[0]], u.ord[pass[0]]})
			}
			none, pass = false, pass[1:]
		}
		if fine && none {
			all = append(all, unnested{row, -1, 0})
		}
	}
	u.all = all
	u.parent, u.elem, u.ord, u.origin = u.parent[:0], u.elem[:0], u.ord[:0], u.origin[:0]
	for _, x := range all {
		u.parent, u.elem, u.ord = append(u.parent, x.row), append(u.elem, x.elem), append(u.ord, x.ord)
		u.origin = append(u.origin, in.Source(x.row))
	}
}

// unnested is an output row: its input row, and its element (-1: none) with its place.
type unnested struct {
	row, elem int32
	ord       int64
}

// gather fills the output columns.
func (u *Unnest) gather(in *Rows) {
	b := &u.batch
	b.Reset(u.schema)
	b.Len = len(u.parent)
	if in.Batch.Kinds != nil {
		u.kinds = u.kinds[:0]
		for _, row := range u.parent {
			u.kinds = append(u.kinds, in.Batch.Kinds[row])
		}
		b.Kinds = u.kinds
	}
	for i := 0; i < u.inputs; i++ {
		b.Cols[i].Take(&in.Batch.Cols[i], u.parent)
	}
	list := &u.value[0]
	if list.Enc == batch.Dict {
		list = list.Dict
	}
	col := u.inputs
	for _, child := range list.Children {
		if list.Type.Kind == types.Array && list.Type.Elem.Kind == types.Row {
			for f := range list.Type.Elem.Fields {
				u.element(&b.Cols[col], child, f)
				col++
			}
			continue
		}
		u.element(&b.Cols[col], child, -1)
		col++
	}
	if u.ordinality {
		o := &b.Cols[col]
		o.Reset(u.schema.Fields[col].Type, b.Len)
		for i, n := range u.ord {
			if n == 0 {
				o.SetNull(i)
			} else {
				o.SetInt64(i, n)
			}
		}
	}
	takePositions(b, in.Batch, u.parent)
}

// element fills a column with a field (-1: the whole) of the elements.
func (u *Unnest) element(out, child *batch.Vec, field int) {
	src := child
	if field >= 0 {
		src = child.Children[field]
	}
	out.Reset(src.Type, len(u.elem))
	for i, e := range u.elem {
		switch {
		case e < 0:
			out.NullRow(i)
		case field >= 0 && child.IsNull(int(e)):
			out.NullRow(i)
			if err := child.Err(int(e)); err != nil {
				out.SetErr(i, err.Code, err.Where, err.Message)
			}
		default:
			out.Put(i, src, int(e))
		}
	}
	out.PadOffsets()
}

// takePositions gives b the positions of the rows of src that sel lists.
func takePositions(b, src *batch.Batch, sel batch.Sel) {
	b.Notes = append(b.Notes, src.Notes...)
	if len(src.Runs) == 0 {
		return
	}
	b.RowIndex = make([]int32, len(sel))
	b.OffsetDelta = make([]int32, len(sel))
	if src.Watermark != nil {
		b.Watermark = make([]int64, len(sel))
	}
	k := 0
	for i := range src.Runs {
		from := src.Runs[i]
		r := from
		r.FirstRow = int32(k)
		for end := from.FirstRow + from.Rows; k < len(sel) && sel[k] < end; k++ {
			row := int(sel[k])
			b.OffsetDelta[k] = int32(src.Offset(&from, row) - from.BaseOffset)
			b.RowIndex[k] = src.Index(row)
			if src.Watermark != nil {
				b.Watermark[k] = src.Watermark[row]
			}
		}
		r.Rows = int32(k) - r.FirstRow
		b.Runs = append(b.Runs, r)
	}
}
