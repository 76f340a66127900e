package lane

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/offsets"
)

// Tracker is what one output of a lane attempt knows about its rows: what it
// must not take again, what is in open files, and from where it would go on
// after a crash. It has no clock and does no I/O.
//
// Per source partition:
//
//	durable resume        begin of the oldest      next: first offset
//	position (cursor)     open group               not processed
//	     |                     |                        |
//	     v  segment  segment   v  segment    segment    v
//	-----[=========|=========|=[=========|=============]------->  offsets
//	     counted once the      rows here are in open groups,
//	     resume moves over     committed, dead or filtered
//
// A segment is the counts of some offsets. A new one begins with each batch, and
// is merged with the one before it when no open group began there, so that the
// resume position can move to where any open group began, with exact counts.
type Tracker struct {
	id    connector.ArtifactID
	parts []trackedPart

	buckets map[connector.BucketID]*openBucket
	groups  []*group // open and sealed, not committed
	seq     uint64
	// aside: late rows are in committed artefacts, too.
	aside bool

	// hour gives an hour's counts as they are durable, or nil.
	hour func(part int32, kind ledger.MinuteKind, hour int64) *ledger.Hour
}

// Position is a point of a source partition between two records.
type Position struct {
	Offset      int64
	LeaderEpoch int32
	// Watermark is the partition's before Offset, in milliseconds.
	Watermark int64
	// Bytes is the input read up to here by this attempt.
	Bytes int64
}

type segment struct {
	start   Position
	counts  ledger.Counts
	minutes minutes
}

type trackedPart struct {
	source connector.Partition
	cursor ledger.Cursor // durable
	segs   []segment     // segs[0].start.Offset == cursor.Offset
	next   Position
	inside bool          // a batch is being processed; the last segment is its
	fresh  []*openBucket // that have got rows of it

	inputs    []*ledger.Input // committed above the cursor
	committed offsets.Set     // their union
	dead      []DeadRecord    // durable, ascending
}

// openBucket is an open file.
type openBucket struct {
	id             connector.BucketID
	tablePartition string
	group          *group
	inputs         []offsets.Set // by partition
	// fresh are, by partition, ranges of the batch being written, in the order
	// of its parts: sorted before they go into inputs, where order is cheap.
	fresh    [][]offsets.Range
	rows     int64
	hash     uint64
	minEvent int64
	maxEvent int64
}

// group is open files that share records: sealed, named by one intent and
// resolved as a whole.
type group struct {
	buckets []*openBucket
	// begin is, by partition, the offset of the segment in which it began; -1:
	// no row of the partition.
	begin []int64
	// bytes is the least Position.Bytes at its begins.
	bytes    int64
	openedAt int64   // ms, monotonic
	written  []int64 // decoded rows, by partition
	late     []int64 // of records that the group holds, likewise
	expanded []int64 // what the table got for them
	odd      []ledger.Odds
	minutes  minutes
	sealed   bool
	carry    bool // began below the head of the attempt before
}

// NewTracker returns the tracker of an output that goes on from cursors, one a
// partition of the lane. id gives job, generation, table, lane and epoch.
func NewTracker(id connector.ArtifactID, parts []connector.Partition, cursors []ledger.Cursor) *Tracker {
	t := &Tracker{id: id, buckets: map[connector.BucketID]*openBucket{}, parts: make([]trackedPart, len(parts)),
		hour: func(int32, ledger.MinuteKind, int64) *ledger.Hour { return nil }}
	for i := range parts {
		c := cursors[i]
		at := Position{Offset: c.Offset, LeaderEpoch: c.LeaderEpoch, Watermark: c.Watermark}
		t.parts[i] = trackedPart{source: parts[i], cursor: c, next: at, segs: []segment{{start: at, minutes: minutes{}}}}
	}
	return t
}

// AddCommitted says that intents' offsets of a partition are committed.
func (t *Tracker) AddCommitted(part int32, in ...*ledger.Input) {
	p := &t.parts[part]
	p.inputs = append(p.inputs, in...)
	sets := []offsets.Set{p.committed}
	for _, x := range in {
		sets = append(sets, x.Offsets)
	}
	p.committed = offsets.UnionOf(sets...)
}

// AddDead says that rows have a durable dead letter; records come ascending.
func (t *Tracker) AddDead(part int32, d DeadRecord) {
	t.parts[part].dead = append(t.parts[part].dead, d)
}

