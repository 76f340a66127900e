package topiclog

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/segment"
	"github.com/millrace/millrace/storage/vfs"
)

// defaultFetchBytes is FetchRequest.MaxBytes when it is 0.
const defaultFetchBytes = 1 << 20

// minLeaseShare is the part of the cache blocks, one in so many bytes, that a lease
// must use to keep the blocks; a smaller one is copied. So the memory that leases
// keep from being used again is bounded by sixteen times their size.
const minLeaseShare = 16

// Fetch returns the batches from an offset on. Without records there it waits up
// to MaxWait and then returns an empty lease. The caller releases the lease.
//
// Offsets that no record has (compacted away, or jumped over after a crash) are
// skipped. *OffsetError says that the offset is outside the partition,
// *CorruptError that it is lost to damage and where to go on.
func (s *Store) Fetch(ctx context.Context, req FetchRequest) (*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, err := s.fetch(req)
	if err != nil || len(l.Chunks) > 0 || req.MaxWait <= 0 || req.BoundsOnly {
		return l, err
	}
	ctx, cancel := context.WithTimeout(ctx, req.MaxWait)
	defer cancel()
	ch := make(chan struct{}, 1)
	w := s.Watch(func() {
		select {
		case ch <- struct{}{}:
		default:
		}
	})
	defer w.Close()
	if err := w.Add(req.Partition); err != nil {
		return nil, err
	}
	for {
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return s.fetch(req)
			}
			return nil, ctx.Err()
		case <-ch:
			w.Ready(nil)
			if l, err = s.fetch(req); err != nil || len(l.Chunks) > 0 {
				return l, err
			}
		}
	}
}

// fetch is Fetch without waiting.
func (s *Store) fetch(req FetchRequest) (*Lease, error) {
	p, err := s.partition(req.Partition)
	if err != nil {
		return nil, err
	}
	if req.MaxBytes <= 0 {
		req.MaxBytes = defaultFetchBytes
	}
	offset := req.Offset
	for {
		l, seg, err := p.lookup(req, offset)
		if err != nil {
			return l, err
		}
		if seg == nil {
			if p.isolate(l, req) {
				return l, nil
			}
			offset = p.skipAborted(l, offset)
			continue
		}
		err = s.readSegment(l, seg, p, offset, req.MaxBytes)
		var rot *segment.RotError
		switch {
		case err == nil:
			// Other segments may have what is between this range and the next one
			// that the file has of the partition.
			if l.cutAt(seg.last + 1); len(l.Chunks) == 0 {
				l.Release()
				offset = seg.last + 1
				continue
			}
			p.cutDamaged(l)
			l.cutAt(l.ReadEnd)
			s.readOn(l, p, req.MaxBytes)
			if l.inOrder {
				s.readAhead(p, l.NextOffset, req.MaxBytes)
			}
			if p.isolate(l, req) {
				return l, nil
			}
			offset = p.skipAborted(l, offset)
		case errors.Is(err, segment.ErrOffset):
			// Compaction left nothing of the segment's range.
			offset = seg.last + 1
		case errors.As(err, &rot) && rot.From > seg.last:
			offset = seg.last + 1 // as above
		case errors.As(err, &rot):
			s.noteRot(p, rot)
			return nil, &CorruptError{Topic: p.topic.name, Index: p.index, From: rot.From, To: rot.To, Detail: rot.Error()}
		case p.replaced(seg.seg) && (errors.Is(err, vfs.ErrNotExist) || errors.Is(err, vfs.ErrClosed)):
			// Retention or compaction was faster; look again.
		default:
			return nil, fmt.Errorf("reading topic %s partition %d: %w", p.topic.name, p.index, err)
		}
	}
}

// lookup finds the batches from the offset on: in the cache, already in the
// lease, or in the segment returned.
func (p *partition) lookup(req FetchRequest, offset int64) (*Lease, *segRef, error) {
	sh := p.shard
	sh.mu.Lock()
	limit := p.end
	if req.Durable {
		limit = min(limit, p.durable)
	}
	stable := p.stableEnd()
	if req.Isolation != Uncommitted {
		limit = min(limit, stable)
	}
	l := &Lease{Partition: p.id, NextOffset: max(offset, req.Offset), Start: p.start, HighWatermark: p.end, DurableEnd: p.durable, StableEnd: stable, ReadEnd: limit}
	switch d, damaged := p.damageAt(offset); {
	case req.Offset < p.start || req.Offset > max(p.end, p.next):
		sh.mu.Unlock()
		return nil, nil, &OffsetError{Topic: p.topic.name, Index: p.index, Offset: req.Offset, Start: l.Start, End: l.HighWatermark}
	case damaged:
		sh.mu.Unlock()
		return nil, nil, &CorruptError{Topic: p.topic.name, Index: p.index, From: d.From, To: d.To, Detail: d.Detail}
	case offset >= limit || req.BoundsOnly:
		sh.mu.Unlock()
		return l, nil, nil
	}
	if i := p.findSegment(offset); i < len(p.segs) {
		r := p.segs[i]
		sh.mu.Unlock()
		return l, &r, nil
	}
	p.leaseRecent(l, offset, limit, req.MaxBytes)
	sh.mu.Unlock()
	l.detachSmall(&sh.s.bufs)
	return l, nil, nil
}

