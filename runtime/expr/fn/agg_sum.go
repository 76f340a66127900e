package fn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"math/bits"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// stateVersion is the first byte of every serialised state.
const stateVersion = 1

var errState = errors.New("damaged or unknown aggregate state")

// stateReader reads a serialised state.
type stateReader struct {
	b   []byte
	bad bool
}

func openState(b []byte) *stateReader {
	if len(b) == 0 || b[0] != stateVersion {
		return &stateReader{bad: true}
	}
	return &stateReader{b: b[1:]}
}

func (r *stateReader) u64() uint64 {
	if len(r.b) < 8 {
		r.bad = true
		return 0
	}
	x := binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	return x
}

// count is how many entries follow; each takes at least a byte.
func (r *stateReader) count() uint64 {
	n, k := binary.Uvarint(r.b)
	if k <= 0 || n > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	r.b = r.b[k:]
	return n
}

func (r *stateReader) bytes() []byte {
	n, k := binary.Uvarint(r.b)
	if k <= 0 || n > uint64(len(r.b)-k) {
		r.bad = true
		return nil
	}
	b := r.b[k : k+int(n)]
	r.b = r.b[k+int(n):]
	return b
}

func (r *stateReader) err() error {
	if r.bad || len(r.b) > 0 {
		return errState
	}
	return nil
}

func appendLen(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// eachRow calls f for the rows of sel of n.
func eachRow(n int, sel batch.Sel, f func(i int32)) {
	if sel == nil {
		for i := int32(0); i < int32(n); i++ {
			f(i)
		}
		return
	}
	for _, i := range sel {
		f(i)
	}
}

// flat gives an argument without dictionary, using scratch for a copy.
func flat(v, scratch *batch.Vec) *batch.Vec {
	if v.Enc != batch.Dict {
		return v
	}
	scratch.Flatten(v)
	return scratch
}

func resizeTo[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	return append(s, make([]T, n-len(s))...)
}

// countAcc is COUNT.
type countAcc struct{ n []int64 }

func (a *countAcc) Resize(n int) { a.n = resizeTo(a.n, n) }

func (a *countAcc) Update(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	nulls := false
	for i := range args {
		nulls = nulls || args[i].HasNulls()
	}
	if !nulls {
		if sel == nil {
			for _, g := range groups {
				a.n[g]++
			}
			return
		}
		for _, i := range sel {
			a.n[groups[i]]++
		}
		return
	}
	eachRow(len(groups), sel, func(i int32) {
		for k := range args {
			if args[k].IsNull(int(i)) {
				return
			}
		}
		a.n[groups[i]]++
	})
}

func (a *countAcc) Merge(o Accumulator, into []int32) {
	for g, n := range o.(*countAcc).n {
		if g < len(into) && into[g] >= 0 {
			a.n[into[g]] += n
		}
	}
}

func (a *countAcc) AppendState(dst []byte, g int) []byte {
	return binary.BigEndian.AppendUint64(append(dst, stateVersion), uint64(a.n[g]))
}

func (a *countAcc) MergeState(g int, b []byte) error {
	r := openState(b)
	n := r.u64()
	if err := r.err(); err != nil {
		return err
	}
	a.n[g] += int64(n)
	return nil
}

func (a *countAcc) Emit(groups []int32, _ string, out *batch.Vec) {
	out.Reset(tBigInt.NotNull(), len(groups))
	for k, g := range groups {
		out.I64[k] = a.n[g]
	}
}

func (a *countAcc) Clear(g int)  { a.n[g] = 0 }
func (a *countAcc) Bytes() int64 { return int64(cap(a.n)) * 8 }

// intSum is SUM and AVG of integers: 128 bits, checked when emitted.
type intSum struct {
	ret     types.Type
	avg     bool
	sum     []types.Decimal128
	n       []int64
	scratch batch.Vec
}

func (a *intSum) Resize(n int) { a.sum, a.n = resizeTo(a.sum, n), resizeTo(a.n, n) }

func (a *intSum) add(g int32, x int64) {
	s := &a.sum[g]
	lo, c := bits.Add64(s.Lo, uint64(x), 0)
	s.Lo, s.Hi = lo, s.Hi+x>>63+int64(c)
	a.n[g]++
}

func (a *intSum) Update(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	v := flat(&args[0], &a.scratch)
	if v.Enc == batch.Flat && v.Valid == nil && v.Type.Kind == types.BigInt && sel == nil {
		for i, x := range v.I64[:len(groups)] {
			a.add(groups[i], x)
		}
		return
	}
	eachRow(len(groups), sel, func(i int32) {
		if !null(v, i) {
			a.add(groups[i], v.Int64(int(i)))
		}
	})
}

func (a *intSum) Merge(o Accumulator, into []int32) {
	b := o.(*intSum)
	for g, to := range into {
		if g < len(b.n) && to >= 0 {
			a.sum[to], _ = a.sum[to].Add(b.sum[g])
			a.n[to] += b.n[g]
		}
	}
}

func (a *intSum) AppendState(dst []byte, g int) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, stateVersion), uint64(a.n[g]))
	dst = binary.BigEndian.AppendUint64(dst, uint64(a.sum[g].Hi))
	return binary.BigEndian.AppendUint64(dst, a.sum[g].Lo)
}

