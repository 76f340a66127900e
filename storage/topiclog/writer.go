package topiclog

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/storage/wal"
)

// runWriter is the shard's only writer of the journal.
func (sh *shard) runWriter() {
	defer sh.s.workers.Done()
	defer close(sh.writerDone)
	var pending []*request
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if pending = sh.drain(pending); len(pending) > 0 {
			pending = sh.commitGroup(pending)
			if len(pending) == 0 {
				pending = nil // let the requests go
			}
			continue
		}
		if sh.isStopping() {
			return
		}
		wait := time.Hour
		if !sh.osDirty.IsZero() {
			wait = time.Until(sh.osDirty)
		} else if !sh.marked {
			wait = sh.s.opts.MarkDelay
		}
		timer.Reset(wait)
		select {
		case <-sh.wake:
		case <-timer.C:
			sh.idle()
		}
	}
}

// idle syncs what os topics left unsynced and marks the last group as durable.
func (sh *shard) idle() {
	if !sh.osDirty.IsZero() {
		sh.syncOS()
		return
	}
	if !sh.marked {
		sh.mark(false)
	}
}

// mark writes a group without entries: its header says that everything before
// it is durable, so that damage there is known to be rot. Only the mark at the
// end of a clean close is worth an fsync of its own.
func (sh *shard) mark(sync bool) {
	if sh.fencedErr() != nil {
		return
	}
	buf := make([]byte, wal.GroupSize(0, 0))
	sh.builder.Begin(sh.journal, buf)
	err := sh.journal.Write(sh.builder.Finish(sh.journal, sh.s.nowMs()))
	if err == nil && sync {
		err = sh.journal.Sync()
	}
	switch {
	case err == nil:
		sh.marked = true
		sh.mu.Lock()
		sh.published = sh.journal.Next() - 1
		sh.mu.Unlock()
	case errors.Is(err, wal.ErrFull):
		// Nothing depends on a mark.
		sh.marked = true
	default:
		sh.fence(err)
	}
}

// commitGroup writes one group of the requests, makes it durable, publishes it
// and acknowledges it. It returns the requests that are left.
func (sh *shard) commitGroup(pending []*request) []*request {
	if err := sh.waitForCache(); err != nil {
		return sh.failAll(pending, err)
	}
	started := time.Now()
	sh.boundProducers(started)
	sh.plan(pending)
	pending = sh.fill(pending)
	for len(pending) == 0 && sh.builder.Size() < sh.s.opts.GroupBytes && sh.directUsed < maxDirectGroup && time.Since(started) < sh.s.opts.GroupDelay {
		if pending = sh.drain(pending); len(pending) == 0 {
			break
		}
		sh.plan(pending)
		pending = sh.add(pending)
	}
	if len(sh.group) == 0 {
		sh.dropRegions()
		return pending
	}
	timeMs := sh.s.nowMs()
	group := sh.builder.Finish(sh.journal, timeMs)
	seq := sh.journal.Next()
	// What the references name is written before them: a full disk then leaves
	// nothing in the journal that a later mark would take for durable.
	err := sh.writeOwn()
	if err == nil {
		err = sh.write(group)
	}
	if err != nil {
		sh.failGroup(err)
		return pending
	}
	// A shard that is never idle must still sync what os topics wrote.
	needSync := !sh.osDirty.IsZero() && !time.Now().Before(sh.osDirty)
	for _, r := range sh.group {
		needSync = needSync || !r.os
	}
	sh.curUsed += len(group)
	sh.marked = false
	if needSync {
		// Invariant 5: nothing of the group is visible or acknowledged before
		// its fdatasync has returned.
		if err := sh.syncGroup(); err != nil {
			sh.fence(err)
			sh.failGroup(sh.fencedErr())
			return pending
		}
		sh.osDirty = time.Time{}
	} else if sh.osDirty.IsZero() {
		sh.osDirty = time.Now().Add(sh.s.opts.SyncInterval)
	}
	sh.publish(seq, len(group), timeMs, needSync)
	for i, r := range sh.group {
		r.finish(r.result(sh.leaderEpoch, timeMs), nil)
		sh.group[i] = nil
	}
	sh.group = sh.group[:0]
	return pending
}