// Next is the first offset that the output has not processed.
func (t *Tracker) Next(part int32) Position { return t.parts[part].next }

// Cursor is the durable resume position.
func (t *Tracker) Cursor(part int32) *ledger.Cursor { return &t.parts[part].cursor }

// Committed is the offsets to skip because a committed artefact has them.
func (t *Tracker) Committed(part int32) offsets.Set { return t.parts[part].committed }

// Dead finds the durable dead letters of a record, or nil.
func (t *Tracker) Dead(part int32, offset int64) *DeadRecord {
	d := t.parts[part].dead
	i := sort.Search(len(d), func(i int) bool { return d[i].Offset >= offset })
	if i < len(d) && d[i].Offset == offset {
		return &d[i]
	}
	return nil
}

// HasDead reports whether a partition has durable dead letters in a range.
func (t *Tracker) HasDead(part int32, from, to int64) bool {
	d := t.parts[part].dead
	i := sort.Search(len(d), func(i int) bool { return d[i].Offset >= from })
	return i < len(d) && d[i].Offset < to
}

// Begin starts processing a stretch of a partition: a segment begins.
func (t *Tracker) Begin(part int32) {
	p := &t.parts[part]
	if p.inside {
		return
	}
	p.inside = true
	if last := &p.segs[len(p.segs)-1]; last.start.Offset == p.next.Offset {
		return // the segment is as yet empty of offsets
	}
	p.segs = append(p.segs, segment{start: p.next, minutes: minutes{}})
}

// Account adds counts to the stretch.
func (t *Tracker) Account(part int32, c *ledger.Counts) {
	p := &t.parts[part]
	p.segs[len(p.segs)-1].counts.Add(c)
}

// Minutes is where the stretch counts minutes.
func (t *Tracker) Minutes(part int32) minutes {
	p := &t.parts[part]
	return p.segs[len(p.segs)-1].minutes
}

// End ends the stretch: everything below next is processed.
func (t *Tracker) End(part int32, next Position) {
	p := &t.parts[part]
	p.inside = false
	for _, b := range p.fresh {
		b.input(int(part))
	}
	clear(p.fresh)
	p.fresh = p.fresh[:0]
	// A reader that began elsewhere, for another output, has not seen all that
	// this one has.
	next.Watermark = max(next.Watermark, p.next.Watermark)
	p.next = next
	n := len(p.segs) - 1
	if n == 0 {
		return
	}
	last := &p.segs[n]
	for _, g := range t.groups {
		if g.begin[part] == last.start.Offset {
			return
		}
	}
	p.segs[n-1].counts.Add(&last.counts)
	p.segs[n-1].minutes.addAll(last.minutes)
	p.segs = p.segs[:n]
}

// Open makes a bucket known, in a group of its own, unless it is open already.
func (t *Tracker) Open(id connector.BucketID, tablePartition string, now int64) {
	if t.buckets[id] != nil {
		return
	}
	g := &group{begin: make([]int64, len(t.parts)), openedAt: now, bytes: math.MaxInt64,
		odd: make([]ledger.Odds, len(t.parts)), minutes: minutes{},
		written: make([]int64, len(t.parts)), late: make([]int64, len(t.parts)), expanded: make([]int64, len(t.parts))}
	for i := range g.begin {
		g.begin[i] = -1
	}
	b := &openBucket{id: id, tablePartition: tablePartition, group: g, inputs: make([]offsets.Set, len(t.parts)),
		fresh: make([][]offsets.Range, len(t.parts)), minEvent: math.MaxInt64, maxEvent: math.MinInt64}
	g.buckets = []*openBucket{b}
	t.buckets[id] = b
	t.groups = append(t.groups, g)
}

// Link puts two open buckets into one group: they share a record.
func (t *Tracker) Link(a, b connector.BucketID) {
	g, h := t.buckets[a].group, t.buckets[b].group
	if g == h {
		return
	}
	for _, x := range h.buckets {
		x.group = g
	}
	g.buckets = append(g.buckets, h.buckets...)
	for i := range g.begin {
		if g.begin[i] < 0 || h.begin[i] >= 0 && h.begin[i] < g.begin[i] {
			g.begin[i] = h.begin[i]
		}
		g.odd[i].Merge(&h.odd[i])
		g.written[i] += h.written[i]
		g.late[i] += h.late[i]
		g.expanded[i] += h.expanded[i]
	}
	g.bytes = min(g.bytes, h.bytes)
	g.openedAt = min(g.openedAt, h.openedAt)
	g.carry = g.carry || h.carry
	g.minutes.addAll(h.minutes)
	t.groups = slices.DeleteFunc(t.groups, func(x *group) bool { return x == h })
}

