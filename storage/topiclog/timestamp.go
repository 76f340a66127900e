package topiclog

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/segment"
	"github.com/millrace/millrace/storage/vfs"
)

// OffsetForTimestamp returns the first offset whose record has a timestamp of at
// least timestampMillis, and that timestamp. If there is none, it returns the
// high watermark and -1.
func (s *Store) OffsetForTimestamp(ctx context.Context, id PartitionID, timestampMillis int64) (offset, foundMillis int64, err error) {
	p, err := s.partition(id)
	if err != nil {
		return 0, 0, err
	}
	var d record.Decoder
	defer d.Close()
	for from := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		p.shard.mu.Lock()
		from = max(from, p.start)
		i := p.findSegment(from)
		if i == len(p.segs) {
			p.shard.mu.Unlock()
			return s.recentForTimestamp(p, from, timestampMillis, &d)
		}
		r := p.segs[i]
		p.shard.mu.Unlock()
		reader := s.segc.Reader(r.seg.path, segment.Meta{ID: r.seg.id, Kind: r.seg.kind})
		offset, foundMillis, err = reader.OffsetForTime(uint64(id), timestampMillis, &d)
		var rot *segment.RotError
		switch {
		case err == nil && offset > r.last:
			// Other segments may have what is between.
			from = r.last + 1
		case err == nil && offset >= from:
			return offset, foundMillis, nil
		case err == nil:
			// The record found was deleted: walk on from the start.
			return s.scanForTimestamp(ctx, p, from, timestampMillis, &d)
		case errors.Is(err, segment.ErrOffset):
			from = r.last + 1
		case errors.As(err, &rot):
			// What is lost cannot be found; the next record that can is right.
			s.noteRot(p, rot)
			return s.scanForTimestamp(ctx, p, max(from, r.base), timestampMillis, &d)
		case p.replaced(r.seg) && (errors.Is(err, vfs.ErrNotExist) || errors.Is(err, vfs.ErrClosed)):
		default:
			return 0, 0, fmt.Errorf("searching topic %s partition %d: %w", p.topic.name, p.index, err)
		}
	}
}

// recentForTimestamp searches the cache.
func (s *Store) recentForTimestamp(p *partition, from, timestampMs int64, d *record.Decoder) (int64, int64, error) {
	p.shard.mu.Lock()
	end := p.end
	for i := p.findRecent(from); i < len(p.recent); i++ {
		if p.recent[i].maxTs >= timestampMs {
			from = max(from, p.recent[i].base)
			p.shard.mu.Unlock()
			return s.scanForTimestamp(context.Background(), p, from, timestampMs, d)
		}
	}
	p.shard.mu.Unlock()
	return end, -1, nil
}

// scanForTimestamp reads records from an offset on.
func (s *Store) scanForTimestamp(ctx context.Context, p *partition, from, timestampMs int64, d *record.Decoder) (int64, int64, error) {
	for {
		l, err := s.Fetch(ctx, FetchRequest{Partition: p.id, Offset: from, Isolation: Uncommitted})
		var lost *CorruptError
		if errors.As(err, &lost) {
			from = lost.To + 1
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		offset, found, err := searchLease(l, from, timestampMs, d)
		end := len(l.Chunks) == 0
		next, high := l.NextOffset, l.HighWatermark
		l.Release()
		switch {
		case err != nil:
			return 0, 0, fmt.Errorf("searching topic %s partition %d: %w", p.topic.name, p.index, err)
		case offset >= 0:
			return offset, found, nil
		case end:
			return high, -1, nil
		}
		from = next
	}
}

func searchLease(l *Lease, from, timestampMs int64, d *record.Decoder) (offset, foundMs int64, err error) {
	var rec record.Record
	for _, chunk := range l.Chunks {
		for rest := chunk; len(rest) > 0; {
			var b record.Batch
			if b, rest, err = record.SplitUnverified(rest); err != nil {
				return 0, 0, err
			}
			if b.MaxTimestamp < timestampMs {
				continue
			}
			it, err := d.Records(b)
			if err != nil {
				return 0, 0, err
			}
			for it.Next(&rec) {
				if rec.Timestamp >= timestampMs && rec.Offset >= from {
					return rec.Offset, rec.Timestamp, nil
				}
			}
			if err := it.Err(); err != nil {
				return 0, 0, err
			}
		}
	}
	return -1, -1, nil
}