func (a *intSum) MergeState(g int, b []byte) error {
	r := openState(b)
	n := r.u64()
	d := types.Decimal128{Hi: int64(r.u64())}
	d.Lo = r.u64()
	if err := r.err(); err != nil {
		return err
	}
	a.n[g] += int64(n)
	a.sum[g], _ = a.sum[g].Add(d)
	return nil
}

func (a *intSum) Emit(groups []int32, where string, out *batch.Vec) {
	out.Reset(a.ret, len(groups))
	lo, hi := intRange(a.ret.Kind)
	for k, g := range groups {
		if a.n[g] == 0 {
			out.NullRow(k)
			continue
		}
		d := a.sum[g]
		if a.avg {
			d, _ = d.QuoRem(types.DecimalFromInt64(a.n[g]))
		}
		x, ok := d.Int64()
		if !ok || x < lo || x > hi {
			out.SetErr(k, batch.CodeOverflow, where, fmt.Sprintf("%s is out of range of %s", types.FormatDecimal(d, 0), a.ret))
			continue
		}
		out.SetInt64(k, x)
	}
}

func (a *intSum) Clear(g int)  { a.sum[g], a.n[g] = types.Decimal128{}, 0 }
func (a *intSum) Bytes() int64 { return int64(cap(a.n)) * 24 }

// int256 is a two's complement integer, low word first.
type int256 [4]uint64

func (s *int256) add(o *int256) {
	var c uint64
	for i := range s {
		s[i], c = bits.Add64(s[i], o[i], c)
	}
}

func widen(d types.Decimal128) int256 {
	sign := uint64(d.Hi >> 63)
	return int256{d.Lo, uint64(d.Hi), sign, sign}
}

func (s int256) big() *big.Int {
	neg := int64(s[3]) < 0
	if neg {
		c := uint64(1)
		for i := range s {
			s[i], c = bits.Add64(^s[i], 0, c)
		}
	}
	b := new(big.Int)
	for i := 3; i >= 0; i-- {
		b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(s[i]))
	}
	if neg {
		b.Neg(b)
	}
	return b
}

// decimalSum is SUM and AVG of DECIMAL: 256 bits, checked when emitted.
type decimalSum struct {
	ret     types.Type
	scale   int
	avg     bool
	sum     []int256
	n       []int64
	scratch batch.Vec
}

func (a *decimalSum) Resize(n int) { a.sum, a.n = resizeTo(a.sum, n), resizeTo(a.n, n) }

func (a *decimalSum) Update(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	v := flat(&args[0], &a.scratch)
	eachRow(len(groups), sel, func(i int32) {
		if null(v, i) {
			return
		}
		w := widen(v.Decimal(int(i)))
		a.sum[groups[i]].add(&w)
		a.n[groups[i]]++
	})
}

