package topiclog

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/storage/segment"
)

// loader rebuilds the state from the manifest's edits when the store is opened;
// nothing else runs meanwhile, so it takes no locks.
type loader struct {
	s        *Store
	found    bool
	segments map[uint64]*segmentInfo
}

func (l *loader) apply(kind uint16, payload []byte) error {
	d := &dec{b: payload}
	switch kind {
	case editStore:
		l.store(d)
	case editTopic:
		l.topic(d)
	case editTopicDeleted:
		if t := l.s.topicsByID[d.uuid()]; t != nil {
			l.s.removeTopic(t)
			for _, p := range t.parts {
				for _, r := range p.segs {
					r.seg.refs--
				}
			}
		}
	case editPartition:
		p := l.part(d)
		start, next, reserved := d.i(), d.i(), d.i()
		if p != nil {
			// Where a partition starts says nothing of what the journal still
			// holds; what lies below goes when the journal was read. None of
			// the three ever falls: an edit may have been made of older values
			// than one before it.
			p.start, p.floor, p.reserved = max(p.start, start), max(p.floor, next), max(p.reserved, reserved)
			p.next = max(p.next, p.floor)
		}
	case editEpoch:
		p := l.part(d)
		r := EpochRange{LeaderEpoch: int32(d.i()), Start: d.i(), End: d.i()}
		if p != nil && d.err == nil {
			p.setEpoch(r)
		}
	case editSegment:
		l.segment(d)
	case editSegmentGone:
		id := d.u()
		delete(l.segments, id)
	case editNextPartition:
		l.s.nextPart = max(l.s.nextPart, PartitionID(d.u()))
	case editNextSegment:
		l.s.nextSegment.Store(max(l.s.nextSegment.Load(), d.u()))
	case editFlushed:
		if sh := l.shard(d); sh != nil {
			sh.flushed = d.u()
		}
	case editShardOpen:
		if sh := l.shard(d); sh != nil {
			sh.journalEpoch, sh.leaderEpoch, sh.clean = uint32(d.u()), int32(d.i()), false
		}
	case editShardClosed:
		if sh := l.shard(d); sh != nil {
			sh.clean, sh.cleanSeq = true, d.u()
		}
	default:
		return l.applyMore(kind, d)
	}
	return d.err
}

// applyMore applies the edits of groups, holds, notes and damage.
func (l *loader) applyMore(kind uint16, d *dec) error {
	switch kind {
	case editCursor:
		group, c := decodeCursor(d)
		if d.err == nil && l.s.part(c.Partition) != nil {
			l.s.applyCursor(group, c)
		}
	case editSubscription:
		sub := Subscription{Group: d.s(), Topic: d.uuid(), Owner: d.s()}
		if l.s.topicsByID[sub.Topic] != nil {
			l.s.subs[subKey{sub.Group, sub.Topic}] = sub
		}
	case editUnsubscribed:
		delete(l.s.subs, subKey{d.s(), d.uuid()})
	case editHold:
		h := Hold{Name: d.s(), Partition: PartitionID(d.u()), Offset: d.i()}
		if d.err == nil && l.s.part(h.Partition) != nil {
			l.s.applyHold(h)
		}
	case editHoldReleased:
		l.s.dropHold(d.s())
	case editNote:
		p := l.part(d)
		key, n := d.s(), Note{BaseOffset: d.i(), LastOffset: d.i(), Data: slices.Clone(d.bytes())}
		if p != nil && d.err == nil {
			p.addNote(key, n, false)
		}
	case editNotesTrimmed:
		p := l.part(d)
		key, below := d.s(), d.i()
		if p != nil && d.err == nil {
			p.trimNotes(key, below)
		}
	case editDamage:
		dm := Damage{Kind: DamageKind(d.u()), Partition: PartitionID(d.u()), From: d.i(), To: d.i(), File: d.s(), Position: d.i(), Detail: d.s()}
		if p := l.s.part(dm.Partition); p != nil {
			dm.Topic, dm.Index = p.topic.name, p.index
			p.addDamage(dm)
		}
	default:
		return l.applyProducers(kind, d)
	}
	return d.err
}

// applyProducers applies the edits of producers and transactions.
func (l *loader) applyProducers(kind uint16, d *dec) error {
	switch kind {
	case editProducerIDs:
		ids := &l.s.producerIDs
		ids.end = max(ids.end, d.i())
		ids.next = ids.end
		ids.durable.Store(ids.end)
	case editProducer:
		p := l.part(d)
		id, st := decodeProducer(d)
		if p != nil && d.err == nil {
			p.setProducer(id, st)
		}
	case editProducers:
		decodeProducers(d, func(part PartitionID, id int64, st producerState) {
			if p := l.s.part(part); p != nil {
				p.setProducer(id, st)
			}
		})
	case editEpochs:
		decodeEpochs(d, func(part PartitionID, r EpochRange) {
			if p := l.s.part(part); p != nil {
				p.setEpoch(r)
			}
		})
	case editAborted:
		p := l.part(d)
		a := AbortedTransaction{ProducerID: d.i(), FirstOffset: d.i(), LastOffset: d.i(), stable: d.i()}
		if p != nil && d.err == nil {
			p.setAborted(a)
		}
	case editTransaction:
		id, st := decodeTransaction(d)
		if d.err == nil {
			l.s.txns.byID[id] = &transaction{id: id, state: st}
		}
	case editTransactionGone:
		delete(l.s.txns.byID, d.s())
	default:
		return fmt.Errorf("%w: manifest edit of kind %d", ErrFormat, kind)
	}
	return d.err
}

