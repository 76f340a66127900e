package fn

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// variances are the declarations of VAR_* and STDDEV_*.
func variances() []*Aggregate {
	a := func(name, what string, sample, root bool, ex ...AggExample) *Aggregate {
		doc := what + " of the values that are not NULL, computed exactly and rounded once; NULL if there are none."
		if sample {
			doc = what + " of the values that are not NULL, computed exactly and rounded once; NULL if there are fewer than two."
		}
		return &Aggregate{Name: name, Syntax: []string{name + "([DISTINCT] x)"}, Examples: ex,
			Doc:  doc + " Types are those of AVG: a DECIMAL gets at least 6 digits behind its point, integers stay integers, cut towards zero; CAST them to DOUBLE where that matters.",
			Bind: bindVariance(name, sample, root)}
	}
	eight := []string{"2", "4", "4", "4", "NULL", "5", "5", "7", "9"}
	samp := a("VAR_SAMP", "Sample variance", true, false, AggExample{"VAR_SAMP(x)", "DOUBLE", []string{"1", "2", "3", "4"}, "1.6666666666666667"}, AggExample{"VAR_SAMP(x)", "DOUBLE", []string{"1"}, "NULL"})
	samp.Aliases = []string{"VARIANCE"}
	return []*Aggregate{
		a("STDDEV_POP", "Population standard deviation", false, true, AggExample{"STDDEV_POP(x)", "DOUBLE", eight, "2.0"}),
		a("STDDEV_SAMP", "Sample standard deviation", true, true, AggExample{"STDDEV_SAMP(x)", "DOUBLE", []string{"1", "3", "5"}, "2.0"}, AggExample{"STDDEV_SAMP(x)", "DOUBLE", []string{"1"}, "NULL"}),
		a("VAR_POP", "Population variance", false, false, AggExample{"VAR_POP(x)", "DOUBLE", eight, "4.0"}),
		samp,
	}
}

func bindVariance(name string, sample, root bool) func([]Arg, AggOptions) (BoundAggregate, error) {
	return func(args []Arg, o AggOptions) (BoundAggregate, error) {
		if err := count(name, args, 1, 1); err != nil {
			return BoundAggregate{}, err
		}
		t := args[0].Type
		if err := want(name, args, 0, "a number", isNumeric); err != nil {
			return BoundAggregate{}, err
		}
		if t.Kind == types.Null {
			t = tDouble
		}
		ret := t.WithNullable(true)
		b := BoundAggregate{Params: []types.Type{t}, Return: ret,
			New: func() Accumulator { return &varianceAcc{ret: ret, sample: sample, root: root} }}
		if t.Kind != types.Float && t.Kind != types.Double {
			if t.Kind == types.Decimal {
				b.Return = types.AvgDecimal(t).WithNullable(true)
			}
			ret = b.Return
			b.New = func() Accumulator { return &exactVarianceAcc{arg: t, ret: ret, sample: sample, root: root} }
		}
		if o.Distinct {
			b = distinct(b, false)
		}
		return b, nil
	}
}

// squareBias is the exactBias of sums of squares, for the square of the
// smallest subnormal, 2^-2148.
const squareBias = 2 * exactBias

// addSquare adds f*f without rounding to a sum of squares, digit k of which is
// worth 2^(32*(k+base)-squareBias). f is finite.
func (s *exactSum) addSquare(f float64) {
	s.any = true
	if f == 0 {
		return
	}
	b := math.Float64bits(f)
	exp := int(b>>52) & 0x7ff
	mant := b & (1<<52 - 1)
	if exp == 0 {
		exp = 1
	} else {
		mant |= 1 << 52
	}
	hi, lo := bits.Mul64(mant, mant)
	place := 2*(exp-1075) + squareBias
	k, shift := place>>5, uint(place&31)
	s.cover(k, k+6)
	d := s.digits[k-s.base:]
	w0, w1, w2 := lo<<shift, hi<<shift|lo>>(64-shift), hi>>(64-shift)
	d[0] += int64(w0 & math.MaxUint32)
	d[1] += int64(w0 >> 32)
	d[2] += int64(w1 & math.MaxUint32)
	d[3] += int64(w1 >> 32)
	d[4] += int64(w2)
	if s.pending++; s.pending >= maxPending {
		s.carry()
	}
}

