package topiclog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/storage/manifest"
)

// requestFlush asks the flusher to write the cache to a segment.
func (sh *shard) requestFlush() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.requestFlushLocked()
}

func (sh *shard) requestFlushLocked() {
	select {
	case sh.flushWake <- struct{}{}:
	default:
	}
}

// spaceAgain lets writers try again after a full disk.
func (sh *shard) spaceAgain() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.flushErr = nil
	sh.requestFlushLocked()
	sh.space.Broadcast()
}

// runFlusher writes the cache to segments: when it is half full, when the
// journal is, when its oldest batch is old, and when asked.
func (sh *shard) runFlusher() {
	defer sh.s.workers.Done()
	age := time.NewTicker(max(sh.s.opts.FlushInterval/4, time.Second))
	defer age.Stop()
	for {
		select {
		case <-sh.writerDone:
			return
		case <-sh.flushWake:
		case <-age.C:
			if sh.number == 0 {
				sh.s.pool.trim()
				sh.s.ownPool.trim()
			}
			if !sh.isOld() {
				continue
			}
		}
		sh.flushOnce()
	}
}

func (sh *shard) isOld() bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.oldestMs > 0 && sh.s.nowMs()-sh.oldestMs >= sh.s.opts.FlushInterval.Milliseconds()
}

// flushOnce flushes and says how it went to whoever waits.
func (sh *shard) flushOnce() {
	err := sh.flush()
	if err != nil && !isFull(err) && !errors.Is(err, ErrDiskFull) && !errors.Is(err, ErrClosed) {
		sh.fence(err)
	}
	if err != nil && isFull(err) {
		sh.s.diskFull(err)
	}
	sh.mu.Lock()
	if err == nil && !sh.flushDue() {
		// Appends that came meanwhile asked again for what is done now. Whoever
		// waits for another flush asks once more.
		select {
		case <-sh.flushWake:
		default:
		}
	}
	sh.flushErr = err
	sh.flushGen++
	sh.space.Broadcast()
	sh.mu.Unlock()
}

// flushDue says that the cache is as full as a flush needs; mu is held.
func (sh *shard) flushDue() bool {
	limit := sh.s.opts.shardCache(len(sh.s.shards))
	return sh.cacheBytes >= limit/2 || sh.ownBytes >= limit/2 || sh.noteBytes >= flushNoteBytes
}

// Flush writes everything that the write caches hold to segments.
func (s *Store) Flush(ctx context.Context) error {
	for _, sh := range s.shards {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := sh.flushAndWait(); err != nil {
			return fmt.Errorf("flushing shard %d: %w", sh.number, err)
		}
	}
	return nil
}

func (sh *shard) flushAndWait() error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	through := sh.published
	for sh.fenced == nil && sh.flushed < through {
		if sh.s.closed.Load() {
			return ErrClosed
		}
		gen := sh.flushGen
		sh.requestFlushLocked()
		for sh.fenced == nil && sh.flushGen == gen && !sh.s.closed.Load() {
			sh.space.Wait()
		}
		if sh.flushErr != nil {
			return sh.flushErr
		}
	}
	return sh.fenced
}

// flush writes one generation of the cache: everything published so far. Order:
// the segment is synced, then the manifest names it and says how far the journal
// is done, and only then the journal's files may be used again.
func (sh *shard) flush() error {
	sh.mu.Lock()
	for sh.ownBusy && !sh.writerWaits {
		sh.space.Wait() // for the group under way
	}
	through := sh.published
	if through <= sh.flushed {
		sh.mu.Unlock()
		return nil
	}
	parts := sh.takeParts()
	sh.flushing.parts = parts
	if len(sh.promoted) > 0 {
		parts = sh.sortParts(parts)
	}
	useless := sh.takeOwn(parts)
	epochs := takeEpochs(parts)
	facts, freshened := sh.takeNotes()
	producers := sh.takeProducers()
	sh.mu.Unlock()
	parts = sh.sortParts(parts)
	sh.flushing.states = producers.states
	defer sh.flushing.release()
	sh.discard(useless)
	edits := slices.Clone(sh.recoveryEdits)
	done := false
	defer func() { sh.closeSealed(parts, done) }()

	seg, err := sh.writeParts(parts)
	if err != nil {
		return err
	}
	edits = append(edits, partEdits(parts, seg)...)
	cursors, settleCursors := sh.s.cursorEdits(sh)
	edits = append(edits, flushedEdit(sh.number, through))
	// Cursors are true as long as the journal has their groups, too: if they
	// are many, some go first.
	for len(cursors) > 0 && editBytes(cursors) > maxCursorBytes {
		n := editsThatFit(cursors)
		if err := sh.s.meta.commit(nil, cursors[:n]...); err != nil {
			return fmt.Errorf("committing cursors: %w", err)
		}
		cursors = cursors[n:]
	}
	// So are producers: a batch that they know already changes nothing.
	known := producers.encode()
	for len(known) > 0 && editBytes(known) > maxCursorBytes {
		n := editsThatFit(known)
		if err := sh.s.meta.commit(nil, known[:n]...); err != nil {
			return fmt.Errorf("committing producers: %w", err)
		}
		known = known[n:]
	}
	edits = slices.Concat(facts, epochs.edits(), cursors, known, edits)
	err = sh.s.meta.commit(func() {
		sh.flushedThrough(through, seg, parts, freshened, producers)
		settleCursors()
	}, edits...)
	if err != nil {
		if seg != nil && errors.Is(err, ErrDiskFull) {
			_ = sh.s.fs.Remove(seg.path)
		}
		return fmt.Errorf("committing segment: %w", err)
	}
	sh.recoveryEdits = nil // only the first flush, before any goroutine, has some
	done = true
	sh.journal.Recycle(through)
	return nil
}