// fill begins a group in the current block, or a new one if it is too small, and
// adds requests.
func (sh *shard) fill(pending []*request) []*request {
	need := wal.GroupSize(1, sh.entrySize(pending[0]))
	if sh.cur == nil || len(sh.cur.buf)-sh.curUsed < max(need, min(sh.s.opts.GroupBytes/4, sh.s.pool.size/4)) {
		if sh.cur != nil {
			sh.cur.release()
		}
		sh.cur, sh.curUsed = sh.s.pool.take(need), 0
	}
	sh.builder.Begin(sh.journal, sh.cur.buf[sh.curUsed:])
	sh.group = sh.group[:0]
	sh.groupMs = sh.s.nowMs()
	sh.groupNumber++
	return sh.add(pending)
}

// add adds requests to the group as long as they fit and returns the others.
func (sh *shard) add(pending []*request) []*request {
	for i, r := range pending {
		reg, full := sh.regionFor(r)
		size := r.size()
		if reg != nil {
			size = len(r.note) + refBytes
		}
		// One that does not fit begins the next group, which has room for it.
		// Nothing may be in this one: those before it may have been refused.
		if full || sh.builder.Entries() > 0 && sh.builder.Size() >= sh.s.opts.GroupBytes || !sh.builder.Fits(size) {
			r.bodied = reg == nil && !full && sh.builder.Entries() == 0
			return pending[i:]
		}
		if err := sh.place(r, reg); err != nil {
			r.finish(AppendResult{}, err)
			continue
		}
		if r.repeated && sh.isPublished(r) {
			r.finish(r.result(sh.leaderEpoch, sh.s.nowMs()), nil)
			continue
		}
		sh.group = append(sh.group, r)
	}
	return pending[:0]
}

// write puts the group into the journal. A full journal waits for the flusher; a
// full disk fails the group but not the shard.
func (sh *shard) write(group []byte) error {
	for {
		err := sh.journal.Write(group)
		if err == nil {
			return nil
		}
		if !errors.Is(err, wal.ErrFull) {
			sh.fence(err)
			return sh.fencedErr()
		}
		if isFull(err) {
			sh.s.diskFull(err)
		}
		if werr := sh.waitForJournal(err); werr != nil {
			return werr
		}
	}
}

// waitForCache waits while the cache, or the notes, are far beyond what triggers
// a flush.
func (sh *shard) waitForCache() error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	limit := sh.s.opts.shardCache(len(sh.s.shards))
	for sh.fenced == nil && (sh.cacheBytes >= limit || sh.ownBytes >= limit || sh.noteBytes >= maxFreshNoteBytes) {
		if sh.s.closed.Load() {
			return ErrClosed
		}
		if sh.s.full.Load() && sh.flushErr != nil {
			return &DiskFullError{Dir: sh.s.opts.Dir, Err: sh.flushErr}
		}
		sh.requestFlushLocked()
		sh.space.Wait()
	}
	return sh.fenced
}

// waitForJournal waits for a flush, after which the journal has files to
// recycle.
func (sh *shard) waitForJournal(cause error) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	gen := sh.flushGen
	sh.requestFlushLocked()
	sh.writerWaits = true
	sh.space.Broadcast()
	for sh.fenced == nil && sh.flushGen == gen {
		// The flusher outlives the writer, so this ends.
		sh.space.Wait()
	}
	sh.writerWaits = false
	switch {
	case sh.fenced != nil:
		return sh.fenced
	case sh.flushErr != nil && isFull(sh.flushErr):
		return &DiskFullError{Dir: sh.s.opts.Dir, Err: sh.flushErr}
	case isFull(cause) && len(sh.dirty) == 0:
		// Everything is in segments and there is still no room for the group.
		return &DiskFullError{Dir: sh.s.opts.Dir, Err: cause}
	}
	return nil
}

