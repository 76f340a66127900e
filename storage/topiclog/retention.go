package topiclog

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/storage/manifest"
)

// maxClockJump is by how much the wall clock may move against the monotonic one
// before retention stops trusting it.
const maxClockJump = time.Hour

// RetentionReport says what a retention run did.
type RetentionReport struct {
	// Paused, if not empty, says why nothing was done.
	Paused string
	// Partitions had records removed, Bytes of them.
	Partitions int
	Bytes      int64
	// HeldBytes would have been removed but for holds; OverHeldBytes were
	// removed in spite of them, because the holds passed their bound.
	HeldBytes, OverHeldBytes int64
	// Segments is the number of files removed.
	Segments int
	// Merged is the number of files that went into larger ones, Compacted that
	// of partitions rewritten by compaction.
	Merged, Compacted int
}

// retention is the state of the retention runs.
type retention struct {
	holdsChanged bool // guarded by Store.mu

	run      sync.Mutex // one at a time
	mu       sync.Mutex
	paused   string
	lastWall time.Time
	lastMono time.Duration
}

func (r *retention) pausedFor() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paused
}

// checkClock compares the two clocks since the last look.
func (r *retention) checkClock(c Clock) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	wall, mono := c.Wall(), c.Mono()
	if !r.lastWall.IsZero() && r.paused == "" {
		// Round strips Go's own monotonic reading: the difference must be that
		// of the times of day.
		moved := wall.Round(0).Sub(r.lastWall.Round(0)) - (mono - r.lastMono)
		if moved > maxClockJump || moved < -maxClockJump {
			r.paused = fmt.Sprintf("the wall clock moved by %s against the monotonic clock", moved.Round(time.Second))
		}
	}
	r.lastWall, r.lastMono = wall, mono
	return r.paused
}

// ConfirmClock says that the wall clock is right after all: retention goes on.
func (s *Store) ConfirmClock() {
	s.retention.mu.Lock()
	defer s.retention.mu.Unlock()
	s.retention.paused = ""
	s.retention.lastWall, s.retention.lastMono = s.opts.Clock.Wall(), s.opts.Clock.Mono()
}

func (s *Store) runRetention() {
	defer s.workers.Done()
	t := time.NewTicker(s.opts.RetentionInterval)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
			if _, err := s.RunRetention(context.Background()); err != nil && !s.closed.Load() {
				s.opts.Logger.Warn("retention failed", "error", err)
			}
		}
	}
}

// victim is a stretch of a partition that its topic's limits give up.
type victim struct {
	p      *partition
	ref    segRef
	isHeld bool
}

// RunRetention removes what the topics' limits give up, compacts the topics that
// ask for it, merges small segment files and removes those that nobody needs. The store does so by
// itself every RetentionInterval, and forgets idle producers. Age is counted from the append, not from the
// records' timestamps.
func (s *Store) RunRetention(ctx context.Context) (RetentionReport, error) {
	var rep RetentionReport
	if s.closed.Load() {
		return rep, ErrClosed
	}
	s.retention.run.Lock()
	defer s.retention.run.Unlock()
	if rep.Paused = s.retention.checkClock(s.opts.Clock); rep.Paused != "" {
		return rep, nil
	}
	if err := ctx.Err(); err != nil {
		return rep, err
	}
	s.ExpireProducers()
	starts := s.chooseStarts(&rep)
	edits := s.holdEdits()
	for p, start := range starts {
		p.shard.mu.Lock()
		edits = append(edits, partitionEdit(p.id, start, p.floor, p.reserved))
		p.shard.mu.Unlock()
	}
	if len(edits) > 0 {
		err := s.meta.commit(func() {
			for p, start := range starts {
				p.setStart(start)
			}
		}, edits...)
		if err != nil {
			s.mu.Lock()
			s.retention.holdsChanged = true
			s.mu.Unlock()
			return rep, fmt.Errorf("committing retention: %w", err)
		}
	}
	rep.Partitions = len(starts)
	var err error
	if rep.Segments, err = s.collectSegments(); err != nil {
		return rep, err
	}
	// Rewriting needs space; deleting comes first and goes on without it.
	if s.full.Load() {
		return rep, nil
	}
	if rep.Compacted, err = s.compactAll(ctx); err != nil {
		return rep, s.rewriteFailed(err)
	}
	if rep.Merged, err = s.mergeSmall(ctx); err != nil {
		return rep, s.rewriteFailed(err)
	}
	n, err := s.collectSegments()
	rep.Segments += n
	return rep, err
}

// rewriteFailed notes a full disk: the old segments are all still there.
func (s *Store) rewriteFailed(err error) error {
	if isFull(err) {
		s.diskFull(err)
	}
	return err
}

