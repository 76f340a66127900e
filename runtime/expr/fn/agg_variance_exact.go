package fn

import (
	"encoding/binary"
	"math/big"
	"math/bits"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// wide is an integer of 320 bits in two's complement, the lowest word first: room
// for 2^63 squares of the largest DECIMAL.
type wide [5]uint64

func (w *wide) add(o *wide) {
	c := uint64(0)
	for k := range w {
		w[k], c = bits.Add64(w[k], o[k], c)
	}
}

func wideOf(d types.Decimal128) wide {
	s := uint64(d.Hi >> 63)
	return wide{d.Lo, uint64(d.Hi), s, s, s}
}

func wideSquare(d types.Decimal128) wide {
	a := d.Abs()
	lo, hi := a.Lo, uint64(a.Hi)
	var w wide
	w[1], w[0] = bits.Mul64(lo, lo)
	w[3], w[2] = bits.Mul64(hi, hi)
	h, l := bits.Mul64(lo, hi)
	for range 2 {
		var c uint64
		w[1], c = bits.Add64(w[1], l, 0)
		w[2], c = bits.Add64(w[2], h, c)
		w[3] += c
	}
	return w
}

func (w *wide) big() *big.Int {
	v := *w
	negative := v[4]>>63 != 0
	b := new(big.Int)
	for k := len(v) - 1; k >= 0; k-- {
		x := v[k]
		if negative {
			x = ^x
		}
		b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(x))
	}
	if negative {
		b.Not(b)
	}
	return b
}

// exactMoments are the sums over one group of integers or DECIMALs, unscaled.
type exactMoments struct {
	n            int64
	sum, squares wide
}

func (m *exactMoments) merge(o *exactMoments) {
	m.n += o.n
	m.sum.add(&o.sum)
	m.squares.add(&o.squares)
}

// exactVarianceAcc is VAR_* and STDDEV_* of integers and DECIMALs. The result is
// exact, cut for integers as their AVG is, rounded half up for DECIMALs.
type exactVarianceAcc struct {
	arg, ret types.Type
	sample   bool // divide by n - 1
	root     bool
	groups   []exactMoments
	scratch  batch.Vec
}

func (a *exactVarianceAcc) Resize(n int) { a.groups = resizeTo(a.groups, n) }

func (a *exactVarianceAcc) Update(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	v := flat(&args[0], &a.scratch)
	decimal := a.arg.Kind == types.Decimal
	eachRow(len(groups), sel, func(i int32) {
		if null(v, i) {
			return
		}
		var d types.Decimal128
		if decimal {
			d = v.Decimal(int(i))
		} else {
			d = types.DecimalFromInt64(v.Int64(int(i)))
		}
		m := &a.groups[groups[i]]
		m.n++
		x, y := wideOf(d), wideSquare(d)
		m.sum.add(&x)
		m.squares.add(&y)
	})
}

func (a *exactVarianceAcc) Merge(o Accumulator, into []int32) {
	mergeGroups(a.groups, o.(*exactVarianceAcc).groups, into)
}

func (a *exactVarianceAcc) AppendState(dst []byte, g int) []byte {
	m := &a.groups[g]
	dst = binary.BigEndian.AppendUint64(append(dst, stateVersion), uint64(m.n))
	for _, w := range [...]*wide{&m.sum, &m.squares} {
		for _, x := range w {
			dst = binary.BigEndian.AppendUint64(dst, x)
		}
	}
	return dst
}

func (a *exactVarianceAcc) MergeState(g int, b []byte) error {
	r := openState(b)
	m := exactMoments{n: int64(r.u64())}
	for _, w := range [...]*wide{&m.sum, &m.squares} {
		for k := range w {
			w[k] = r.u64()
		}
	}
	if err := r.err(); err != nil {
		return err
	}
	a.groups[g].merge(&m)
	return nil
}

func (a *exactVarianceAcc) Emit(groups []int32, where string, out *batch.Vec) {
	out.Reset(a.ret, len(groups))
	for k, g := range groups {
		m := &a.groups[g]
		div := m.n
		if a.sample {
			div--
		}
		if div < 1 {
			out.NullRow(k)
			continue
		}
		x := m.variance(div, a.arg.Scale, a.ret, a.root)
		if a.ret.Kind != types.Decimal {
			lo, hi := intRange(a.ret.Kind)
			if !x.IsInt64() || x.Int64() < lo || x.Int64() > hi {
				out.SetErr(k, batch.CodeOverflow, where, "the result is out of range of "+a.ret.WithNullable(true).String())
				continue
			}
			out.SetInt64(k, x.Int64())
			continue
		}
		d, ok := types.DecimalFromBig(x)
		if !ok || !d.FitsPrecision(a.ret.Precision) {
			out.SetErr(k, batch.CodeOverflow, where, "the result is out of range of "+a.ret.WithNullable(true).String())
			continue
		}
		out.SetDecimal(k, d)
	}
}

// variance is (n * sum of squares - square of the sum) / (n * div), or its root,
// at the scale of ret.
func (m *exactMoments) variance(div int64, scale int, ret types.Type, root bool) *big.Int {
	n := big.NewInt(m.n)
	sum := m.sum.big()
	num := m.squares.big()
	num.Sub(num.Mul(num, n), sum.Mul(sum, sum))
	den := n.Mul(n, big.NewInt(div))
	// The numerator has twice the scale of the values; a root halves it again.
	shift := ret.Scale - 2*scale
	if root {
		shift = 2 * (ret.Scale - scale)
	}
	if ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil); shift >= 0 {
		num.Mul(num, ten)
	} else {
		den.Mul(den, ten)
	}
	half := ret.Kind == types.Decimal
	switch {
	case !root && half:
		// floor(x + 1/2)
		num.Add(num.Lsh(num, 1), den)
		return num.Quo(num, den.Lsh(den, 1))
	case !root:
		return num.Quo(num, den)
	case half:
		// floor(sqrt(x) + 1/2) = floor((floor(sqrt(4x)) + 1) / 2)
		x := num.Sqrt(num.Quo(num.Lsh(num, 2), den))
		return x.Rsh(x.Add(x, big.NewInt(1)), 1)
	}
	return num.Sqrt(num.Quo(num, den))
}

func (a *exactVarianceAcc) Clear(g int) { a.groups[g] = exactMoments{} }

func (a *exactVarianceAcc) Bytes() int64 { return int64(cap(a.groups)) * 88 }
