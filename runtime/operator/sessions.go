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
	held     sessionHeld
	ends     endHeap
	fired    int64
	numbers  int32   // given so far
	free     []int32 // numbers that can be given anew
	united   []union
	list     []firedSession
	sessionDisk
}

// sessionHeld is what an operator keeps of sessions, by their numbers.
type sessionHeld interface {
	// fresh is one like it that has nothing.
	fresh() sessionHeld
	resize(numbers int32)
	// unite moves what a session has into another one, clear forgets it, and take keeps
	// numbers alone, which are their places from then on.
	unite(to, from int32) error
	clear(number int32)
	take(numbers []int32)
	// save appends what sessions have; load reads it into those that they are now, -1:
	// none.
	save(dst []byte, numbers []int32) []byte
	load(r *state.Reader, numbers []int32) error
	bytes() int64
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

// newSessions has none.
func newSessions(ws *Windows, keyTypes []types.Type, lateness, hold int64, held sessionHeld) *sessions {
	a := &sessions{windows: ws, gap: ws.size, lateness: lateness, hold: hold, keyTypes: keyTypes, keys: state.NewKeys(keyTypes),
		fired: batch.NoWatermark, held: held}
	a.begin(a)
	return a
}

func (a *sessions) span(s session) Span { return a.windows.session(s.start, s.end) }

// find gives the slots of keys.
func (a *sessions) find(cols []*batch.Vec, hashes []uint64, sel batch.Sel, slots []int32) {
	a.keys.Find(cols, hashes, sel, slots)
	a.room()
}

// room gives each key its place.
func (a *sessions) room() {
	for len(a.byKey) < a.keys.Len() {
		a.byKey = append(a.byKey, nil)
	}
}

// join puts rows into sessions and gives, by row, the session's number. Numbers
// of sessions that went into others are free after settle.
func (a *sessions) join(cols []*batch.Vec, hashes []uint64, time *batch.Vec, sel batch.Sel, numbers []int32) error {
	if err := a.disk.fetchGroups(cols, hashes, sel); err != nil {
		return err
	}
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
	a.held.resize(a.numbers)
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
		a.held.resize(a.numbers)
		if err := a.held.unite(s.number, x.number); err != nil {
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

// over reports a session whose end a watermark has passed, so that it fires.
func (a *sessions) over(time, end int64) bool {
	return time == batch.MaxWatermark || watermark.Late(time, end, a.hold)
}

// fire gives the sessions that a watermark fires, by give: of those that s has, which are
// in memory, or a part of what is on disk.
func (a *sessions) fire(time int64, give func(s *sessions, due []firedSession) error) error {
	if err := a.fireHere(time, give); err != nil {
		return err
	}
	if err := a.fireDisk(time, give); err != nil {
		return err
	}
	a.fired = max(a.fired, time)
	a.shrink()
	return nil
}

// fireHere does so of what is in memory.
func (a *sessions) fireHere(time int64, give func(s *sessions, due []firedSession) error) error {
	due := a.due(time)
	for from := 0; from < len(due); from += emitRows {
		if err := give(a, due[from:min(from+emitRows, len(due))]); err != nil {
			return err
		}
	}
	for i := range due {
		a.held.clear(due[i].number)
		a.free = append(a.free, due[i].number)
	}
	return nil
}

// due takes out the sessions that a watermark fires.
func (a *sessions) due(time int64) []firedSession {
	a.list = a.list[:0]
	for len(a.ends) > 0 && a.over(time, a.ends[0].end) {
		e := a.ends.pop()
		list := a.byKey[e.key]
		i := slices.IndexFunc(list, func(s session) bool { return s.queued == e.end })
		switch {
		case i < 0: // it has become part of another one
		case a.over(time, list[i].end):
			a.list = append(a.list, firedSession{list[i], e.key})
			a.byKey[e.key] = slices.Delete(list, i, i+1)
		default:
			list[i].queued = list[i].end
			a.ends.push(sessionEnd{list[i].end, e.key})
		}
	}
	return a.list
}

// next is the first instant at which a session may be over; ok is false where there is none.
func (a *sessions) next() (at int64, ok bool) {
	if at, ok = a.later.first(); len(a.ends) > 0 && (!ok || a.ends[0].end < at) {
		return a.ends[0].end, true
	}
	return at, ok
}

// shrink forgets keys without a session when they are most of them.
func (a *sessions) shrink() {
	if a.keys.Len() >= 4096 && a.keys.Len() >= 4*len(a.ends) {
		a.keep(a.alive())
	}
}

// alive are the slots of keys with a session.
func (a *sessions) alive() []int32 {
	live := []int32{}
	for slot, list := range a.byKey {
		if len(list) > 0 {
			live = append(live, int32(slot))
		}
	}
	return live
}

// keep forgets all keys but some.
func (a *sessions) keep(slots []int32) {
	lists := make([][]session, len(slots))
	var numbers []int32
	a.ends, a.free, a.disk.hot = nil, nil, nil
	for i, slot := range slots {
		lists[i] = a.byKey[slot]
		for k := range lists[i] {
			s := &lists[i][k]
			numbers = append(numbers, s.number)
			s.number, s.queued = int32(len(numbers)-1), s.end
			a.ends.push(sessionEnd{s.end, int32(i)})
		}
	}
	a.keys, a.byKey, a.numbers = a.keys.Take(slots), lists, int32(len(numbers))
	a.held.take(numbers)
}

// save appends the watermark, the sessions with their keys, and what they hold.
func (a *sessions) save(dst []byte) []byte {
	dst = binary.AppendVarint(dst, a.fired)
	var hashes []uint64
	var numbers []int32
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
	return a.held.save(dst, numbers)
}

// load takes in the sessions of the given key groups, with what is in parts behind them.
func (a *sessions) load(r *state.Reader, groups state.Range) error {
	fired := r.Varint()
	hashes := r.Hashes()
	cols := make([]*batch.Vec, len(a.keyTypes))
	for i := range cols {
		cols[i] = r.Vec(a.keyTypes[i])
		if cols[i].Len != len(hashes) {
			return state.ErrCorrupt
		}
	}
	slot := make([]int32, len(hashes))
	numbers := make([]int32, len(hashes)) // as they are now; -1: of another subtask
	for i := range hashes {
		start, end := r.Varint(), r.Varint()
		if err := r.Err(); err != nil {
			return err
		}
		if numbers[i] = -1; groups.Has(hashes[i]) {
			a.find(cols, hashes, batch.Sel{int32(i)}, slot)
			numbers[i] = a.put(slot[i], start, end)
		}
	}
	a.fired = max(a.fired, fired)
	a.held.resize(a.numbers)
	if err := a.held.load(r, numbers); err != nil {
		return err
	}
	return a.loadDisk(r, groups, fired)
}

// put adds a session behind those that a key has, and gives its number.
func (a *sessions) put(key int32, start, end int64) int32 {
	s := session{start, end, end, a.number()}
	a.byKey[key] = append(a.byKey[key], s)
	a.ends.push(sessionEnd{end, key})
	return s.number
}

// Bytes is the memory held.
func (a *sessions) Bytes() int64 {
	return a.keys.Bytes() + int64(24*cap(a.byKey)+16*cap(a.ends)+36*int(a.numbers)) + a.held.bytes() + a.disk.bytes() + a.later.bytes()
}
