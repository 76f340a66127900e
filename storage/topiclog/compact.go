package topiclog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/segment"
)

const (
	// maxCompactionKeys bounds the memory of one compaction, in bytes of keys
	// with what the map adds to each.
	maxCompactionKeys = 64 << 20
	// minDirtyBytes is how much must have been appended since a partition was
	// last compacted; it must also be as much as was left then.
	minDirtyBytes = 1 << 20
)

// compactAll rewrites the compacted topics' partitions that have grown enough,
// and returns how many.
func (s *Store) compactAll(ctx context.Context) (int, error) {
	type candidate struct {
		p   *partition
		set Settings
	}
	var todo []candidate
	s.mu.RLock()
	for _, t := range s.sortedTopics() {
		if t.settings.Compact {
			for _, p := range t.parts {
				todo = append(todo, candidate{p, t.settings})
			}
		}
	}
	s.mu.RUnlock()
	n := 0
	for _, c := range todo {
		done, err := s.compact(ctx, c.p, c.set, minDirtyBytes)
		if err != nil {
			return n, fmt.Errorf("compacting topic %s partition %d: %w", c.p.topic.name, c.p.index, err)
		}
		if done {
			n++
		}
	}
	return n, nil
}

// Compact compacts all partitions of a topic now, however little has changed.
// Only what is in segments is compacted; Flush comes first if need be.
func (s *Store) Compact(ctx context.Context, name string) error {
	s.mu.RLock()
	t := s.topics[name]
	s.mu.RUnlock()
	if t == nil {
		return fmt.Errorf("%w: %s", ErrTopicNotFound, name)
	}
	s.retention.run.Lock()
	defer s.retention.run.Unlock()
	d, err := s.Topic(name)
	if err != nil {
		return err
	}
	for _, part := range d.Partitions {
		p, err := s.partition(part.ID)
		if err != nil {
			return err
		}
		if _, err := s.compact(ctx, p, d.Settings, 1); err != nil {
			return fmt.Errorf("compacting topic %s partition %d: %w", name, p.index, err)
		}
	}
	return nil
}

// compaction rewrites one partition: of each key the last record stays.
type compaction struct {
	p      *partition
	set    Settings
	nowMs  int64
	latest map[string]int64 // offset of the last record of a key
	// firstPinned is the offset of the first batch that stays whole: behind it,
	// a deletion may be all that hides an old value.
	firstPinned int64
	through     int64 // keys are known up to here
	keyMem      int
	last        int64 // offset of the last record of all: its batch always stays
	// stable is where the first transaction without an end begins: from there on
	// all stays. The records of aborted ones go, and hide nothing.
	stable  int64
	aborted []AbortedTransaction

	dec     record.Decoder
	builder record.Builder
	out     []byte
}

// compact compacts a partition if at least dirty bytes came since the last time.
func (s *Store) compact(ctx context.Context, p *partition, set Settings, dirty int64) (bool, error) {
	p.shard.mu.Lock()
	refs := slices.Clone(p.segs)
	stable := p.stableEnd()
	aborted := p.abortedBetween(p.start, p.end)
	var old, fresh int64
	for _, r := range refs {
		if r.last <= p.compacted {
			old += r.bytes
		} else {
			fresh += r.bytes
		}
	}
	p.shard.mu.Unlock()
	if len(refs) == 0 || fresh < max(dirty, 1) || dirty > 1 && fresh < old {
		return false, nil
	}
	c := &compaction{p: p, set: set, nowMs: s.nowMs(), latest: map[string]int64{}, last: refs[len(refs)-1].last, firstPinned: math.MaxInt64, stable: stable, aborted: aborted}
	defer c.dec.Close()
	if err := c.learn(ctx, s, refs); err != nil {
		return false, err
	}
	from := map[*segmentInfo]bool{}
	for _, r := range refs {
		from[r.seg] = true
	}
	r := rewrite{s: s, sh: p.shard, from: from, filter: c.filter}
	if err := r.run(ctx, []rewritePart{{p: p, refs: refs}}, nil); err != nil {
		return false, err
	}
	p.shard.mu.Lock()
	p.compacted = c.through
	p.shard.mu.Unlock()
	return true, nil
}

// learn reads all keys.
func (c *compaction) learn(ctx context.Context, s *Store, refs []segRef) error {
	var buf []byte
	for _, ref := range refs {
		reader := s.segc.Reader(ref.seg.path, segment.Meta{ID: ref.seg.id, Kind: ref.seg.kind})
		index, err := reader.Index()
		if err != nil {
			return err
		}
		for _, e := range index.Partition(uint64(c.p.id)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if e.LastOffset < ref.base || e.BaseOffset > ref.last {
				continue // of another range
			}
			if c.young(e.AppendTimeMs) {
				c.firstPinned = min(c.firstPinned, e.BaseOffset)
			}
			if len(buf) < int(e.Length) {
				buf = make([]byte, e.Length)
			}
			for at := e.BaseOffset; at <= e.LastOffset; {
				got, err := reader.ReadAt(buf[:e.Length], uint64(c.p.id), at)
				var rot *segment.RotError
				if errors.As(err, &rot) {
					at = rot.To + 1
					continue
				}
				if errors.Is(err, segment.ErrOffset) {
					break
				}
				if err != nil {
					return err
				}
				if at = lastOffset(got) + 1; !c.learnBatches(got) {
					return nil // the keys after this are for the next time
				}
			}
		}
	}
	return nil
}