func (l *loader) store(d *dec) {
	s := l.s
	s.id = d.uuid()
	n := int(d.u())
	s.createdMs = d.i()
	if d.err == nil && n >= 1 && n <= 64 {
		l.found = true
		s.makeShards(n)
	} else {
		d.fail("a shard count")
	}
}

func (l *loader) topic(d *dec) {
	id, name, created := d.uuid(), d.s(), d.i()
	flags := d.u()
	config := map[string]string{}
	for range d.count() {
		k := d.s()
		config[k] = d.s()
	}
	n := d.count()
	if d.err != nil {
		return
	}
	t := l.s.topicsByID[id]
	if t == nil {
		t = &topic{id: id, name: name, createdMs: created}
		l.s.topicsByID[id], l.s.topics[name] = t, t
	}
	t.closing = flags&1 != 0
	t.config = config
	settings, err := ParseConfig(config)
	if err != nil {
		d.err = fmt.Errorf("%w: topic %s: %w", ErrFormat, name, err)
		return
	}
	t.settings = settings
	for i := range n {
		pid, shardNo := PartitionID(d.u()), int(d.u())
		if i < len(t.parts) {
			continue
		}
		if shardNo >= len(l.s.shards) {
			d.fail("a shard number")
			return
		}
		p := &partition{topic: t, shard: l.s.shards[shardNo], id: pid, index: int32(i)}
		t.parts = append(t.parts, p)
		l.s.setPart(p)
	}
}

func (l *loader) part(d *dec) *partition { return l.s.part(PartitionID(d.u())) }

func (l *loader) shard(d *dec) *shard {
	n := d.u()
	if n >= uint64(len(l.s.shards)) {
		d.fail("a shard number")
		return nil
	}
	return l.s.shards[n]
}

func (l *loader) segment(d *dec) {
	seg := &segmentInfo{id: d.u(), kind: segment.Kind(d.u()), shard: int(d.u()), minAppendMs: d.i(), maxAppendMs: d.i(), sizeBytes: d.i()}
	seg.path = l.s.segmentPath(seg.id)
	l.s.nextSegment.Store(max(l.s.nextSegment.Load(), seg.id+1))
	l.segments[seg.id] = seg
	prev := PartitionID(0)
	for range d.count() {
		prev += PartitionID(d.u())
		base := int64(d.u())
		r := segRef{seg: seg, base: base, last: base + int64(d.u()), bytes: int64(d.u())}
		if p := l.s.part(prev); p != nil && r.last >= p.start {
			p.insertSegment(r)
			p.next = max(p.next, r.last+1)
			p.lastMs = max(p.lastMs, seg.maxAppendMs)
		}
	}
}

// insertSegment adds what a segment holds. A rewritten segment (compaction,
// merging) takes the place of those it covers.
func (p *partition) insertSegment(r segRef) {
	r.seg.refs++
	p.segBytes += r.bytes
	if n := len(p.segs); n == 0 || p.segs[n-1].last < r.base {
		p.segs = append(p.segs, r)
		return
	}
	list := make([]segRef, 0, len(p.segs)+1)
	placed := false
	for _, old := range p.segs {
		if old.base >= r.base && old.last <= r.last {
			old.seg.refs--
			p.segBytes -= old.bytes
			continue
		}
		if old.base > r.last && !placed {
			placed = true
			list = append(list, r)
		}
		list = append(list, old)
	}
	if !placed {
		list = append(list, r)
	}
	p.segs = list
}

// trimBelowStart forgets what lies below start.
func (p *partition) trimBelowStart() {
	n := 0
	for n < len(p.segs) && p.segs[n].last < p.start {
		p.segs[n].seg.refs--
		p.segBytes -= p.segs[n].bytes
		n++
	}
	if n > 0 {
		p.segs = slices.Clone(p.segs[n:])
	}
	n = 0
	for n < len(p.recent) && p.recent[n].last < p.start {
		n++
	}
	p.trimProducers()
	if n > 0 {
		p.recent = slices.Clone(p.recent[n:])
	}
	p.end, p.next, p.durable = max(p.end, p.start), max(p.next, p.start), max(p.durable, p.start)
	p.dropDamage(p.start - 1)
	// The epoch that holds start stays; older ones cannot be asked about.
	n = 0
	for n+1 < len(p.epochs) && p.epochs[n].End <= p.start {
		n++
	}
	if n > 0 {
		p.epochs = slices.Clone(p.epochs[n:])
		p.newEpochs = min(p.newEpochs, len(p.epochs))
	}
}

func (p *partition) setEpoch(r EpochRange) {
	if n := len(p.epochs); n > 0 && p.epochs[n-1].LeaderEpoch >= r.LeaderEpoch {
		for i := range p.epochs {
			if p.epochs[i].LeaderEpoch == r.LeaderEpoch {
				p.epochs[i] = r
			}
		}
		return
	}
	p.epochs = append(p.epochs, r)
}

func (p *partition) dropDamage(through int64) {
	n := 0
	for n < len(p.damage) && p.damage[n].To <= through {
		n++
	}
	p.damage = slices.Clone(p.damage[n:])
}
