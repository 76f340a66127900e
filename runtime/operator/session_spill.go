package operator

import (
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// sessionDisk is the sessions that are on disk. What is in memory of a key, all its
// sessions, is what the key has; else what the newest run says that has it. Keys that rows
// come for are fetched first. When the watermark passes the end of a session that is on
// disk, it is given from there.
//
// Nothing is written when a session has been given: its end says so. An older copy of a
// key has no later ends, so it has nothing more to give then, either.
type sessionDisk struct {
	disk  groupDisk
	later endRuns // the ends of sessions on disk
	// given: sessions whose end this watermark has passed were given. loaded: that is what
	// saved state says; loading is what the one says that is being loaded.
	given   int64
	loaded  bool
	loading *int64
	// latest are the last ends of runs.
	latest map[*spill.Run]int64
	none   ages // sessions have no time to live
}

var _ grouped = (*sessions)(nil)

func (d *sessionDisk) begin(a *sessions) {
	d.disk, d.given, d.none, d.latest = newGroupDisk(a, a.keyTypes), batch.NoWatermark, newAges(0), map[*spill.Run]int64{}
	d.disk.moved = a.moved
	d.later = endRuns{place: &d.disk.spillPlace, over: func(end int64) bool { return a.over(d.given, end) }}
}

// moved notes the ends of sessions that are in the newest run.
func (a *sessions) moved(slots []int32) error {
	var ends []diskEnd
	last := batch.NoWatermark
	for _, slot := range slots {
		for _, s := range a.byKey[slot] {
			ends, last = append(ends, diskEnd{s.end, a.keys.Hash(int(slot))}), max(last, s.end)
		}
	}
	a.latest[a.disk.runs[len(a.disk.runs)-1].Run] = last
	return a.later.add(ends)
}

// forgetRuns lets go of runs whose sessions have all been given.
func (a *sessions) forgetRuns() {
	d := &a.disk
	merged := batch.NoWatermark
	for run, last := range a.latest {
		if !slices.ContainsFunc(d.runs, func(r groupRun) bool { return r.Run == run }) {
			merged = max(merged, last)
			delete(a.latest, run)
		}
	}
	d.runs = slices.DeleteFunc(d.runs, func(r groupRun) bool {
		if _, ok := a.latest[r.Run]; !ok {
			a.latest[r.Run] = merged // it is of those that are not there any more
		}
		gone := a.over(a.given, a.latest[r.Run])
		if gone {
			delete(a.latest, r.Run)
			r.Release()
		}
		return gone
	})
}

// fireDisk gives the sessions on disk that a watermark fires, of keys that are not in
// memory, whose sessions are all there.
func (a *sessions) fireDisk(time int64, give func(s *sessions, due []firedSession) error) error {
	if len(a.disk.runs) == 0 {
		a.given = max(a.given, time)
		return nil
	}
	bytes, keys := int64(0), 0
	for _, r := range a.disk.runs {
		bytes, keys = bytes+r.Bytes(), keys+r.Keys()
	}
	// A block is read for each key that is looked for; for more of them all blocks are.
	hashes, many, err := a.later.take(func(end int64) bool { return a.over(time, end) }, max(keys/16, 1024))
	if err != nil {
		return err
	}
	if many {
		hashes = nil
		err = a.fireRanges(time, give)
	}
	n := int(min(max(a.disk.rangeBytes()*int64(keys)/(2*bytes+1), fetchKeys), 4096))
	for ; len(hashes) > 0 && err == nil; hashes = hashes[min(n, len(hashes)):] {
		err = a.fireKeys(time, hashes[:min(n, len(hashes))], give)
	}
	if err != nil {
		return err
	}
	a.given = max(a.given, time)
	a.forgetRuns()
	return nil
}

// fireRanges goes through all keys on disk.
func (a *sessions) fireRanges(time int64, give func(s *sessions, due []firedSession) error) error {
	runs := make([]*spill.Run, len(a.disk.runs))
	for i, r := range a.disk.runs {
		runs[i] = r.Run
	}
	for _, x := range spill.Ranges(runs, a.disk.rangeBytes()) {
		part := a.empty()
		is := func(cols []*batch.Vec, i int, h uint64) bool { return x.Has(h) && a.keys.Slot(cols, h, i) < 0 }
		for k := range a.disk.runs {
			for block := range runs[k].In(x) {
				if err := a.disk.load(part, &a.disk.runs[k], block, is); err != nil {
					return err
				}
			}
		}
		if err := part.fireHere(time, give); err != nil {
			return err
		}
	}
	return nil
}

// fireKeys looks for keys of some hashes, in order.
func (a *sessions) fireKeys(time int64, hashes []uint64, give func(s *sessions, due []firedSession) error) error {
	part := a.empty()
	is := func(cols []*batch.Vec, i int, h uint64) bool {
		_, ok := slices.BinarySearch(hashes, h)
		// What a newer run says of a key counts.
		return ok && a.keys.Slot(cols, h, i) < 0 && part.keys.Slot(cols, h, i) < 0
	}
	for k := len(a.disk.runs) - 1; k >= 0; k-- {
		last := -1
		for _, h := range hashes {
			block := a.disk.runs[k].Find(h)
			if block < 0 || block == last {
				continue
			}
			last = block
			if err := a.disk.load(part, &a.disk.runs[k], block, is); err != nil {
				return err
			}
		}
	}
	return part.fireHere(time, give)
}

// saveHere saves what is all in memory. Tasks of the clock may have been at other times when
// what this one has loaded was saved: then some of it is still to be given at its time.
func (a *sessions) saveHere(dst []byte) []byte {
	if dst = a.save(dst); a.given < a.fired {
		dst = binary.AppendVarint(dst, a.given)
	}
	return dst
}

// saveTo saves in parts: in each no sessions, the watermark up to which they were given, and
// pieces up to the end.
func (a *sessions) saveTo(p *state.Payload, head []byte) {
	a.disk.saveTo(a.disk.parts(p, func(_ int, more bool) []byte {
		none := a.empty()
		none.fired = a.fired
		return appendFollow(binary.AppendVarint(none.save(slices.Clone(head)), a.given), more)
	}))
}

// loadDisk loads the parts of a saved state whose watermark was fired.
func (a *sessions) loadDisk(r *state.Reader, groups state.Range, fired int64) error {
	given := fired
	if r.Rest() > 0 {
		given = r.Varint()
	}
	if !a.loaded || given < a.given {
		a.given, a.loaded = given, true
	}
	a.loading = &given
	defer func() { a.loading = nil }()
	return a.disk.loadParts(r, groups, readFollow(r))
}

// empty is one like it with no sessions.
func (a *sessions) empty() *sessions {
	p := newSessions(a.windows, a.keyTypes, a.lateness, a.hold, a.held.fresh())
	p.given = a.given
	return p
}

func (a *sessions) part() (grouped, *groupDisk) {
	p := a.empty()
	return p, &p.disk
}

func (a *sessions) groupKeys() *state.Keys { return a.keys }
func (a *sessions) groupAges() *ages       { return &a.none }
func (a *sessions) expire() int            { return 0 }

// groupSlots implements grouped.
func (a *sessions) groupSlots() []int32 {
	return slices.DeleteFunc(byHash(a.keys), func(slot int32) bool { return len(a.byKey[slot]) == 0 })
}

// savePart implements grouped: keys, the sessions of each, and what they hold.
func (a *sessions) savePart(dst []byte, slots, _ []int32) []byte {
	dst = appendKeys(dst, a.keys, slots)
	var numbers []int32
	for _, slot := range slots {
		dst = binary.AppendUvarint(dst, uint64(len(a.byKey[slot])))
		for _, s := range a.byKey[slot] {
			dst, numbers = binary.AppendVarint(binary.AppendVarint(dst, s.start), s.end), append(numbers, s.number)
		}
	}
	return a.held.save(dst, numbers)
}

// loadPart implements grouped. Sessions that have been given are left out; the key is known
// to have none then.
func (a *sessions) loadPart(r *state.Reader, is wanted, _ int64) error {
	given := a.given
	if a.loading != nil {
		given = *a.loading
	}
	hashes := r.Hashes()
	cols := make([]*batch.Vec, len(a.keyTypes))
	for i, t := range a.keyTypes {
		if cols[i] = r.Vec(t); cols[i].Len != len(hashes) {
			return state.ErrCorrupt
		}
	}
	var numbers []int32
	for i, h := range hashes {
		key := int32(-1)
		if is(cols, i, h) {
			key = a.keys.FindOne(cols, h, i)
			a.room()
			a.clear(key)
		}
		for range r.Count() {
			start, end := r.Varint(), r.Varint()
			number := int32(-1)
			if key >= 0 && !a.over(given, end) {
				number = a.put(key, start, end)
			}
			numbers = append(numbers, number)
		}
		if err := r.Err(); err != nil {
			return err
		}
	}
	a.held.resize(a.numbers)
	return a.held.load(r, numbers)
}

// clear leaves a key without sessions.
func (a *sessions) clear(key int32) {
	for _, s := range a.byKey[key] {
		a.held.clear(s.number)
		a.free = append(a.free, s.number)
	}
	a.byKey[key] = nil
}

// dropGroup implements grouped.
func (a *sessions) dropGroup(slot int32) {
	a.clear(slot)
	a.keys.Delete(slot)
}

// leave implements grouped.
func (a *sessions) leave(slots []int32) {
	for _, slot := range slots {
		a.byKey[slot] = nil
	}
	a.keep(a.alive())
}
