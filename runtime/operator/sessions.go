package operator

import (
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/runtime/watermark"
)

// sessions are the open sessions of a subtask's keys. Rows of a key whose times
// lie no more than the gap apart are one session, whatever the order in which
// they come; it ends the gap behind its last row.
//
// A session fires when no row can come any more that would belong to it: the gap
// (and the lateness) after its end, see graph.WindowAggregate.HoldMillis.
type sessions struct {
	windows  *Windows
	gap      int64
	lateness int64
	hold     int64 // after a session's end
	keyTypes []types.Type
	keys     *state.Keys
	byKey    [][]session // by key slot, in order of time; they do not touch
	ends     endHeap
	fired    int64
	numbers  int32   // given so far
	free     []int32 // numbers that can be given anew
	united   []union
	unite    func(to, from int32) error
	list     []firedSession
}

// session is between two instants, in ms; number is its own among the open ones,
// queued the end with which it stands among the ends.
type session struct {
	start, end, queued int64
	number             int32
}

// union says that a session has become part of another one.
type union struct{ from, to int32 }

type firedSession struct {
	session
	key int32
}

// newSessions has none; unite is called when two become one.
func newSessions(ws *Windows, keyTypes []types.Type, lateness, hold int64, unite func(to, from int32) error) *sessions {
	return &sessions{windows: ws, gap: ws.size, lateness: lateness, hold: hold, keyTypes: keyTypes, keys: state.NewKeys(keyTypes),
		fired: batch.NoWatermark, unite: unite}
}

func (a *sessions) span(s session) Span { return a.windows.session(s.start, s.end) }

// find gives the slots of keys.
func (a *sessions) find(cols []*batch.Vec, hashes []uint64, sel batch.Sel, slots []int32) {
	a.keys.Find(cols, hashes, sel, slots)
	for len(a.byKey) < a.keys.Len() {
		a.byKey = append(a.byKey, nil)
	}
}

// join puts rows into sessions and gives, by row, the session's number. Numbers
// of sessions that went into others are free after settle.
func (a *sessions) join(cols []*batch.Vec, hashes []uint64, time *batch.Vec, sel batch.Sel, numbers []int32) error {
	a.find(cols, hashes, sel, numbers)
	for _, row := range sel {
		ts := types.FloorDiv(timeOf(time, row), a.windows.units/1000)
		if watermark.Late(a.fired, ts+a.gap, a.lateness) {
			return &FiredError{ts + a.gap, a.fired}
		}
		number, err := a.add(numbers[row], ts)
		if err != nil {
			return err
		}
		numbers[row] = number
	}
	if len(a.united) == 0 {
		return nil
	}
	for _, row := range sel {
		for _, u := range a.united {
			if u.from == numbers[row] {
				numbers[row] = u.to
			}
		}
	}
	return nil
}

func (a *sessions) settle() {
	for _, u := range a.united {
		a.free = append(a.free, u.from)
	}
	a.united = a.united[:0]
}

// add puts a time into the session of its key, and makes one of the sessions
// that it connects.
func (a *sessions) add(key int32, ts int64) (int32, error) {
	list := a.byKey[key]
	end := ts + a.gap
	i := len(list)
	for i > 0 && list[i-1].end >= ts {
		i--
	}
	j := i
	for j < len(list) && list[j].start <= end {
		j++
	}
	if i == j {
		s := session{start: ts, end: end, queued: end, number: a.number()}
		a.byKey[key] = slices.Insert(list, i, s)
		a.ends.push(sessionEnd{end, key})
		return s.number, nil
	}
	s := &list[i]
	s.start, s.end = min(s.start, ts), max(s.end, end, list[j-1].end)
	for _, x := range list[i+1 : j] {
		if err := a.unite(s.number, x.number); err != nil {
			return 0, err
		}
		a.united = append(a.united, union{x.number, s.number})
	}
	a.byKey[key] = slices.Delete(list, i+1, j)
	return a.byKey[key][i].number, nil
}

func (a *sessions) number() int32 {
	if n := len(a.free); n > 0 {
		g := a.free[n-1]
		a.free = a.free[:n-1]
		return g
	}
	a.numbers++
	return a.numbers - 1
}

