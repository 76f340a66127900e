package fn

import (
	"bytes"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// intExtreme is MIN and MAX of what fits an ordered int64: integers, small
// decimals, times, booleans, and floats by their total order.
type intExtreme struct {
	t       types.Type
	least   bool
	val     []int64
	has     []bool
	scratch batch.Vec
}

func (a *intExtreme) Resize(n int) { a.val, a.has = resizeTo(a.val, n), resizeTo(a.has, n) }

func (a *intExtreme) put(g int32, x int64) {
	if !a.has[g] || a.least == (x < a.val[g]) && x != a.val[g] {
		a.val[g], a.has[g] = x, true
	}
}

func (a *intExtreme) load(v *batch.Vec, i int32) int64 {
	switch a.t.Kind {
	case types.Boolean:
		return b2i(v.Bool(int(i)))
	case types.Float, types.Double:
		return batch.OrderedFloat(v.Float64(int(i)))
	}
	return v.Int64(int(i))
}

func (a *intExtreme) Update(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	v := flat(&args[0], &a.scratch)
	eachRow(len(groups), sel, func(i int32) {
		if !null(v, i) {
			a.put(groups[i], a.load(v, i))
		}
	})
}

func (a *intExtreme) Merge(o Accumulator, into []int32) {
	b := o.(*intExtreme)
	for g, to := range into {
		if g < len(b.has) && to >= 0 && b.has[g] {
			a.put(to, b.val[g])
		}
	}
}

func (a *intExtreme) store(out *batch.Vec, k int, g int32) {
	switch {
	case !a.has[g]:
		out.NullRow(k)
	case a.t.Kind == types.Boolean:
		out.Bools.Put(k, a.val[g] == 1)
	case a.t.Kind == types.Float || a.t.Kind == types.Double:
		out.SetFloat64(k, batch.FloatFromOrdered(a.val[g]))
	default:
		out.SetInt64(k, a.val[g])
	}
}

func (a *intExtreme) AppendState(dst []byte, g int) []byte {
	var v batch.Vec
	v.Reset(a.t, 1)
	a.store(&v, 0, int32(g))
	return batch.AppendExact(append(dst, stateVersion), &v, 0)
}

// decodeState reads a state of one value.
func decodeState(t types.Type, b []byte) (*batch.Vec, error) {
	r := openState(b)
	if r.bad {
		return nil, errState
	}
	v := new(batch.Vec)
	v.Reset(t, 1)
	rest, err := batch.DecodeValue(v, 0, r.b)
	v.PadOffsets()
	if err == nil && len(rest) > 0 {
		err = errState
	}
	return v, err
}

func (a *intExtreme) MergeState(g int, b []byte) error {
	v, err := decodeState(a.t, b)
	if err == nil && !v.IsNull(0) {
		a.put(int32(g), a.load(v, 0))
	}
	return err
}

func (a *intExtreme) Emit(groups []int32, _ string, out *batch.Vec) {
	out.Reset(a.t, len(groups))
	for k, g := range groups {
		a.store(out, k, g)
	}
}

func (a *intExtreme) Clear(g int)  { a.has[g] = false }
func (a *intExtreme) Bytes() int64 { return int64(cap(a.val))*8 + int64(cap(a.has)) }

// wideExtreme is MIN and MAX of DECIMAL above 18 digits.
type wideExtreme struct {
	t       types.Type
	least   bool
	val     []types.Decimal128
	has     []bool
	scratch batch.Vec
}

func (a *wideExtreme) Resize(n int) { a.val, a.has = resizeTo(a.val, n), resizeTo(a.has, n) }

func (a *wideExtreme) put(g int32, x types.Decimal128) {
	if c := x.Cmp(a.val[g]); !a.has[g] || a.least && c < 0 || !a.least && c > 0 {
		a.val[g], a.has[g] = x, true
	}
}

func (a *wideExtreme) Update(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	v := flat(&args[0], &a.scratch)
	eachRow(len(groups), sel, func(i int32) {
		if !null(v, i) {
			a.put(groups[i], v.Decimal(int(i)))
		}
	})
}

func (a *wideExtreme) Merge(o Accumulator, into []int32) {
	b := o.(*wideExtreme)
	for g, to := range into {
		if g < len(b.has) && to >= 0 && b.has[g] {
			a.put(to, b.val[g])
		}
	}
}

func (a *wideExtreme) AppendState(dst []byte, g int) []byte {
	var v batch.Vec
	a.Emit([]int32{int32(g)}, "", &v)
	return batch.AppendExact(append(dst, stateVersion), &v, 0)
}

func (a *wideExtreme) MergeState(g int, b []byte) error {
	v, err := decodeState(a.t, b)
	if err == nil && !v.IsNull(0) {
		a.put(int32(g), v.Decimal(0))
	}
	return err
}

func (a *wideExtreme) Emit(groups []int32, _ string, out *batch.Vec) {
	out.Reset(a.t, len(groups))
	for k, g := range groups {
		if a.has[g] {
			out.SetDecimal(k, a.val[g])
		} else {
			out.NullRow(k)
		}
	}
}

func (a *wideExtreme) Clear(g int)  { a.has[g] = false }
func (a *wideExtreme) Bytes() int64 { return int64(cap(a.val))*16 + int64(cap(a.has)) }

// bytesExtreme is MIN and MAX of strings and bytes; nil is no value.
type bytesExtreme struct {
	t     types.Type
	least bool
	val   [][]byte
	bytes int64
}

func (a *bytesExtreme) Resize(n int) { a.val = resizeTo(a.val, n) }

func (a *bytesExtreme) put(g int32, b []byte) {
	old := a.val[g]
	if old == nil {
		a.val[g] = append(make([]byte, 0, len(b)), b...)
		a.bytes += int64(len(b))
		return
	}
	if c := bytes.Compare(b, old); a.least && c < 0 || !a.least && c > 0 {
		a.val[g] = append(old[:0], b...)
		a.bytes += int64(len(b) - len(old))
	}
}

func (a *bytesExtreme) Update(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	v := &args[0]
	eachRow(len(groups), sel, func(i int32) {
		if !v.IsNull(int(i)) {
			a.put(groups[i], v.Bytes(int(i)))
		}
	})
}

func (a *bytesExtreme) Merge(o Accumulator, into []int32) {
	b := o.(*bytesExtreme)
	for g, to := range into {
		if g < len(b.val) && to >= 0 && b.val[g] != nil {
			a.put(to, b.val[g])
		}
	}
}

func (a *bytesExtreme) AppendState(dst []byte, g int) []byte {
	var v batch.Vec
	a.Emit([]int32{int32(g)}, "", &v)
	return batch.AppendExact(append(dst, stateVersion), &v, 0)
}

func (a *bytesExtreme) MergeState(g int, b []byte) error {
	v, err := decodeState(a.t, b)
	if err == nil && !v.IsNull(0) {
		a.put(int32(g), v.Bytes(0))
	}
	return err
}

func (a *bytesExtreme) Emit(groups []int32, _ string, out *batch.Vec) {
	out.Reset(a.t, len(groups))
	for k, g := range groups {
		if a.val[g] == nil {
			out.NullRow(k)
		} else {
			out.PutBytes(k, a.val[g])
		}
	}
	out.PadOffsets()
}

func (a *bytesExtreme) Clear(g int) {
	a.bytes -= int64(len(a.val[g]))
	a.val[g] = nil
}

func (a *bytesExtreme) Bytes() int64 { return int64(cap(a.val))*24 + a.bytes }