func (a *decimalSum) Merge(o Accumulator, into []int32) {
	b := o.(*decimalSum)
	for g, to := range into {
		if g < len(b.n) && to >= 0 {
			a.sum[to].add(&b.sum[g])
			a.n[to] += b.n[g]
		}
	}
}

func (a *decimalSum) AppendState(dst []byte, g int) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, stateVersion), uint64(a.n[g]))
	for _, w := range a.sum[g] {
		dst = binary.BigEndian.AppendUint64(dst, w)
	}
	return dst
}

func (a *decimalSum) MergeState(g int, b []byte) error {
	r := openState(b)
	n := r.u64()
	var s int256
	for i := range s {
		s[i] = r.u64()
	}
	if err := r.err(); err != nil {
		return err
	}
	a.n[g] += int64(n)
	a.sum[g].add(&s)
	return nil
}

func (a *decimalSum) Emit(groups []int32, where string, out *batch.Vec) {
	out.Reset(a.ret, len(groups))
	for k, g := range groups {
		if a.n[g] == 0 {
			out.NullRow(k)
			continue
		}
		b := a.sum[g].big()
		if a.avg {
			b = types.QuoHalfUp(b.Mul(b, types.Pow10(a.ret.Scale-a.scale).Big()), big.NewInt(a.n[g]))
		}
		d, ok := types.DecimalFromBig(b)
		if !ok || !d.FitsPrecision(a.ret.Precision) {
			out.SetErr(k, batch.CodeOverflow, where, fmt.Sprintf("the sum is out of range of %s", a.ret))
			continue
		}
		out.SetDecimal(k, d)
	}
}

func (a *decimalSum) Clear(g int)  { a.sum[g], a.n[g] = int256{}, 0 }
func (a *decimalSum) Bytes() int64 { return int64(cap(a.n)) * 40 }

// floatSum is SUM and AVG of FLOAT and DOUBLE.
type floatSum struct {
	ret     types.Type
	avg     bool
	sum     []exactSum
	n       []int64
	scratch batch.Vec
}

func (a *floatSum) Resize(n int) { a.sum, a.n = resizeTo(a.sum, n), resizeTo(a.n, n) }

func (a *floatSum) Update(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	v := flat(&args[0], &a.scratch)
	eachRow(len(groups), sel, func(i int32) {
		if !null(v, i) {
			a.sum[groups[i]].add(v.Float64(int(i)))
			a.n[groups[i]]++
		}
	})
}

func (a *floatSum) Merge(o Accumulator, into []int32) {
	b := o.(*floatSum)
	for g, to := range into {
		if g < len(b.n) && to >= 0 {
			a.sum[to].merge(&b.sum[g])
			a.n[to] += b.n[g]
		}
	}
}

func (a *floatSum) AppendState(dst []byte, g int) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, stateVersion), uint64(a.n[g]))
	return a.sum[g].appendState(dst)
}

func (a *floatSum) MergeState(g int, b []byte) error {
	r := openState(b)
	n := r.u64()
	var s exactSum
	s.readState(r)
	if err := r.err(); err != nil {
		return err
	}
	a.n[g] += int64(n)
	a.sum[g].merge(&s)
	return nil
}

func (a *floatSum) Emit(groups []int32, _ string, out *batch.Vec) {
	out.Reset(a.ret, len(groups))
	for k, g := range groups {
		if a.n[g] == 0 {
			out.NullRow(k)
			continue
		}
		div := int64(1)
		if a.avg {
			div = a.n[g]
		}
		out.SetFloat64(k, a.sum[g].round(div, a.ret.Kind == types.Float))
	}
}

func (a *floatSum) Clear(g int) { a.sum[g].reset(); a.n[g] = 0 }

func (a *floatSum) Bytes() int64 {
	n := int64(cap(a.n)) * 8
	for i := range a.sum {
		n += 48 + int64(cap(a.sum[i].digits))*8
	}
	return n
}
