package fn

import (
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// Distinct is the aggregate over the distinct tuples of its arguments.
func Distinct(b BoundAggregate) BoundAggregate { return distinct(b, false) }

// distinct wraps COUNT, SUM and AVG: it keeps the distinct argument tuples of
// a group and folds them once, when emitted.
func distinct(b BoundAggregate, counting bool) BoundAggregate {
	inner := b.New
	b.New = func() Accumulator {
		return &distinctAcc{params: b.Params, inner: inner, counting: counting, takes: takesNullOf(b)}
	}
	return b
}

// takesNull are the arguments in which NULL is a value like others: those of a user
// aggregate that are declared so. Nil for built-in ones, which pass over NULL.
type takesNull []bool

func takesNullOf(b BoundAggregate) takesNull {
	if b.User == nil {
		return nil
	}
	t := make(takesNull, len(b.Params))
	for k := range t {
		t[k] = b.Params[k].Nullable
	}
	return t
}

func (t takesNull) at(k int) bool { return t != nil && t[k] }

type distinctAcc struct {
	params   []types.Type
	inner    func() Accumulator
	counting bool
	takes    takesNull
	seen     []tupleSet
	buf      []byte
	bytes    int64
}

// shortValue is an encoded value with zeros behind it and its length at the end.
type shortValue [24]byte

// tupleSet is a set of encoded values. Those that fit are kept in the map itself,
// so that numbers, times and short texts cost no allocation each, and nothing
// for the garbage collector to look through.
type tupleSet struct {
	short map[shortValue]struct{}
	long  map[string]struct{}
}

// add reports whether val is new.
func (s *tupleSet) add(val []byte) bool {
	if len(val) >= len(shortValue{}) {
		if _, ok := s.long[string(val)]; ok {
			return false
		}
		if s.long == nil {
			s.long = map[string]struct{}{}
		}
		s.long[string(val)] = struct{}{}
		return true
	}
	var v shortValue
	copy(v[:], val)
	v[len(v)-1] = byte(len(val))
	if s.short == nil {
		s.short = map[shortValue]struct{}{}
	}
	// One look-up instead of two: the set grows if the value is new.
	n := len(s.short)
	s.short[v] = struct{}{}
	return len(s.short) > n
}

func (s *tupleSet) len() int { return len(s.short) + len(s.long) }

// each calls f for every value, in any order; f does not keep it.
func (s *tupleSet) each(f func(val []byte)) {
	for v := range s.short {
		f(v[:v[len(v)-1]])
	}
	for v := range s.long {
		f([]byte(v))
	}
}

func (a *distinctAcc) Resize(n int) { a.seen = resizeTo(a.seen, n) }

// distinctCost is about what a value takes in memory.
func distinctCost(val []byte) int64 { return max(int64(len(val)), int64(len(shortValue{}))) + 16 }

func (a *distinctAcc) put(g int32, val []byte) {
	if a.seen[g].add(val) {
		a.bytes += distinctCost(val)
	}
}

func (a *distinctAcc) Update(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	eachRow(len(groups), sel, func(i int32) {
		a.buf = a.buf[:0]
		for k := range args {
			if args[k].IsNull(int(i)) && !a.takes.at(k) {
				return
			}
			a.buf = batch.AppendValue(a.buf, &args[k], int(i))
		}
		a.put(groups[i], a.buf)
	})
}

func (a *distinctAcc) Merge(o Accumulator, into []int32) {
	b := o.(*distinctAcc)
	for g, to := range into {
		if g < len(b.seen) && to >= 0 {
			b.seen[g].each(func(v []byte) { a.put(to, v) })
		}
	}
}

func (a *distinctAcc) values(g int) []string {
	vals := make([]string, 0, a.seen[g].len())
	a.seen[g].each(func(v []byte) { vals = append(vals, string(v)) })
	slices.Sort(vals)
	return vals
}

func (a *distinctAcc) AppendState(dst []byte, g int) []byte {
	vals := a.values(g)
	dst = binary.AppendUvarint(append(dst, stateVersion), uint64(len(vals)))
	for _, v := range vals {
		dst = appendLen(dst, []byte(v))
	}
	return dst
}

func (a *distinctAcc) MergeState(g int, state []byte) error {
	r := openState(state)
	for n := r.count(); n > 0 && !r.bad; n-- {
		if v := r.bytes(); !r.bad {
			a.put(int32(g), v)
		}
	}
	return r.err()
}

func (a *distinctAcc) Emit(groups []int32, where string, out *batch.Vec) {
	if a.counting {
		out.Reset(tBigInt.NotNull(), len(groups))
		for k, g := range groups {
			out.I64[k] = int64(a.seen[g].len())
		}
		return
	}
	acc := a.inner()
	acc.Resize(len(groups))
	args := make([]batch.Vec, len(a.params))
	for k := range args {
		args[k].Reset(a.params[k], 0)
	}
	var to []int32
	for k, g := range groups {
		for _, v := range a.values(int(g)) {
			b := []byte(v)
			for p := range args {
				args[p].Grow(1)
				b, _ = batch.DecodeValue(&args[p], args[p].Len-1, b)
			}
			to = append(to, int32(k))
		}
	}
	for p := range args {
		args[p].PadOffsets()
	}
	acc.Update(to, args, nil, nil)
	dense := make([]int32, len(groups))
	for k := range dense {
		dense[k] = int32(k)
	}
	acc.Emit(dense, where, out)
}

func (a *distinctAcc) Clear(g int) {
	a.seen[g].each(func(v []byte) { a.bytes -= distinctCost(v) })
	a.seen[g] = tupleSet{}
}

func (a *distinctAcc) Bytes() int64 { return int64(cap(a.seen))*16 + a.bytes }
