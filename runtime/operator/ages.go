package operator

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/millrace/millrace/runtime/state"
)

// Aging is a Keyed whose state has a time to live: what has not been written for
// that long is forgotten, as if it had never been there, and without a word to
// whoever got its rows.
type Aging interface {
	Keyed
	// Age says that the clock of processing stands at now, in milliseconds from
	// any point, and gives how many entries (keys, or rows of a join) were
	// forgotten. It is called before each Fold, Save and Load, with times that
	// never go back.
	Age(now int64) int
}

// ages keeps entries, which are dense numbers, in the order in which they were
// written last. With no time to live it keeps nothing.
type ages struct {
	ttl  int64 // ms; 0: for good
	now  int64
	at   []int64
	next []int32 // towards the youngest; -1 is the end
	prev []int32 // outside: the entry is not in the list
	head int32   // the oldest, -1: none
	tail int32
}

// outside marks an entry that is not in the list.
const outside = -2

func newAges(ttl int64) ages { return ages{ttl: ttl, head: -1, tail: -1} }

func (a *ages) on() bool { return a.ttl > 0 }

// touch says that an entry is written now.
func (a *ages) touch(id int32) {
	if a.ttl > 0 {
		a.drop(id)
		a.append(id, a.now)
	}
}

func (a *ages) append(id int32, at int64) {
	for len(a.at) <= int(id) {
		a.at, a.next, a.prev = append(a.at, 0), append(a.next, -1), append(a.prev, outside)
	}
	a.at[id], a.next[id], a.prev[id] = at, -1, a.tail
	if a.tail >= 0 {
		a.next[a.tail] = id
	} else {
		a.head = id
	}
	a.tail = id
}

// drop takes an entry out of the list.
func (a *ages) drop(id int32) {
	if int(id) >= len(a.prev) || a.prev[id] == outside {
		return
	}
	p, n := a.prev[id], a.next[id]
	if p >= 0 {
		a.next[p] = n
	} else {
		a.head = n
	}
	if n >= 0 {
		a.prev[n] = p
	} else {
		a.tail = p
	}
	a.prev[id] = outside
}

// expired takes the oldest entry out if its time is over; -1: there is none.
func (a *ages) expired() int32 {
	if a.ttl == 0 || a.head < 0 || !a.over(a.at[a.head]) {
		return -1
	}
	id := a.head
	a.drop(id)
	return id
}

// renumber takes over new numbers of the entries that stay: to is by old number.
func (a *ages) renumber(to []int32) {
	if a.ttl == 0 {
		return
	}
	out := newAges(a.ttl)
	out.now = a.now
	for id := a.head; id >= 0; id = a.next[id] {
		if to[id] >= 0 {
			out.append(to[id], a.at[id])
		}
	}
	*a = out
}

func (a *ages) bytes() int64 { return int64(16 * cap(a.at)) }

// save appends how long ago each entry of ids was written; nothing but a mark where
// there is no time to live. The clock's point stays out of it: after a restart ages
// count on.
func (a *ages) save(dst []byte, ids []int32) []byte {
	if a.ttl == 0 {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	for _, id := range ids {
		dst = binary.AppendUvarint(dst, uint64(max(a.now-a.at[id], 0)))
	}
	return dst
}

// read is readAges on the clock of a.
func (a *ages) read(r *state.Reader, n int) []int64 { return readAges(r, n, a.now) }

// readAges reads a save of n entries that was made at an instant: when each was written.
// Entries saved without ages are as if they were written then.
func readAges(r *state.Reader, n int, now int64) []int64 {
	out := make([]int64, n)
	known := r.Byte() == 1
	for i := range out {
		out[i] = now
		if known {
			out[i] -= int64(min(r.Uvarint(), math.MaxInt64/4))
		}
	}
	return out
}

// put says when an entry was written, at a time that need not be later than those of
// the others: sort brings them into order before the next expired.
func (a *ages) put(id int32, at int64) {
	if a.ttl > 0 {
		a.drop(id)
		a.append(id, at)
	}
}

// sort brings the entries into the order of their times.
func (a *ages) sort() {
	all := make([]int32, 0, len(a.at))
	for id := a.head; id >= 0; id = a.next[id] {
		all = append(all, id)
	}
	slices.SortStableFunc(all, func(x, y int32) int { return cmp.Compare(a.at[x], a.at[y]) })
	a.head, a.tail = -1, -1
	for _, id := range all {
		a.append(id, a.at[id])
	}
}

// over reports, where there is a time to live, that the time of what was written at an
// instant is over.
func (a *ages) over(at int64) bool { return a.now-at >= a.ttl }

// restore puts entries with their times among those there are.
func (a *ages) restore(ids []int32, at []int64) {
	if a.ttl == 0 || len(ids) == 0 {
		return
	}
	type entry struct {
		id int32
		at int64
	}
	var all []entry
	for id := a.head; id >= 0; id = a.next[id] {
		all = append(all, entry{id, a.at[id]})
	}
	for i, id := range ids {
		all = append(all, entry{id, at[i]})
	}
	slices.SortStableFunc(all, func(x, y entry) int { return cmp.Compare(x.at, y.at) })
	now := a.now
	*a = newAges(a.ttl)
	a.now = now
	for _, e := range all {
		a.append(e.id, e.at)
	}
}
