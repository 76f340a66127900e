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
	// late are entries that came with their times, out of order; those that are not
	// held any more are passed over.
	late endHeap
}

const (
	// outside marks an entry that is not in the list, held one that is in late.
	outside = -2
	held    = -3
)

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
	a.room(id)
	a.at[id], a.next[id], a.prev[id] = at, -1, a.tail
	if a.tail >= 0 {
		a.next[a.tail] = id
	} else {
		a.head = id
	}
	a.tail = id
}

func (a *ages) room(id int32) {
	for len(a.at) <= int(id) {
		a.at, a.next, a.prev = append(a.at, 0), append(a.next, -1), append(a.prev, outside)
	}
}

// drop takes an entry out of the list.
func (a *ages) drop(id int32) {
	if int(id) >= len(a.prev) || a.prev[id] == outside {
		return
	}
	if a.prev[id] == held {
		a.prev[id] = outside
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
	if a.ttl == 0 {
		return -1
	}
	for len(a.late) > 0 && a.over(a.late[0].end) {
		if e := a.late.pop(); a.holds(e) {
			a.drop(e.key)
			return e.key
		}
	}
	if a.head < 0 || !a.over(a.at[a.head]) {
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
	for _, e := range a.late {
		if a.holds(e) && to[e.key] >= 0 {
			out.hold(to[e.key], e.end)
		}
	}
	*a = out
}

// hold says when an entry was written, at any time. It costs more than touch.
func (a *ages) hold(id int32, at int64) {
	if a.ttl > 0 {
		a.drop(id)
		a.room(id)
		a.at[id], a.prev[id] = at, held
		if len(a.late) > 2*len(a.at)+1024 {
			a.late = slices.DeleteFunc(a.late, func(e sessionEnd) bool { return !a.holds(e) })
			// What is in order is a heap.
			slices.SortFunc(a.late, func(x, y sessionEnd) int { return cmp.Or(cmp.Compare(x.end, y.end), cmp.Compare(x.key, y.key)) })
			a.late = slices.Compact(a.late)
		}
		a.late.push(sessionEnd{end: at, key: id})
	}
}

// holds reports that an entry of late is as it was.
func (a *ages) holds(e sessionEnd) bool { return a.prev[e.key] == held && a.at[e.key] == e.end }

func (a *ages) bytes() int64 { return int64(16*cap(a.at) + 16*cap(a.late)) }

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

// sort brings the entries into the order of their times, those in late among them.
func (a *ages) sort() {
	all := make([]int32, 0, len(a.at))
	for id := a.head; id >= 0; id = a.next[id] {
		all = append(all, id)
	}
	for _, e := range a.late {
		if a.holds(e) {
			a.prev[e.key] = outside
			all = append(all, e.key)
		}
	}
	slices.SortStableFunc(all, func(x, y int32) int { return cmp.Compare(a.at[x], a.at[y]) })
	a.head, a.tail, a.late = -1, -1, nil
	for _, id := range all {
		a.append(id, a.at[id])
	}
}

// over reports, where there is a time to live, that the time of what was written at an
// instant is over.
func (a *ages) over(at int64) bool { return a.now-at >= a.ttl }

// restore puts entries with their times among those there are.
func (a *ages) restore(ids []int32, at []int64) {
	for i, id := range ids {
		a.put(id, at[i])
	}
	if a.ttl > 0 && len(ids) > 0 {
		a.sort()
	}
}
