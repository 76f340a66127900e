package fn

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func appendUint64(dst []byte, x uint64) []byte { return binary.BigEndian.AppendUint64(dst, x) }

// counted is a value with the number of rows that have it. Key orders it, val is
// its exact encoding: the arguments one after the other.
type counted struct {
	version
	n int64
}

// counts are the values of a group.
type counts struct {
	byValue map[string]*counted
	// heap has the values in a heap's order where one of them is picked; some
	// may be gone (n is 0).
	heap []*counted
	// result is the accumulator's result as it was last computed from the values;
	// stale says that they have changed since.
	stale bool
}

// valueCounts is what pick and bag have in common: the values of each group.
type valueCounts struct {
	groups []counts
	buf    []byte
	bytes  int64
}

func (a *valueCounts) Resize(n int) { a.groups = resizeTo(a.groups, n) }

// add changes the number of rows of a value; it gives the value if it is new. What
// is not there cannot be taken back.
func (a *valueCounts) add(g int32, key, val []byte, times int64) *counted {
	c := &a.groups[g]
	c.stale = true
	a.buf = append(appendLen(a.buf[:0], key), val...)
	if v := c.byValue[string(a.buf)]; v != nil {
		if v.n += times; v.n <= 0 {
			v.n = 0
			delete(c.byValue, string(a.buf))
			a.bytes -= int64(2*len(a.buf)) + 96
		}
		return nil
	}
	if times <= 0 {
		return nil
	}
	if c.byValue == nil {
		c.byValue = map[string]*counted{}
	}
	v := &counted{version{bytes.Clone(key), bytes.Clone(val)}, times}
	c.byValue[string(a.buf)] = v
	a.bytes += int64(2*len(a.buf)) + 96
	return v
}

// sorted are the values of a group in order.
func (c *counts) sorted() []*counted {
	out := make([]*counted, 0, len(c.byValue))
	for _, v := range c.byValue {
		out = append(out, v)
	}
	slices.SortFunc(out, func(x, y *counted) int { return x.compare(y.key, y.val) })
	return out
}

func (a *valueCounts) AppendState(dst []byte, g int) []byte {
	vals := a.groups[g].sorted()
	dst = binary.AppendUvarint(append(dst, stateVersion), uint64(len(vals)))
	for _, v := range vals {
		dst = appendUint64(appendLen(appendLen(dst, v.key), v.val), uint64(v.n))
	}
	return dst
}

// readCounts reads an AppendState.
func readCounts(state []byte, f func(key, val []byte, n int64)) error {
	r := openState(state)
	for n := r.count(); n > 0; n-- {
		key := r.bytes()
		val := r.bytes()
		times := int64(r.u64())
		if r.bad || times <= 0 {
			return errState
		}
		f(key, val, times)
	}
	return r.err()
}

func (a *valueCounts) Clear(g int) {
	for k := range a.groups[g].byValue {
		a.bytes -= int64(2*len(k)) + 96
	}
	a.groups[g] = counts{}
}

func (a *valueCounts) Bytes() int64 { return int64(cap(a.groups))*48 + a.bytes }

// pick is MIN, MAX, FIRST_VALUE and LAST_VALUE over rows that change: the least or
// the greatest value of those that are left.
type pick struct {
	valueCounts
	ret       types.Type
	ordered   bool
	least     bool
	keepNulls bool
	key, val  []byte
}

func newPick(b BoundAggregate, least, keepNulls bool) *pick {
	return &pick{ret: b.Return, ordered: b.Ordered, least: least, keepNulls: keepNulls}
}

func (a *pick) fold(groups []int32, args []batch.Vec, order *batch.Vec, sel batch.Sel, times int64) {
	v := &args[0]
	eachRow(len(groups), sel, func(i int32) {
		if !a.keepNulls && v.IsNull(int(i)) {
			return
		}
		if a.ordered {
			a.key = append(a.key[:0], orderKey(order, i)...)
		} else {
			a.key = batch.AppendOrderValue(a.key[:0], v, int(i))
		}
		a.val = batch.AppendExact(a.val[:0], v, int(i))
		a.push(groups[i], a.add(groups[i], a.key, a.val, times))
	})
}

func (a *pick) Update(groups []int32, args []batch.Vec, order *batch.Vec, sel batch.Sel) {
	a.fold(groups, args, order, sel, 1)
}

// Retract implements Retractor.
func (a *pick) Retract(groups []int32, args []batch.Vec, order *batch.Vec, sel batch.Sel) {
	a.fold(groups, args, order, sel, -1)
}

// pickHeap is heap.Interface over the values of one group.
type pickHeap struct {
	*counts
	least bool
}

func (h pickHeap) Len() int { return len(h.heap) }
func (h pickHeap) Less(i, j int) bool {
	c := h.heap[i].compare(h.heap[j].key, h.heap[j].val)
	return h.least && c < 0 || !h.least && c > 0
}
func (h pickHeap) Swap(i, j int) { h.heap[i], h.heap[j] = h.heap[j], h.heap[i] }
func (h pickHeap) Push(x any)    { h.heap = append(h.heap, x.(*counted)) }
func (h pickHeap) Pop() any {
	last := h.heap[len(h.heap)-1]
	h.heap = h.heap[:len(h.heap)-1]
	return last
}