// leaseRecent adds cached batches to the lease; the shard's mutex is held.
func (p *partition) leaseRecent(l *Lease, offset, limit int64, maxBytes int) {
	stop := p.nextDamage(offset)
	i := p.findRecent(offset)
	if (i == len(p.recent) || p.recent[i].base >= limit) && (stop < 0 || stop >= limit) {
		// No record has the offsets up to the limit.
		l.NextOffset = max(l.NextOffset, limit)
		return
	}
	for ; i < len(p.recent); i++ {
		c := &p.recent[i]
		if c.last >= limit || (stop >= 0 && c.base > stop) {
			break
		}
		chunk := skipBefore(c.bytes(), offset)
		if l.Bytes > 0 && l.Bytes+len(chunk) > maxBytes {
			break
		}
		if n := len(l.blocks); n == 0 || l.blocks[n-1] != c.block {
			c.block.retain()
			l.blocks = append(l.blocks, c.block)
		}
		l.Chunks = append(l.Chunks, chunk)
		l.Bytes += len(chunk)
		l.NextOffset = c.last + 1
		if l.Bytes >= maxBytes {
			break
		}
	}
}

// skipBefore drops the batches that end before the offset.
func skipBefore(batches []byte, offset int64) []byte {
	for len(batches) > 0 {
		h, err := record.ParseHeader(batches)
		if err != nil || h.LastOffset() >= offset {
			return batches
		}
		batches = batches[h.Size():]
	}
	return batches
}

// detachSmall copies a lease that would keep much more memory than it uses.
func (l *Lease) detachSmall(pool *bufferPool) {
	kept := 0
	for _, b := range l.blocks {
		kept += len(b.buf)
	}
	if l.Bytes*minLeaseShare >= kept {
		return
	}
	buf := pool.take(l.Bytes)
	at := 0
	for i, c := range l.Chunks {
		n := copy(buf.b[at:], c)
		l.Chunks[i] = buf.b[at : at+n : at+n]
		at += n
	}
	for _, b := range l.blocks {
		b.release()
	}
	l.blocks, l.bufs = nil, []*readBuffer{buf}
}

// cutDamaged ends a lease before the first batch behind known damage, so that
// the reader meets the damage rather than jumps over it.
func (p *partition) cutDamaged(l *Lease) {
	if len(l.Chunks) == 0 {
		return
	}
	first, err := record.ParseHeader(l.Chunks[0])
	if err != nil {
		return
	}
	p.shard.mu.Lock()
	stop := p.nextDamage(first.BaseOffset)
	p.shard.mu.Unlock()
	if stop >= 0 {
		l.cutAt(stop + 1)
	}
}

// replaced says that the partition does not use the segment any more.
func (p *partition) replaced(seg *segmentInfo) bool {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	for _, r := range p.segs {
		if r.seg == seg {
			return false
		}
	}
	return true
}

// noteRot remembers damage that reading found, so that later reads need not find
// it again. A scrub makes it durable; until then each restart finds it anew.
func (s *Store) noteRot(p *partition, rot *segment.RotError) {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	if d := p.rotten(rot); p.addDamage(d) {
		s.opts.Logger.Error("records are damaged", "damage", d.String())
	}
}

// State returns a partition's bounds.
func (s *Store) State(id PartitionID) (PartitionState, error) {
	p, err := s.partition(id)
	if err != nil {
		return PartitionState{}, err
	}
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	return PartitionState{Start: p.start, HighWatermark: p.end, DurableEnd: p.durable, StableEnd: p.stableEnd(), LeaderEpoch: p.shard.leaderEpoch,
		SizeBytes: p.sizeBytes(), LastAppend: timeOf(p.lastMs)}, nil
}

// EpochHistory returns the leader epochs that have records, oldest first.
func (s *Store) EpochHistory(id PartitionID) ([]EpochRange, error) {
	p, err := s.partition(id)
	if err != nil {
		return nil, err
	}
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	return append([]EpochRange(nil), p.epochs...), nil
}

// EpochEnd returns the offset after the last record of a leader epoch, or of the
// latest one before it that has records. A saved position matches the log if its
// offset is at most the end of its epoch; beyond it, records that the position
// was made from are gone.
func (s *Store) EpochEnd(id PartitionID, leaderEpoch int32) (int64, error) {
	p, err := s.partition(id)
	if err != nil {
		return 0, err
	}
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	return p.epochEnd(leaderEpoch), nil
}