// writeParts makes durable what goes to a mixed segment, which is nil if nothing
// does, and the own segments.
func (sh *shard) writeParts(parts []flushPart) (seg *segmentInfo, err error) {
	if err := sealAll(parts); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(parts, func(f flushPart) bool { return len(f.batches) > 0 }) {
		return sh.writeSegment(parts)
	}
	return nil, nil
}

// partEdits let the manifest name what writeParts wrote.
func partEdits(parts []flushPart, seg *segmentInfo) []manifest.Edit {
	var edits []manifest.Edit
	held := make([]segPart, 0, len(parts))
	for i := range parts {
		if len(parts[i].batches) > 0 {
			held = append(held, parts[i].seg)
		}
		if t := parts[i].own; t != nil {
			edits = append(edits, t.seg.edit([]segPart{t.ref}))
		}
	}
	if seg != nil {
		edits = append(edits, seg.edit(held))
	}
	return edits
}

// maxCursorBytes bounds the cursors in one commit of metadata.
const maxCursorBytes = 8 << 20

func editBytes(edits []manifest.Edit) int {
	n := 0
	for i := range edits {
		n += len(edits[i].Payload)
	}
	return n
}

// editsThatFit is how many cursors, at least one, go into one commit.
func editsThatFit(edits []manifest.Edit) int {
	size := len(edits[0].Payload)
	for n := 1; n < len(edits); n++ {
		if size += len(edits[n].Payload); size > maxCursorBytes {
			return n
		}
	}
	return len(edits)
}

// flushedThrough lets the flushed part of the cache go. The committer calls it.
func (sh *shard) flushedThrough(through uint64, seg *segmentInfo, parts []flushPart, freshened []freshNotes, producers *takenProducers) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.flushed = through
	sh.settleJumps()
	var unused []*segmentInfo
	for i := range parts {
		unused = append(unused, sh.insertPart(&parts[i], seg)...)
		parts[i].p.settleEpochs(parts[i].limit)
	}
	if seg != nil && seg.refs > 0 {
		sh.segments[seg.id] = seg
	} else if seg != nil {
		unused = append(unused, seg)
	}
	sh.promote(parts)
	for i := range freshened {
		freshened[i].settle()
	}
	sh.settleProducers(producers)
	sh.noteBytes = 0
	sh.freshNotes = slices.DeleteFunc(sh.freshNotes, func(p *partition) bool {
		n := 0
		for _, l := range p.notes {
			for _, note := range l.notes[len(l.notes)-l.fresh:] {
				n += len(note.Data)
			}
		}
		sh.noteBytes += n
		p.noted = n > 0
		return n == 0
	})
	sh.dropCached(through)
	sh.space.Broadcast()
	if len(unused) > 0 {
		// All of their partitions were deleted meanwhile.
		go sh.s.forgetSegments(sh, unused)
	}
}

// insertPart lets a partition know what segments have of it now, and returns an
// own segment that nobody needs; mu is held.
func (sh *shard) insertPart(f *flushPart, seg *segmentInfo) (unused []*segmentInfo) {
	p := f.p
	if p.dead.Load() {
		if f.own != nil {
			unused = append(unused, f.own.seg)
		}
		return unused
	}
	insert := func(seg *segmentInfo, sp segPart) {
		p.insertSegment(segRef{seg: seg, base: sp.base, last: sp.last, bytes: sp.bytes})
		if p.start > sp.base {
			p.trimBelowStart()
		}
	}
	if len(f.batches) > 0 {
		insert(seg, f.seg)
	}
	if f.own != nil {
		insert(f.own.seg, f.own.ref)
		if f.own.seg.refs > 0 {
			sh.segments[f.own.seg.id] = f.own.seg
		} else {
			unused = append(unused, f.own.seg)
		}
	}
	return unused
}

// keptRecent is the longest list of cached appends whose memory a partition keeps
// when all of them are in segments. Nobody has the list by then: the flush is done
// with it, and readers look at it under the mutex alone.
const keptRecent = 2

// dropCached forgets everything cached up to the group; mu is held.
func (sh *shard) dropCached(through uint64) {
	sh.dirty = slices.DeleteFunc(sh.dirty, func(p *partition) bool {
		n := 0
		for n < len(p.recent) && p.recent[n].seq <= through {
			n++
		}
		switch {
		case p.dead.Load() || n == len(p.recent) && cap(p.recent) > keptRecent:
			p.recent, p.dirty = nil, false
			return true
		case n == len(p.recent):
			clear(p.recent) // lets the blocks go
			p.recent, p.dirty = p.recent[:0], false
			return true
		case n > 0:
			p.recent = slices.Clone(p.recent[n:])
		}
		return false
	})
	sh.blocks, sh.cacheBytes = dropBlocks(sh.blocks, through)
	sh.ownBlocks, sh.ownBytes = dropBlocks(sh.ownBlocks, through)
	sh.oldestMs = 0
	for _, p := range sh.dirty {
		if t := p.recent[0].timeMs; sh.oldestMs == 0 || t < sh.oldestMs {
			sh.oldestMs = t
		}
	}
}