func (sh *shard) failGroup(err error) {
	sh.unstageAll()
	sh.dropRegions()
	for i, r := range sh.group {
		// The offsets were not used: nothing of the group can be read. If it
		// reached the disk all the same, the fence keeps them from being given
		// again before recovery has looked.
		if r.kind == wal.KindBatch && !r.repeated && r.part.assign > r.base {
			r.part.assign = r.base
		}
		r.part.stagedBy = nil
		r.finish(AppendResult{}, err)
		sh.group[i] = nil
	}
	sh.group = sh.group[:0]
}

func (sh *shard) failAll(pending []*request, err error) []*request {
	for _, r := range pending {
		r.finish(AppendResult{}, err)
	}
	return nil
}

// reserve makes sure that offsets of an os partition below end are never given
// again, whatever a crash takes away.
func (sh *shard) reserve(p *partition, end int64) error {
	sh.mu.Lock()
	start, floor, reserved := p.start, p.floor, p.reserved
	sh.mu.Unlock()
	if end <= reserved {
		return nil
	}
	to := end + reserveStep
	// The state changes in the commit, not after it: a rewrite of the manifest
	// right behind it writes down the state.
	err := sh.s.meta.commit(func() {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		p.reserved = max(p.reserved, to)
	}, partitionEdit(p.id, start, floor, to))
	if err != nil {
		return fmt.Errorf("reserving offsets: %w", err)
	}
	return nil
}

// publish makes the group's batches visible: in the write cache, below the high
// watermark.
func (sh *shard) publish(seq uint64, size int, timeMs int64, synced bool) {
	sh.mu.Lock()
	sh.published = seq
	sh.blocks = useBlock(sh.blocks, sh.cur, seq, int64(size))
	sh.cacheBytes += int64(size)
	sh.publishRegions(seq)
	if sh.oldestMs == 0 {
		sh.oldestMs = timeMs
	}
	sh.unstageAll()
	for _, r := range sh.group {
		if r.kind != wal.KindBatch {
			continue
		}
		if !r.repeated {
			sh.publishBatch(r, seq, timeMs, synced)
		}
		r.start, r.part.stagedBy = r.part.start, nil
	}
	if synced && len(sh.unsynced) > 0 {
		sh.settleUnsynced()
	}
	// A flush that counts this group as done must also find its cursors.
	for _, r := range sh.group {
		if r.kind == wal.KindCursor {
			sh.s.publishCursors(sh, r)
		}
	}
	if sh.flushDue() {
		sh.requestFlushLocked()
	}
	sh.mu.Unlock()
	sh.notify()
}

func (sh *shard) publishBatch(r *request, seq uint64, timeMs int64, synced bool) {
	p := r.part
	if p.dead.Load() {
		return // deleted while the group was written
	}
	last := r.base + r.records - 1
	p.recent = append(p.recent, cached{base: r.base, last: last, block: r.block, off: r.off, size: uint32(len(r.batches)),
		seq: seq, maxTs: r.maxTs, timeMs: timeMs})
	p.noteEpoch(sh.leaderEpoch, r.base, last)
	p.end, p.next, p.lastMs = last+1, last+1, timeMs
	if r.producers && r.count == 1 {
		r.head.BaseOffset = r.base
		p.noteProducer(r.head, nil, timeMs)
	} else if r.producers {
		p.noteProducers(p.recent[len(p.recent)-1].bytes(), timeMs)
	}
	if synced {
		p.durable = p.end
	} else if !p.lagging {
		p.lagging = true
		sh.unsynced = append(sh.unsynced, p)
	}
	if r.noteKey != "" {
		p.addNote(r.noteKey, Note{BaseOffset: r.base, LastOffset: last, Data: r.rawNote}, true)
		sh.noteBytes += len(r.rawNote)
	}
	if !p.dirty {
		p.dirty = true
		sh.dirty = append(sh.dirty, p)
	}
	sh.signal(p)
}