// Put says that rows of the offsets [first, end) are in an open bucket: rows of
// them, as the table counts.
func (t *Tracker) Put(id connector.BucketID, part int32, first, end, rows int64) {
	b := t.buckets[id]
	if len(b.fresh[part]) == 0 {
		t.parts[part].fresh = append(t.parts[part].fresh, b)
	}
	b.fresh[part] = append(b.fresh[part], offsets.Range{First: first, End: end})
	b.rows += rows
	if b.group.begin[part] < 0 {
		t.begin(b.group, part)
	}
}

// input is what a bucket holds of a partition.
func (b *openBucket) input(part int) offsets.Set {
	if f := b.fresh[part]; len(f) > 0 {
		slices.SortFunc(f, func(x, y offsets.Range) int { return cmp.Compare(x.First, y.First) })
		for _, r := range f {
			b.inputs[part].Add(r.First, r.End)
		}
		b.fresh[part] = f[:0]
	}
	return b.inputs[part]
}

func (t *Tracker) begin(g *group, part int32) {
	p := &t.parts[part]
	at := p.segs[len(p.segs)-1].start
	g.begin[part] = at.Offset
	g.bytes = min(g.bytes, at.Bytes)
}

// PutHash adds what the header of a bucket says of rows: their hash sum and
// the bounds of their event times.
func (t *Tracker) PutHash(id connector.BucketID, hash uint64, minEvent, maxEvent int64) {
	b := t.buckets[id]
	b.hash += hash
	b.minEvent, b.maxEvent = min(b.minEvent, minEvent), max(b.maxEvent, maxEvent)
}

// PutRecords adds to the group of a bucket: decoded rows written, and the
// exceptions among their offsets.
func (t *Tracker) PutRecords(id connector.BucketID, part int32, written int64, odd ledger.Odds) {
	g := t.buckets[id].group
	g.written[part] += written
	g.expanded[part] += written // but for the exceptions
	for o := range odd.All() {
		g.expanded[part] += o.Expanded - o.Written
		g.late[part] += o.Late
		g.odd[part].Add(o)
	}
}

// GroupMinutes is where the group of a bucket counts written rows by minute.
func (t *Tracker) GroupMinutes(id connector.BucketID) minutes { return t.buckets[id].group.minutes }

// OpenRows is the decoded rows that are in groups which are not committed.
func (t *Tracker) OpenRows() int64 {
	var n int64
	for _, g := range t.groups {
		for p := range g.written {
			n += g.written[p] + g.late[p]
		}
	}
	return n
}

// input is what a group disposes of in a partition.
func (g *group) input(part int32, source connector.Partition) ledger.Input {
	in := ledger.Input{Topic: source.TopicID, Partition: source.ID}
	sets := make([]offsets.Set, len(g.buckets))
	for i, b := range g.buckets {
		sets[i] = b.input(int(part))
	}
	in.Offsets = offsets.UnionOf(sets...).Clip()
	in.Odd = g.odd[part].Clip()
	return in
}

// list is the minutes sorted, for an intent.
func (m minutes) list() []ledger.MinuteSum {
	out := make([]ledger.MinuteSum, 0, len(m))
	for k, c := range m {
		out = append(out, ledger.MinuteSum{Kind: k.kind, Minute: k.minute, Counts: c})
	}
	slices.SortFunc(out, func(a, b ledger.MinuteSum) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Minute, b.Minute))
	})
	return out
}

// noEvent are the event bounds of no rows.
func noEvent() (lo, hi int64) { return math.MaxInt64, math.MinInt64 }

// TakeID takes the id of an artefact that the tracker does not follow.
func (t *Tracker) TakeID() connector.ArtifactID {
	t.seq++
	id := t.id
	id.Sequence = t.seq
	return id
}

// NextID is the id that the next artefact gets.
func (t *Tracker) NextID() connector.ArtifactID {
	id := t.id
	id.Sequence = t.seq + 1
	return id
}
