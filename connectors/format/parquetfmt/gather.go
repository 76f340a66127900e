package parquetfmt

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// gatherer spreads a leaf's dense values over the rows of a column, in order.
type gatherer struct {
	out, dense *batch.Vec
	phys       types.Physical
	leaf       *leafReader
	next       int // dense value that comes next
	err        int // first of leaf.errs at or after next
}

func newGatherer(out *batch.Vec, l *leafReader) *gatherer {
	return &gatherer{out: out, dense: &l.dense, phys: l.typ.Physical(), leaf: l}
}

// value gives row k the next dense value.
func (g *gatherer) value(k int) {
	i, o, d := g.next, g.out, g.dense
	g.next++
	switch g.phys {
	case types.PhysBool:
		o.Bools.Put(k, d.Bools.Get(i))
	case types.PhysInt8:
		o.I8[k] = d.I8[i]
	case types.PhysInt16:
		o.I16[k] = d.I16[i]
	case types.PhysInt32:
		o.I32[k] = d.I32[i]
	case types.PhysInt64:
		o.I64[k] = d.I64[i]
	case types.PhysFloat32:
		o.F32[k] = d.F32[i]
	case types.PhysFloat64:
		o.F64[k] = d.F64[i]
	case types.PhysDecimal128:
		o.D128[k] = d.D128[i]
	case types.PhysBytes:
		o.Data = append(o.Data, d.Data[d.Offsets[i]:d.Offsets[i+1]]...)
		o.Offsets = append(o.Offsets, int32(len(o.Data)))
	}
	errs := g.leaf.errs
	for g.err < len(errs) && int(errs[g.err].Row) < i {
		g.err++
	}
	if g.err < len(errs) && int(errs[g.err].Row) == i {
		o.SetErr(k, errs[g.err].Code, g.leaf.path, errs[g.err].Message)
	}
}

// null gives row k no value.
func (g *gatherer) null(k int) {
	g.out.SetNull(k)
	if g.phys == types.PhysBytes {
		g.out.Offsets = append(g.out.Offsets, int32(len(g.out.Data)))
	}
}
