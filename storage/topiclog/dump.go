package topiclog

import (
	"maps"
	"slices"

	"github.com/millrace/millrace/storage/manifest"
)

// dump lists the whole state for a rewrite of the manifest. The committer calls
// it between rounds; it only copies, so that no lock is held while the file is
// written.
func (s *Store) dump() []manifest.Edit {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, sh := range s.shards {
		sh.mu.Lock()
		defer sh.mu.Unlock()
	}
	all := []manifest.Edit{storeEdit(s.id, len(s.shards), s.createdMs), nextPartitionEdit(s.nextPart)}
	segParts := map[*segmentInfo][]segPart{}
	var epochs epochsEdit
	var producers producersEdit
	for _, t := range s.sortedTopics() {
		all = append(all, t.edit())
		for _, p := range t.parts {
			p.dumpTo(&all, &epochs, segParts)
			p.dumpProducers(&producers, &all)
		}
	}
	all = slices.Concat(all, epochs.edits(), producers.edits())
	segs := slices.SortedFunc(maps.Keys(segParts), func(a, b *segmentInfo) int { return int(int64(a.id) - int64(b.id)) })
	for _, seg := range segs {
		parts := segParts[seg]
		slices.SortFunc(parts, func(a, b segPart) int { return int(int64(a.id) - int64(b.id)) })
		all = append(all, seg.edit(parts))
	}
	all = append(all, nextSegmentEdit(s.nextSegment.Load()))
	if end := s.producerIDs.durable.Load(); end > 0 {
		all = append(all, producerIDsEdit(end))
	}
	for _, sh := range s.shards {
		all = append(all, flushedEdit(sh.number, sh.flushed), shardOpenEdit(sh.number, sh.journalEpoch, sh.leaderEpoch))
		if sh.clean {
			all = append(all, shardClosedEdit(sh.number, sh.cleanSeq))
		}
	}
	s.dumpTransactions(&all)
	s.cursorMu.Lock()
	defer s.cursorMu.Unlock()
	for _, g := range slices.Sorted(maps.Keys(s.cursors)) {
		for _, id := range slices.Sorted(maps.Keys(s.cursors[g])) {
			c := s.cursors[g][id]
			all = append(all, cursorEdit(g, &c))
		}
	}
	for _, sub := range s.sortedSubscriptions() {
		all = append(all, subscriptionEdit(sub))
	}
	for _, h := range s.sortedHolds() {
		all = append(all, holdEdit(h))
	}
	return all
}

func (p *partition) dumpTo(all *[]manifest.Edit, epochs *epochsEdit, segParts map[*segmentInfo][]segPart) {
	if p.start > 0 || p.floor > 0 || p.reserved > 0 {
		*all = append(*all, partitionEdit(p.id, p.start, p.floor, p.reserved))
	}
	// What only the journal has stays its business: the machine may lose
	// records of os topics from there, and must lose what is said of them, too.
	limit := p.end
	if len(p.recent) > 0 {
		limit = p.recent[0].base
	}
	for _, r := range p.epochs {
		if r.Start < limit {
			epochs.add(p.id, r.below(limit))
		}
	}
	for _, r := range p.segs {
		parts, ok := segParts[r.seg]
		if !ok {
			parts = make([]segPart, 0, max(r.seg.refs, 1))
		}
		segParts[r.seg] = append(parts, segPart{p.id, r.base, r.last, r.bytes})
	}
	for _, key := range slices.Sorted(maps.Keys(p.notes)) {
		l := p.notes[key]
		for i := range len(l.notes) - l.fresh {
			*all = append(*all, noteEdit(p.id, key, &l.notes[i]))
		}
		*all = append(*all, notesTrimmedEdit(p.id, key, l.below))
	}
	for i := range p.damage {
		*all = append(*all, damageEdit(&p.damage[i]))
	}
}
