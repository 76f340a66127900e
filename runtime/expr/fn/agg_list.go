package fn

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// version is a value with its order key; of equal keys the canonical encoding
// of the value decides, so that the result never depends on arrival.
type version struct {
	key []byte
	val []byte // batch.AppendExact; nil: no version
}

func (v version) compare(key, val []byte) int {
	if c := bytes.Compare(v.key, key); c != 0 {
		return c
	}
	return bytes.Compare(v.val, val)
}

// orderKey is the order key of a row; nil order gives all rows one key.
func orderKey(order *batch.Vec, i int32) []byte {
	if order == nil {
		return nil
	}
	return order.Bytes(int(i))
}

// versioned is FIRST_VALUE and LAST_VALUE.
type versioned struct {
	t         types.Type
	first     bool
	keepNulls bool
	best      []version
	buf       []byte
	bytes     int64
}

func (a *versioned) Resize(n int) { a.best = resizeTo(a.best, n) }

func (a *versioned) put(g int32, key, val []byte) {
	b := &a.best[g]
	if b.val != nil {
		if c := b.compare(key, val); a.first && c <= 0 || !a.first && c >= 0 {
			return
		}
	}
	a.bytes += int64(len(key) + len(val) - len(b.key) - len(b.val))
	b.key, b.val = append(b.key[:0], key...), append(b.val[:0], val...)
}

func (a *versioned) Update(groups []int32, args []batch.Vec, order *batch.Vec, sel batch.Sel) {
	v := &args[0]
	eachRow(len(groups), sel, func(i int32) {
		if !a.keepNulls && v.IsNull(int(i)) {
			return
		}
		a.buf = batch.AppendExact(a.buf[:0], v, int(i))
		a.put(groups[i], orderKey(order, i), a.buf)
	})
}

func (a *versioned) Merge(o Accumulator, into []int32) {
	b := o.(*versioned)
	for g, to := range into {
		if g < len(b.best) && to >= 0 && b.best[g].val != nil {
			a.put(to, b.best[g].key, b.best[g].val)
		}
	}
}

func (a *versioned) AppendState(dst []byte, g int) []byte {
	dst = append(dst, stateVersion)
	if b := a.best[g]; b.val != nil {
		dst = append(appendLen(dst, b.key), b.val...)
	}
	return dst
}

func (a *versioned) MergeState(g int, state []byte) error {
	r := openState(state)
	if r.bad {
		return errState
	}
	if len(r.b) == 0 {
		return nil
	}
	key := r.bytes()
	if r.bad || len(r.b) == 0 {
		return errState
	}
	a.put(int32(g), key, r.b)
	return nil
}

func (a *versioned) Emit(groups []int32, where string, out *batch.Vec) {
	out.Reset(a.t, len(groups))
	for k, g := range groups {
		if a.best[g].val == nil {
			out.NullRow(k)
		} else if _, err := batch.DecodeValue(out, k, a.best[g].val); err != nil {
			out.NullRow(k)
			out.SetErr(k, batch.CodeArgument, where, errState.Error())
		}
	}
	out.PadOffsets()
}

func (a *versioned) Clear(g int) {
	a.bytes -= int64(len(a.best[g].key) + len(a.best[g].val))
	a.best[g] = version{}
}

func (a *versioned) Bytes() int64 { return int64(cap(a.best))*48 + a.bytes }

// listAcc is LISTAGG (ret a string) and ARRAY_AGG.
type listAcc struct {
	elem      types.Type
	ret       types.Type
	sep       string
	skipNulls bool
	distinct  bool
	rows      [][]version
	seen      []map[string]int // distinct: index into rows by canonical value
	bytes     int64
}

func (a *listAcc) Resize(n int) {
	a.rows = resizeTo(a.rows, n)
	if a.distinct {
		a.seen = resizeTo(a.seen, n)
	}
}