// learnBatches reports whether there is memory for more keys.
func (c *compaction) learnBatches(batches []byte) bool {
	var r record.Record
	for len(batches) > 0 {
		b, rest, err := record.SplitUnverified(batches)
		if err != nil {
			return true
		}
		batches = rest
		if b.BaseOffset >= c.stable {
			c.firstPinned = min(c.firstPinned, b.BaseOffset)
			return false
		}
		if b.Attributes.Control() || isAborted(&b.Header, c.aborted) {
			continue
		}
		it, err := c.dec.Records(b)
		if err != nil || c.whole(&b) {
			c.firstPinned = min(c.firstPinned, b.BaseOffset)
		}
		if err != nil {
			continue // filter keeps a batch that it cannot open
		}
		for it.Next(&r) {
			if r.Key == nil {
				continue
			}
			if _, ok := c.latest[string(r.Key)]; !ok {
				c.keyMem += len(r.Key) + 48
			}
			c.latest[string(r.Key)] = r.Offset
		}
		if it.Err() != nil {
			c.firstPinned = min(c.firstPinned, b.BaseOffset)
		}
		c.through = b.LastOffset()
		if c.keyMem > maxCompactionKeys {
			return false
		}
	}
	return true
}

// keeps says whether a record stays.
func (c *compaction) keeps(r *record.Record, appendMs int64) bool {
	if r.Key == nil || r.Offset > c.through {
		return true
	}
	if c.latest[string(r.Key)] > r.Offset {
		return false
	}
	// A null value deletes its key; it stays until every reader can have seen
	// it, and as long as an older batch that stays whole may hold a value of
	// the key, which would come back to life.
	return r.Value != nil || r.Offset >= c.firstPinned || c.nowMs-appendMs < c.set.DeleteRetention.Milliseconds()
}

// whole says that a batch stays as it is: markers and open transactions, batches
// whose times the log has set, which a builder cannot write, and the last one,
// from whose offset others go on. What partitions know of producers is kept
// beside the records, so that idempotent batches may go like others.
func (c *compaction) whole(b *record.Batch) bool {
	a := b.Attributes
	return a.Control() || b.BaseOffset >= c.stable || a.LogAppendTime() || b.LastOffset() >= c.last
}

// young says that records appended then stay, whatever came after them.
func (c *compaction) young(appendMs int64) bool {
	return c.nowMs-appendMs < c.set.MinCompactionLag.Milliseconds()
}

// filter drops superseded records from some batches.
func (c *compaction) filter(p *partition, src []byte, appendMs int64) ([]byte, error) {
	if c.young(appendMs) {
		return src, nil
	}
	c.out = c.out[:0]
	for rest := src; len(rest) > 0; {
		b, after, err := record.SplitUnverified(rest)
		if err != nil {
			return nil, err
		}
		rest = after
		kept, err := c.filterBatch(&b, appendMs)
		if err != nil {
			return nil, err
		}
		c.out = append(c.out, kept...)
	}
	if bytes.Equal(c.out, src) {
		return src, nil
	}
	return c.out, nil
}

func (c *compaction) filterBatch(b *record.Batch, appendMs int64) ([]byte, error) {
	if c.whole(b) {
		return b.Raw, nil
	}
	if isAborted(&b.Header, c.aborted) {
		return nil, nil
	}
	it, err := c.dec.Records(*b)
	if err != nil {
		return b.Raw, nil
	}
	var r record.Record
	drop, keep := 0, 0
	for it.Next(&r) {
		if c.keeps(&r, appendMs) {
			keep++
		} else {
			drop++
		}
	}
	if it.Err() != nil || drop == 0 {
		return b.Raw, nil
	}
	if keep == 0 {
		return nil, nil
	}
	return c.rebuild(b, appendMs)
}

// rebuild writes a batch anew with the records that stay, at their offsets.
func (c *compaction) rebuild(b *record.Batch, appendMs int64) ([]byte, error) {
	it, err := c.dec.Records(*b)
	if err != nil {
		return nil, err
	}
	c.builder.Reset()
	c.builder.Codec = b.Attributes.Codec()
	if b.ProducerID != record.NoProducerID {
		c.builder.SetProducer(b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Attributes.Transactional())
	}
	var r record.Record
	var headers []record.RecordHeader
	for it.Next(&r) {
		if !c.keeps(&r, appendMs) {
			continue
		}
		headers = headers[:0]
		var h record.RecordHeader
		for hs := r.Headers(); hs.Next(&h); {
			headers = append(headers, h)
		}
		if err := c.builder.AppendAt(int32(r.Offset-b.BaseOffset), r.Timestamp, r.Key, r.Value, headers); err != nil {
			return nil, err
		}
	}
	raw, err := c.builder.Build()
	if err != nil {
		return nil, err
	}
	record.Assign(raw, b.BaseOffset, b.LeaderEpoch)
	return raw, nil
}