// push notes a new value. Values that are gone leave the heap when they come to its
// top, or all at once when they are most of it.
func (a *pick) push(g int32, v *counted) {
	c := &a.groups[g]
	h := pickHeap{c, a.least}
	if v != nil {
		heap.Push(h, v)
	}
	if len(c.heap) > 2*len(c.byValue)+16 {
		c.heap = slices.DeleteFunc(c.heap, func(v *counted) bool { return v.n == 0 })
		heap.Init(h)
	}
}

// top is the value picked, nil: there is none.
func (a *pick) top(g int32) *counted {
	c := &a.groups[g]
	for len(c.heap) > 0 && c.heap[0].n == 0 {
		heap.Pop(pickHeap{c, a.least})
	}
	if len(c.heap) == 0 {
		return nil
	}
	return c.heap[0]
}

func (a *pick) Merge(o Accumulator, into []int32) {
	b := o.(*pick)
	for g, to := range into {
		if g < len(b.groups) && to >= 0 {
			for _, v := range b.groups[g].byValue {
				a.push(to, a.add(to, v.key, v.val, v.n))
			}
		}
	}
}

func (a *pick) MergeState(g int, state []byte) error {
	return readCounts(state, func(key, val []byte, n int64) { a.push(int32(g), a.add(int32(g), key, val, n)) })
}

func (a *pick) Emit(groups []int32, where string, out *batch.Vec) {
	out.Reset(a.ret, len(groups))
	for k, g := range groups {
		v := a.top(g)
		if v == nil {
			out.NullRow(k)
		} else if _, err := batch.DecodeValue(out, k, v.val); err != nil {
			out.NullRow(k)
			out.SetErr(k, batch.CodeArgument, where, errState.Error())
		}
	}
	out.PadOffsets()
}

// bag is any aggregate over rows that change: where values have changed, the
// aggregate is computed anew over those that are left.
type bag struct {
	valueCounts
	params   []types.Type
	ordered  bool
	distinct bool // no tuple counts twice, and one with NULL not at all
	takes    takesNull
	counting bool // COUNT(DISTINCT ...)
	ret      types.Type
	make     func() Accumulator
	inner    Accumulator // as of the last Emit
	key, val []byte
}

func newBag(b BoundAggregate, plain func() Accumulator, distinct, counting bool) *bag {
	return &bag{params: b.Params, ordered: b.Ordered, distinct: distinct, counting: counting, takes: takesNullOf(b), ret: b.Return, make: plain, inner: plain()}
}

func (a *bag) Resize(n int) {
	a.valueCounts.Resize(n)
	a.inner.Resize(n)
}

func (a *bag) fold(groups []int32, args []batch.Vec, order *batch.Vec, sel batch.Sel, times int64) {
	eachRow(len(groups), sel, func(i int32) {
		a.key, a.val = a.key[:0], a.val[:0]
		if a.ordered {
			a.key = append(a.key, orderKey(order, i)...)
		}
		for k := range args {
			if a.distinct && args[k].IsNull(int(i)) && !a.takes.at(k) {
				return
			}
			if a.distinct {
				a.val = batch.AppendValue(a.val, &args[k], int(i))
			} else {
				a.val = batch.AppendExact(a.val, &args[k], int(i))
			}
		}
		a.add(groups[i], a.key, a.val, times)
	})
}

func (a *bag) Update(groups []int32, args []batch.Vec, order *batch.Vec, sel batch.Sel) {
	a.fold(groups, args, order, sel, 1)
}

// Retract implements Retractor.
func (a *bag) Retract(groups []int32, args []batch.Vec, order *batch.Vec, sel batch.Sel) {
	a.fold(groups, args, order, sel, -1)
}

func (a *bag) Merge(o Accumulator, into []int32) {
	b := o.(*bag)
	for g, to := range into {
		if g < len(b.groups) && to >= 0 {
			for _, v := range b.groups[g].byValue {
				a.add(to, v.key, v.val, v.n)
			}
		}
	}
}

func (a *bag) MergeState(g int, state []byte) error {
	return readCounts(state, func(key, val []byte, n int64) { a.add(int32(g), key, val, n) })
}

// compute brings the inner accumulator of a group up to date.
func (a *bag) compute(g int32) {
	c := &a.groups[g]
	if !c.stale {
		return
	}
	c.stale = false
	a.inner.Clear(int(g))
	var order batch.Vec
	order.Reset(types.NewBytes(), 0)
	args := make([]batch.Vec, len(a.params))
	for p := range args {
		args[p].Reset(a.params[p], 0)
	}
	var to []int32
	for _, v := range c.sorted() {
		times := v.n
		if a.distinct {
			times = 1
		}
		for range times {
			rest := v.val
			for p := range args {
				args[p].Grow(1)
				rest, _ = batch.DecodeValue(&args[p], args[p].Len-1, rest)
			}
			order.Grow(1)
			order.PutBytes(order.Len-1, v.key)
			to = append(to, g)
		}
	}
	for p := range args {
		args[p].PadOffsets()
	}
	order.PadOffsets()
	if len(to) > 0 {
		a.inner.Update(to, args, &order, nil)
	}
}

func (a *bag) Emit(groups []int32, where string, out *batch.Vec) {
	if a.counting {
		out.Reset(a.ret, len(groups))
		for k, g := range groups {
			out.I64[k] = int64(len(a.groups[g].byValue))
		}
		return
	}
	for _, g := range groups {
		a.compute(g)
	}
	a.inner.Emit(groups, where, out)
}

func (a *bag) Clear(g int) {
	a.valueCounts.Clear(g)
	a.inner.Clear(g)
}

func (a *bag) Bytes() int64 { return a.valueCounts.Bytes() + a.inner.Bytes() }