func (a *listAcc) put(g int32, key, val []byte) {
	if a.distinct {
		if at, ok := a.seen[g][string(val)]; ok {
			// A value stands where it comes first.
			if v := &a.rows[g][at]; bytes.Compare(key, v.key) < 0 {
				v.key = bytes.Clone(key)
			}
			return
		}
		if a.seen[g] == nil {
			a.seen[g] = map[string]int{}
		}
		a.seen[g][string(val)] = len(a.rows[g])
	}
	both := make([]byte, 0, len(key)+len(val))
	both = append(append(both, key...), val...)
	a.rows[g] = append(a.rows[g], version{key: both[:len(key):len(key)], val: both[len(key):]})
	a.bytes += int64(len(both)) + 48
}

func (a *listAcc) Update(groups []int32, args []batch.Vec, order *batch.Vec, sel batch.Sel) {
	v := &args[0]
	var buf []byte
	eachRow(len(groups), sel, func(i int32) {
		if a.skipNulls && v.IsNull(int(i)) {
			return
		}
		if a.distinct {
			buf = batch.AppendValue(buf[:0], v, int(i))
		} else {
			buf = batch.AppendExact(buf[:0], v, int(i))
		}
		a.put(groups[i], orderKey(order, i), buf)
	})
}

func (a *listAcc) Merge(o Accumulator, into []int32) {
	b := o.(*listAcc)
	for g, to := range into {
		if g < len(b.rows) && to >= 0 {
			for _, v := range b.rows[g] {
				a.put(to, v.key, v.val)
			}
		}
	}
}

// sorted brings a group's rows in order.
func (a *listAcc) sorted(g int) []version {
	rows := a.rows[g]
	if !slices.IsSortedFunc(rows, func(x, y version) int { return x.compare(y.key, y.val) }) {
		slices.SortFunc(rows, func(x, y version) int { return x.compare(y.key, y.val) })
		if a.distinct {
			for i, v := range rows {
				a.seen[g][string(v.val)] = i
			}
		}
	}
	return rows
}

func (a *listAcc) AppendState(dst []byte, g int) []byte {
	rows := a.sorted(g)
	dst = binary.AppendUvarint(append(dst, stateVersion), uint64(len(rows)))
	for _, v := range rows {
		dst = appendLen(appendLen(dst, v.key), v.val)
	}
	return dst
}

func (a *listAcc) MergeState(g int, state []byte) error {
	r := openState(state)
	for n := r.count(); n > 0; n-- {
		key := r.bytes()
		val := r.bytes()
		if r.bad {
			return errState
		}
		a.put(int32(g), key, val)
	}
	return r.err()
}

func (a *listAcc) Emit(groups []int32, where string, out *batch.Vec) {
	out.Reset(a.ret, len(groups))
	for k, g := range groups {
		rows := a.sorted(int(g))
		if len(rows) == 0 {
			out.NullRow(k)
			continue
		}
		if !a.emitOne(rows, k, out) {
			out.NullRow(k)
			out.SetErr(k, batch.CodeArgument, where, errState.Error())
		}
	}
	out.PadOffsets()
}

func (a *listAcc) emitOne(rows []version, k int, out *batch.Vec) bool {
	if !a.ret.IsString() {
		out.BeginList(k)
		child := out.Children[0]
		for _, v := range rows {
			child.Grow(1)
			if _, err := batch.DecodeValue(child, child.Len-1, v.val); err != nil {
				return false
			}
		}
		child.PadOffsets()
		out.EndList()
		return true
	}
	var one batch.Vec
	out.BeginBytes(k)
	for i, v := range rows {
		if i > 0 {
			out.Data = append(out.Data, a.sep...)
		}
		one.Reset(a.elem, 1)
		if _, err := batch.DecodeValue(&one, 0, v.val); err != nil {
			return false
		}
		out.Data = append(out.Data, one.Bytes(0)...)
	}
	out.EndBytes()
	return true
}

func (a *listAcc) Clear(g int) {
	for _, v := range a.rows[g] {
		a.bytes -= int64(len(v.key)+len(v.val)) + 48
	}
	a.rows[g] = nil
	if a.distinct {
		a.seen[g] = nil
	}
}

func (a *listAcc) Bytes() int64 { return int64(cap(a.rows))*24 + a.bytes }