// due takes out the sessions that a watermark fires; release gives their numbers
// back.
func (a *sessions) due(time int64) []firedSession {
	over := func(end int64) bool {
		return time == batch.MaxWatermark || watermark.Late(time, end, a.hold)
	}
	a.list = a.list[:0]
	for len(a.ends) > 0 && over(a.ends[0].end) {
		e := a.ends.pop()
		list := a.byKey[e.key]
		i := slices.IndexFunc(list, func(s session) bool { return s.queued == e.end })
		switch {
		case i < 0: // it has become part of another one
		case over(list[i].end):
			a.list = append(a.list, firedSession{list[i], e.key})
			a.byKey[e.key] = slices.Delete(list, i, i+1)
		default:
			list[i].queued = list[i].end
			a.ends.push(sessionEnd{list[i].end, e.key})
		}
	}
	a.fired = max(a.fired, time)
	return a.list
}

func (a *sessions) release(due []firedSession) {
	for i := range due {
		a.free = append(a.free, due[i].number)
	}
	a.shrink()
}

// shrink forgets keys without a session when they are most of them.
func (a *sessions) shrink() {
	if a.keys.Len() < 4096 || a.keys.Len() < 4*len(a.ends) {
		return
	}
	old, hashes, lists := a.keys.Columns(), a.keys.Hashes(), a.byKey
	sel := batch.Sel{}
	for k := range lists {
		if len(lists[k]) > 0 {
			sel = append(sel, int32(k))
		}
	}
	a.keys, a.byKey, a.ends = state.NewKeys(a.keyTypes), nil, a.ends[:0]
	cols := make([]*batch.Vec, len(old))
	for i := range old {
		cols[i] = &old[i]
	}
	slots := make([]int32, len(hashes))
	a.find(cols, hashes, sel, slots)
	for _, k := range sel {
		a.byKey[slots[k]] = lists[k]
		for i := range lists[k] {
			s := &lists[k][i]
			s.queued = s.end
			a.ends.push(sessionEnd{s.end, slots[k]})
		}
	}
}

// save appends the watermark and the sessions with their keys; numbers are theirs,
// in order.
func (a *sessions) save(dst []byte) (out []byte, numbers []int32) {
	dst = binary.AppendVarint(dst, a.fired)
	var hashes []uint64
	slots := []int32{}
	for k, list := range a.byKey {
		for i := range list {
			hashes, slots, numbers = append(hashes, a.keys.Hash(k)), append(slots, int32(k)), append(numbers, list[i].number)
		}
	}
	dst = state.AppendHashes(dst, hashes)
	keys := a.keys.Columns()
	for i := range keys {
		var v batch.Vec
		v.Take(&keys[i], slots)
		dst = state.AppendVec(dst, &v)
	}
	for _, list := range a.byKey {
		for i := range list {
			dst = binary.AppendVarint(binary.AppendVarint(dst, list[i].start), list[i].end)
		}
	}
	return dst, numbers
}

// load takes in the sessions of the given key groups. numbers are those they have
// now, in the order of the saved ones; -1: of another subtask.
func (a *sessions) load(r *state.Reader, groups state.Range) (numbers []int32, err error) {
	fired := r.Varint()
	hashes := r.Hashes()
	cols := make([]*batch.Vec, len(a.keyTypes))
	for i := range cols {
		cols[i] = r.Vec(a.keyTypes[i])
		if cols[i].Len != len(hashes) {
			return nil, state.ErrCorrupt
		}
	}
	slot := make([]int32, len(hashes))
	for i := range hashes {
		start, end := r.Varint(), r.Varint()
		if err := r.Err(); err != nil {
			return nil, err
		}
		if !groups.Has(hashes[i]) {
			numbers = append(numbers, -1)
			continue
		}
		a.find(cols, hashes, batch.Sel{int32(i)}, slot)
		s := session{start, end, end, a.number()}
		a.byKey[slot[i]] = append(a.byKey[slot[i]], s)
		a.ends.push(sessionEnd{end, slot[i]})
		numbers = append(numbers, s.number)
	}
	a.fired = max(a.fired, fired)
	return numbers, r.Err()
}

func (a *sessions) bytes() int64 {
	return a.keys.Bytes() + int64(24*cap(a.byKey)+16*cap(a.ends)+36*int(a.numbers))
}