// big is the sum as an integer times 2^(32*base) and the bias of the sum.
func (s *exactSum) big() *big.Int {
	s.carry()
	b := new(big.Int)
	for i := len(s.digits) - 1; i >= 0; i-- {
		b.Lsh(b, 32).Add(b, big.NewInt(s.digits[i]))
	}
	return b
}

// moments are the sums over one group.
type moments struct {
	n       int64
	sum     exactSum
	squares exactSum
	odd     bool // a NaN or an infinity was among the values
}

func (m *moments) add(f float64) {
	m.n++
	if math.IsNaN(f) || math.IsInf(f, 0) {
		m.odd = true
		return
	}
	m.sum.add(f)
	m.squares.addSquare(f)
}

// variance is (n * sum of squares - square of the sum) / (n * div), rounded
// once.
func (m *moments) variance(div int64, single bool) float64 {
	if m.odd {
		return math.NaN()
	}
	a, b := m.sum.big(), m.squares.big()
	ea, eb := 2*(32*m.sum.base-exactBias), 32*m.squares.base-squareBias
	a.Mul(a, a)
	b.Mul(b, big.NewInt(m.n))
	e := min(ea, eb)
	a.Lsh(a, uint(ea-e))
	b.Lsh(b, uint(eb-e))
	num := b.Sub(b, a)
	den := new(big.Int).Mul(big.NewInt(m.n), big.NewInt(div))
	if e >= 0 {
		num.Lsh(num, uint(e))
	} else {
		den.Lsh(den, uint(-e))
	}
	r := new(big.Rat).SetFrac(num, den)
	if single {
		f, _ := r.Float32()
		return float64(f)
	}
	f, _ := r.Float64()
	return f
}

// varianceAcc is VAR_POP, VAR_SAMP, STDDEV_POP and STDDEV_SAMP.
type varianceAcc struct {
	ret     types.Type
	sample  bool // divide by n - 1
	root    bool
	groups  []moments
	scratch batch.Vec
}

func (a *varianceAcc) Resize(n int) { a.groups = resizeTo(a.groups, n) }

func (a *varianceAcc) Update(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	v := flat(&args[0], &a.scratch)
	eachRow(len(groups), sel, func(i int32) {
		if !null(v, i) {
			a.groups[groups[i]].add(v.Float64(int(i)))
		}
	})
}

func (a *varianceAcc) Merge(o Accumulator, into []int32) {
	mergeGroups(a.groups, o.(*varianceAcc).groups, into)
}

func (m *moments) merge(o *moments) {
	m.n += o.n
	m.odd = m.odd || o.odd
	m.sum.merge(&o.sum)
	m.squares.merge(&o.squares)
}

func (a *varianceAcc) AppendState(dst []byte, g int) []byte {
	m := &a.groups[g]
	dst = binary.BigEndian.AppendUint64(append(dst, stateVersion), uint64(m.n))
	if m.odd {
		dst = append(dst, 1)
	} else {
		dst = append(dst, 0)
	}
	return m.squares.appendState(m.sum.appendState(dst))
}

func (a *varianceAcc) MergeState(g int, b []byte) error {
	r := openState(b)
	m := moments{n: int64(r.u64())}
	if r.bad || len(r.b) == 0 {
		return errState
	}
	m.odd = r.b[0] != 0
	r.b = r.b[1:]
	m.sum.readState(r)
	if !r.bad {
		m.squares.readState(r)
	}
	if err := r.err(); err != nil {
		return err
	}
	a.groups[g].merge(&m)
	return nil
}

func (a *varianceAcc) Emit(groups []int32, _ string, out *batch.Vec) {
	out.Reset(a.ret, len(groups))
	single := a.ret.Kind == types.Float
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
		f := m.variance(div, single && !a.root)
		if a.root {
			f = math.Sqrt(f)
		}
		out.SetFloat64(k, f)
	}
}

func (a *varianceAcc) Clear(g int) {
	m := &a.groups[g]
	m.n, m.odd = 0, false
	m.sum.reset()
	m.squares.reset()
}

func (a *varianceAcc) Bytes() int64 {
	n := int64(0)
	for i := range a.groups {
		m := &a.groups[i]
		n += 120 + int64(cap(m.sum.digits)+cap(m.squares.digits))*8
	}
	return n
}
