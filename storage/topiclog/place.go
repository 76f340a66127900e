package topiclog

import (
	"fmt"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/wal"
)

// place gives a request its offsets and copies it into the group.
func (sh *shard) place(r *request, reg *ownRegion) error {
	if r.kind != wal.KindBatch {
		place, err := sh.builder.Reserve(nil, len(r.batches))
		if err != nil {
			return err
		}
		copy(place, r.batches)
		sh.builder.Commit(wal.EntrySpec{Kind: r.kind, Partition: uint32(r.part.id), Payload: r.batches})
		return nil
	}
	p := r.part
	if p.dead.Load() {
		return fmt.Errorf("%w: %d", ErrPartitionNotFound, p.id)
	}
	r.base = p.assign
	if r.producers {
		known, err := sh.admit(r, p.assign)
		if err != nil {
			return err
		}
		if r.repeated = known; known {
			return nil
		}
	}
	var err error
	if reg != nil {
		err = sh.placeDirect(r, reg)
	} else if err = sh.placeBatches(r); err == nil {
		if o := p.own.Load(); o != nil {
			o.bodied = sh.groupNumber
		}
	}
	if err != nil {
		// What was staged of it never happened, nor what would follow it.
		if r.producers {
			sh.unstage(r)
		}
		return err
	}
	return nil
}

// unstage forgets what a request that does not go in would have done to
// producers: what the group does is staged again.
func (sh *shard) unstage(failed *request) {
	sh.unstageAll()
	failed.part.stagedBy = nil
	for _, x := range sh.group {
		if x.kind == wal.KindBatch && x.producers && !x.repeated {
			_, _ = sh.admit(x, x.base) // they were admitted before
		}
	}
}

// isPublished says that readers can see what was appended before.
func (sh *shard) isPublished(r *request) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	r.start = r.part.start
	return r.base < r.part.end
}

// result is the answer to a request.
func (r *request) result(leaderEpoch int32, timeMs int64) AppendResult {
	return AppendResult{BaseOffset: r.base, LastOffset: r.base + r.records - 1, LeaderEpoch: leaderEpoch, AppendTime: timeOf(timeMs),
		StampedMillis: r.stamped(), Start: r.start, Repeated: r.repeated}
}

// placeBatches copies a request into the group.
func (sh *shard) placeBatches(r *request) error {
	p := r.part
	if r.os {
		if err := sh.reserve(p, r.base+r.records); err != nil {
			return err
		}
	}
	place, err := sh.builder.Reserve(r.note, len(r.batches))
	if err != nil {
		return err
	}
	at, err := sh.assign(r, place)
	if err != nil {
		return err
	}
	sh.builder.Commit(wal.EntrySpec{Kind: wal.KindBatch, Partition: uint32(p.id), Base: r.base, Last: at - 1, Note: r.note, Payload: place})
	r.block, r.off = sh.cur, uint32(sh.curUsed+sh.builder.Position())
	p.assign = at
	return nil
}

// assign copies the batches to their place and gives them their offsets; it
// returns the offset after them.
func (sh *shard) assign(r *request, place []byte) (int64, error) {
	copy(place, r.batches)
	stampMs := int64(0)
	if r.stamp {
		stampMs = sh.s.nowMs()
		r.maxTs = record.NoTimestamp
	}
	at := r.base
	if r.count == 1 && !r.stamp {
		record.Assign(place, at, sh.leaderEpoch)
		return at + r.records, nil
	}
	for rest := place; len(rest) > 0; {
		h, err := record.ParseHeader(rest)
		if err != nil {
			return 0, err // cannot be: it was parsed when it was handed in
		}
		record.Assign(rest, at, sh.leaderEpoch)
		if r.stamp {
			r.maxTs = max(r.maxTs, stampMs)
			record.StampLogAppendTime(rest[:h.Size()], stampMs)
		}
		at += int64(h.LastOffsetDelta) + 1
		rest = rest[h.Size():]
	}
	return at, nil
}
