package fn

import (
	"math"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// Retractor is an Accumulator that takes rows back: those that were folded in
// before, with the same arguments and order keys. What was never there is not
// missed.
type Retractor interface {
	Accumulator
	// Retract takes the rows of sel back; parameters as of Update.
	Retract(groups []int32, args []batch.Vec, order *batch.Vec, sel batch.Sel)
}

// Retracting is the aggregate over rows that change: its accumulators are
// Retractors. COUNT and exact sums cost what they cost over new rows; the others
// keep every value with the number of its rows.
func Retracting(b BoundAggregate) BoundAggregate {
	plain := b.New
	switch a := plain().(type) {
	case Retractor:
	case *floatSum:
		b.New = func() Accumulator { return &floatBalance{ret: a.ret, avg: a.avg} }
	case *distinctAcc:
		b.New = func() Accumulator { return newBag(b, plain, true, a.counting) }
	case *intExtreme:
		b.New = func() Accumulator { return newPick(b, a.least, false) }
	case *wideExtreme:
		b.New = func() Accumulator { return newPick(b, a.least, false) }
	case *bytesExtreme:
		b.New = func() Accumulator { return newPick(b, a.least, false) }
	case *versioned:
		b.New = func() Accumulator { return newPick(b, a.first, a.keepNulls) }
	default:
		b.New = func() Accumulator { return newBag(b, plain, false, false) }
	}
	return b
}

// Retract implements Retractor.
func (a *countAcc) Retract(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	eachRow(len(groups), sel, func(i int32) {
		for k := range args {
			if args[k].IsNull(int(i)) {
				return
			}
		}
		a.n[groups[i]]--
	})
}

// Retract implements Retractor.
func (a *intSum) Retract(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	v := flat(&args[0], &a.scratch)
	eachRow(len(groups), sel, func(i int32) {
		if null(v, i) {
			return
		}
		g := groups[i]
		a.sum[g], _ = a.sum[g].Sub(types.DecimalFromInt64(v.Int64(int(i))))
		a.n[g]--
	})
}

// negative is -s.
func (s int256) negative() int256 {
	for i := range s {
		s[i] = ^s[i]
	}
	s.add(&int256{1})
	return s
}

// Retract implements Retractor.
func (a *decimalSum) Retract(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	v := flat(&args[0], &a.scratch)
	eachRow(len(groups), sel, func(i int32) {
		if null(v, i) {
			return
		}
		w := widen(v.Decimal(int(i))).negative()
		a.sum[groups[i]].add(&w)
		a.n[groups[i]]--
	})
}

// floatBalance is SUM and AVG of FLOAT and DOUBLE over rows that change: what a sum
// cannot give back (NaN, infinities, the sign of zero) is counted.
type floatBalance struct {
	ret     types.Type
	avg     bool
	groups  []floatCounts
	scratch batch.Vec
}

type floatCounts struct {
	sum exactSum // of finite values
	n   int64
	// odd are the numbers of NaN, +Inf, -Inf and -0.0 among the n.
	odd [4]int64
}

func (c *floatCounts) add(x float64, times int64) {
	c.n += times
	switch {
	case math.IsNaN(x):
		c.odd[0] += times
	case math.IsInf(x, 1):
		c.odd[1] += times
	case math.IsInf(x, -1):
		c.odd[2] += times
	case x == 0:
		if math.Signbit(x) {
			c.odd[3] += times
		}
	case times < 0:
		c.sum.add(-x)
	default:
		c.sum.add(x)
	}
}

func (c *floatCounts) round(div int64, single bool) float64 {
	s := c.sum
	s.nan, s.posInf, s.negInf = c.odd[0] > 0, c.odd[1] > 0, c.odd[2] > 0
	s.any, s.negZeros = true, c.odd[3] == c.n
	x := s.round(div, single)
	c.sum.base, c.sum.digits, c.sum.pending = s.base, s.digits, s.pending // rounding carries
	return x
}

func (a *floatBalance) fold(groups []int32, args []batch.Vec, sel batch.Sel, times int64) {
	v := flat(&args[0], &a.scratch)
	eachRow(len(groups), sel, func(i int32) {
		if !null(v, i) {
			a.groups[groups[i]].add(v.Float64(int(i)), times)
		}
	})
}

func (a *floatBalance) Resize(n int) { a.groups = resizeTo(a.groups, n) }

func (a *floatBalance) Update(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	a.fold(groups, args, sel, 1)
}

// Retract implements Retractor.
func (a *floatBalance) Retract(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	a.fold(groups, args, sel, -1)
}

func (c *floatCounts) merge(o *floatCounts) {
	c.n += o.n
	for i := range c.odd {
		c.odd[i] += o.odd[i]
	}
	c.sum.merge(&o.sum)
}

func (a *floatBalance) Merge(o Accumulator, into []int32) {
	mergeGroups(a.groups, o.(*floatBalance).groups, into)
}

func (a *floatBalance) AppendState(dst []byte, g int) []byte {
	c := &a.groups[g]
	dst = appendUint64(append(dst, stateVersion), uint64(c.n))
	for _, n := range c.odd {
		dst = appendUint64(dst, uint64(n))
	}
	// The flags of the sum say what was added once, not what is left.
	c.sum.carry()
	s := exactSum{base: c.sum.base, digits: c.sum.digits, any: len(c.sum.digits) > 0}
	return s.appendState(dst)
}

func (a *floatBalance) MergeState(g int, b []byte) error {
	r := openState(b)
	c := floatCounts{n: int64(r.u64())}
	for i := range c.odd {
		c.odd[i] = int64(r.u64())
	}
	c.sum.readState(r)
	if err := r.err(); err != nil {
		return err
	}
	a.groups[g].merge(&c)
	return nil
}

func (a *floatBalance) Emit(groups []int32, _ string, out *batch.Vec) {
	out.Reset(a.ret, len(groups))
	for k, g := range groups {
		c := &a.groups[g]
		if c.n <= 0 {
			out.NullRow(k)
			continue
		}
		div := int64(1)
		if a.avg {
			div = c.n
		}
		out.SetFloat64(k, c.round(div, a.ret.Kind == types.Float))
	}
}

func (a *floatBalance) Clear(g int) {
	c := &a.groups[g]
	c.sum.reset()
	c.n, c.odd = 0, [4]int64{}
}

func (a *floatBalance) Bytes() int64 {
	n := int64(cap(a.groups)) * 96
	for i := range a.groups {
		n += int64(cap(a.groups[i].sum.digits)) * 8
	}
	return n
}