// chooseStarts decides up to where each partition is removed.
func (s *Store) chooseStarts(rep *RetentionReport) map[*partition]int64 {
	now := s.nowMs()
	var victims []victim
	s.mu.RLock()
	low := s.lowestHolds()
	for _, t := range s.topics {
		if !t.settings.Delete || t.settings.Retention < 0 && t.settings.RetentionBytes < 0 {
			continue
		}
		for _, p := range t.parts {
			hold, held := low[p.id]
			if !held {
				hold = -1
			}
			victims = p.victims(victims, t.settings, now, hold)
		}
	}
	s.mu.RUnlock()

	for i := range victims {
		if victims[i].isHeld {
			rep.HeldBytes += victims[i].ref.bytes
		}
	}
	// Over the bound, the oldest held records go first.
	if over := rep.HeldBytes - s.holdMax; over > 0 && s.holdMax > 0 {
		slices.SortStableFunc(victims, func(a, b victim) int { return int(a.ref.seg.maxAppendMs - b.ref.seg.maxAppendMs) })
		for i := range victims {
			if v := &victims[i]; v.isHeld && over > 0 {
				over -= v.ref.bytes
				v.isHeld = false
				rep.HeldBytes -= v.ref.bytes
				rep.OverHeldBytes += v.ref.bytes
				s.opts.Logger.Warn("holds pass retention.hold.max-bytes; held records are removed",
					"topic", v.p.topic.name, "partition", v.p.index, "through", v.ref.last)
			}
		}
	}
	starts := map[*partition]int64{}
	stopped := map[*partition]int64{}
	for _, v := range victims {
		if v.isHeld {
			if at, ok := stopped[v.p]; !ok || v.ref.base < at {
				stopped[v.p] = v.ref.base
			}
		}
	}
	for _, v := range victims {
		if at, ok := stopped[v.p]; v.isHeld || ok && v.ref.last >= at {
			continue
		}
		starts[v.p] = max(starts[v.p], v.ref.last+1)
		rep.Bytes += v.ref.bytes
	}
	return starts
}

// victims appends what the limits give up of a partition, oldest first.
func (p *partition) victims(out []victim, set Settings, nowMs, hold int64) []victim {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	left := p.sizeBytes()
	for _, r := range p.segs {
		old := set.Retention >= 0 && nowMs-r.seg.maxAppendMs > set.Retention.Milliseconds()
		large := set.RetentionBytes >= 0 && left-r.bytes >= set.RetentionBytes
		if !old && !large {
			break
		}
		left -= r.bytes
		out = append(out, victim{p: p, ref: r, isHeld: hold >= 0 && r.last >= hold})
	}
	return out
}

// setStart raises the start of a partition.
func (p *partition) setStart(start int64) {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	p.start = max(p.start, start)
	p.trimBelowStart()
}

// DeleteRecords durably removes the records below an offset; before -1 means the
// high watermark. It returns the new start of the partition.
func (s *Store) DeleteRecords(ctx context.Context, id PartitionID, before int64) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	p, err := s.partition(id)
	if err != nil {
		return 0, err
	}
	p.shard.mu.Lock()
	if before == -1 {
		before = p.end
	}
	start, end, floor, reserved := p.start, p.end, p.floor, p.reserved
	p.shard.mu.Unlock()
	switch {
	case before < 0 || before > end:
		return 0, &OffsetError{Topic: p.topic.name, Index: p.index, Offset: before, Start: start, End: end}
	case before <= start:
		return start, nil
	}
	if err := s.meta.commit(func() { p.setStart(before) }, partitionEdit(id, before, floor, reserved)); err != nil {
		return 0, fmt.Errorf("deleting records of topic %s partition %d: %w", p.topic.name, p.index, err)
	}
	if _, err := s.collectSegments(); err != nil {
		s.opts.Logger.Warn("removing segments failed", "error", err)
	}
	return before, nil
}

// collectSegments removes the segment files that no partition needs.
func (s *Store) collectSegments() (int, error) {
	n := 0
	for _, sh := range s.shards {
		sh.mu.Lock()
		var gone []*segmentInfo
		for _, seg := range sh.segments {
			if seg.refs <= 0 {
				gone = append(gone, seg)
			}
		}
		sh.mu.Unlock()
		if len(gone) == 0 {
			continue
		}
		slices.SortFunc(gone, func(a, b *segmentInfo) int { return int(int64(a.id) - int64(b.id)) })
		if err := s.forgetSegments(sh, gone); err != nil {
			return n, err
		}
		n += len(gone)
	}
	return n, nil
}

// forgetSegments durably takes segments out of the manifest and then removes the
// files. A crash between the two leaves files that the next Open removes.
func (s *Store) forgetSegments(sh *shard, gone []*segmentInfo) error {
	var edits []manifest.Edit
	for _, seg := range gone {
		edits = append(edits, segmentGoneEdit(seg.id))
	}
	err := s.meta.commit(func() {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		for _, seg := range gone {
			delete(sh.segments, seg.id)
		}
	}, edits...)
	if err != nil {
		return fmt.Errorf("removing segments: %w", err)
	}
	for _, seg := range gone {
		s.segc.Drop(seg.path)
		if err := s.fs.Remove(seg.path); err != nil {
			s.opts.Logger.Warn("removing a segment failed", "file", seg.path, "error", err)
		}
	}
	return nil
}
