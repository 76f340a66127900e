package topiclog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace/millrace/storage/manifest"
	"github.com/millrace/millrace/storage/segment"
)

// Merging: this many neighbors become one segment. Without it the number of files,
// and what each partition remembers of them, would grow with time rather than
// with data.
const (
	mergeFanIn    = 8
	mergeMinBytes = 1 << 20   // smaller ones count as this
	mergeMaxBytes = 256 << 20 // no larger ones are made
	// mergeGrowth is by how much a merged segment is larger than any it was
	// made of: so each record is copied a few times only, whatever the sizes
	// are that full caches and intervals leave side by side.
	mergeGrowth = 3
)

// rewrite copies what partitions hold in some segments of a shard into one new
// segment, which then takes their place.
type rewrite struct {
	s    *Store
	sh   *shard
	from map[*segmentInfo]bool
	seg  *segmentInfo
	w    *segment.Writer
	held []segPart
	// damage is what could not be copied.
	damage []Damage
	buf    []byte
	// small are batches of the partition at hand that are not written yet, and
	// smallMs the time of the latest.
	small   []byte
	smallMs int64
	// readers are those opened for this rewrite.
	readers map[*segmentInfo]*segment.Reader
	// filter, if set, may drop records of a batch extent: it returns what to
	// write in the place of some whole batches. The result may be src itself.
	filter func(p *partition, src []byte, appendMs int64) ([]byte, error)
}

// rewritePart is a partition with what it holds in old segments that lie side by
// side. A partition has several if it has others between them.
type rewritePart struct {
	p    *partition
	refs []segRef
}

// run copies the parts, sorted by partition id, and commits. It returns the new
// segment.
func (r *rewrite) run(ctx context.Context, parts []rewritePart, gone []*segmentInfo) error {
	r.seg = &segmentInfo{id: r.s.nextSegment.Add(1) - 1, kind: segment.Mixed, shard: r.sh.number}
	r.seg.path = r.s.segmentPath(r.seg.id)
	var err error
	r.w, err = segment.Create(r.s.segFS, r.seg.path, segment.Options{Meta: segment.Meta{ID: r.seg.id, Kind: segment.Mixed, CreatedMs: r.s.nowMs()}})
	if err != nil {
		return err
	}
	defer r.closeReaders()
	for _, part := range parts {
		if err = ctx.Err(); err == nil && r.s.closed.Load() {
			err = ErrClosed
		}
		if err == nil {
			err = r.copyPart(part)
		}
		if err != nil {
			_ = r.w.Abort()
			return err
		}
	}
	info, err := r.w.Seal()
	if err != nil {
		_ = r.w.Abort()
		return err
	}
	if err := r.w.Close(); err != nil {
		return fmt.Errorf("closing segment: %w", err)
	}
	r.seg.minAppendMs, r.seg.maxAppendMs, r.seg.sizeBytes = info.MinAppendMs, info.MaxAppendMs, info.Size
	for seg := range r.from {
		// What was dropped must not make the rest look younger or older.
		r.seg.maxAppendMs = max(r.seg.maxAppendMs, seg.maxAppendMs)
		if r.seg.minAppendMs == 0 || seg.minAppendMs < r.seg.minAppendMs {
			r.seg.minAppendMs = seg.minAppendMs
		}
	}
	return r.commit(parts, gone)
}

// reader reads a segment that is rewritten. The few of a merge are read from
// beginning to end, in many small pieces: through the page cache, whose reading
// ahead makes that one sequential read, and which forgets them with the files.
func (r *rewrite) reader(seg *segmentInfo) (*segment.Reader, error) {
	if len(r.from) > mergeFanIn {
		return r.s.segc.Reader(seg.path, segment.Meta{ID: seg.id, Kind: seg.kind}), nil
	}
	if reader := r.readers[seg]; reader != nil {
		return reader, nil
	}
	reader, err := segment.Open(r.s.fs, seg.path)
	if err != nil {
		return nil, err
	}
	if info, err := reader.Info(); err != nil || info.ID != seg.id {
		_ = reader.Close()
		return nil, errors.Join(err, fmt.Errorf("opening %s: %w: it is of segment %d", seg.path, segment.ErrNotSegment, info.ID))
	}
	if r.readers == nil {
		r.readers = map[*segmentInfo]*segment.Reader{}
	}
	r.readers[seg] = reader
	return reader, nil
}

// closeReaders lets go of the files; they were only read.
func (r *rewrite) closeReaders() {
	for _, reader := range r.readers {
		_ = reader.Close()
	}
	r.readers = nil
}

// copyPart copies one partition, extent by extent. Damaged batches are left out
// and remembered.
func (r *rewrite) copyPart(part rewritePart) error {
	p := part.p
	sp := segPart{id: p.id, base: part.refs[0].base, last: part.refs[len(part.refs)-1].last}
	for _, ref := range part.refs {
		reader, err := r.reader(ref.seg)
		if err != nil {
			return err
		}
		index, err := reader.Index()
		if err != nil {
			return err
		}
		for _, e := range index.Partition(uint64(p.id)) {
			if e.LastOffset < ref.base || e.BaseOffset > ref.last {
				continue
			}
			n, err := r.copyExtent(p, reader, e)
			if err != nil {
				return err
			}
			sp.bytes += n
		}
	}
	r.held = append(r.held, sp)
	return r.putSmall(p)
}

// put writes batches of a partition. Small pieces are collected, so that they
// become one extent: one entry of the index, one read.
func (r *rewrite) put(p *partition, batches []byte, appendMs int64) error {
	large := len(batches) >= extentBatch/2
	if large || len(r.small)+len(batches) > extentBatch {
		if err := r.putSmall(p); err != nil {
			return err
		}
	}
	if large {
		_, err := r.w.Append(uint64(p.id), batches, appendMs)
		return err
	}
	r.small = append(r.small, batches...)
	r.smallMs = max(r.smallMs, appendMs)
	return nil
}

// putSmall writes what was collected.
func (r *rewrite) putSmall(p *partition) error {
	if len(r.small) == 0 {
		return nil
	}
	_, err := r.w.Append(uint64(p.id), r.small, r.smallMs)
	r.small, r.smallMs = r.small[:0], 0
	return err
}

func (r *rewrite) copyExtent(p *partition, reader *segment.Reader, e segment.Extent) (int64, error) {
	if len(r.buf) < int(e.Length) {
		r.buf = make([]byte, e.Length)
	}
	var n int64
	for at := e.BaseOffset; at <= e.LastOffset; {
		got, err := reader.ReadAt(r.buf[:e.Length], uint64(p.id), at)
		var rot *segment.RotError
		switch {
		case errors.As(err, &rot):
			r.damage = append(r.damage, p.rotten(rot))
			at = rot.To + 1
			continue
		case errors.Is(err, segment.ErrOffset):
			return n, nil
		case err != nil:
			return n, err
		}
		// Damage may have ended the reading early, and a smaller extent may
		// have let the next one in.
		got = cutAfter(got, e.LastOffset)
		next := lastOffset(got) + 1
		if next <= at {
			return n, nil
		}
		at = next
		out := got
		if r.filter != nil {
			if out, err = r.filter(p, got, e.AppendTimeMs); err != nil {
				return n, err
			}
		}
		if len(out) == 0 {
			continue
		}
		if err := r.put(p, out, e.AppendTimeMs); err != nil {
			return n, err
		}
		n += int64(len(out))
	}
	return n, nil
}

// commit puts the new segment in the place of the old ones.
func (r *rewrite) commit(parts []rewritePart, gone []*segmentInfo) error {
	edits := []manifest.Edit{r.seg.edit(r.held)}
	for i := range r.damage {
		edits = append(edits, damageEdit(&r.damage[i]))
	}
	err := r.s.meta.commit(func() {
		r.sh.mu.Lock()
		defer r.sh.mu.Unlock()
		for i, part := range parts {
			part.p.replace(r.from, segRef{seg: r.seg, base: r.held[i].base, last: r.held[i].last, bytes: r.held[i].bytes})
		}
		for _, d := range r.damage {
			if p := r.s.part(d.Partition); p != nil {
				p.addDamage(d)
			}
		}
		r.sh.segments[r.seg.id] = r.seg
	}, edits...)
	if err != nil {
		if errors.Is(err, ErrDiskFull) {
			_ = r.s.fs.Remove(r.seg.path)
		}
		return fmt.Errorf("committing rewritten segment: %w", err)
	}
	return r.s.forgetSegments(r.sh, append(gone, r.unused()...))
}

// unused is the new segment if nobody needs it any more.
func (r *rewrite) unused() []*segmentInfo {
	r.sh.mu.Lock()
	defer r.sh.mu.Unlock()
	if r.seg.refs == 0 {
		return []*segmentInfo{r.seg}
	}
	return nil
}

// replace puts a rewritten segment in the place of those it was made from, as
// far as the partition still has them; the shard's mutex is held.
func (p *partition) replace(from map[*segmentInfo]bool, r segRef) {
	if p.dead.Load() {
		return
	}
	has := false
	for _, old := range p.segs {
		has = has || from[old.seg]
	}
	if !has {
		return
	}
	p.insertSegment(r)
	if p.start > r.base {
		p.trimBelowStart()
	}
}

// rotten describes damage that reading found.
func (p *partition) rotten(rot *segment.RotError) Damage {
	return Damage{Kind: DamageRotten, File: rot.Path, Position: rot.Position, Topic: p.topic.name, Index: p.index,
		Partition: p.id, From: rot.From, To: rot.To, Detail: rot.Err.Error()}
}

// partsOf lists what partitions have in some segments.
func (sh *shard) partsOf(from map[*segmentInfo]bool) (parts []rewritePart) {
	sh.s.mu.RLock()
	defer sh.s.mu.RUnlock()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, p := range sh.s.parts {
		if p == nil || p.shard != sh {
			continue
		}
		for i := 0; i < len(p.segs); i++ {
			first := i
			for i < len(p.segs) && from[p.segs[i].seg] {
				i++
			}
			if i > first {
				parts = append(parts, rewritePart{p: p, refs: slices.Clone(p.segs[first:i])})
			}
		}
	}
	return parts
}

// rewriteAll merges whole segments into one.
func (s *Store) rewriteAll(ctx context.Context, sh *shard, segs []*segmentInfo) error {
	from := map[*segmentInfo]bool{}
	for _, seg := range segs {
		from[seg] = true
	}
	r := rewrite{s: s, sh: sh, from: from}
	return r.run(ctx, sh.partsOf(from), segs)
}

// mergeSmall merges neighbors as long as there are enough of similar sizes. It
// returns how many segments were merged away.
func (s *Store) mergeSmall(ctx context.Context) (int, error) {
	merged := 0
	for _, sh := range s.shards {
		for {
			segs := sh.mergeable()
			if len(segs) == 0 {
				break
			}
			if err := s.rewriteAll(ctx, sh, segs); err != nil {
				return merged, fmt.Errorf("merging segments of shard %d: %w", sh.number, err)
			}
			merged += len(segs) - 1
		}
	}
	return merged, nil
}

// mergeable returns a run of mergeFanIn neighbors of which none is larger than
// the others warrant. Large segments of one partition stay as they are.
func (sh *shard) mergeable() []*segmentInfo {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	all := slices.SortedFunc(maps.Values(sh.segments), func(a, b *segmentInfo) int {
		if a.maxAppendMs != b.maxAppendMs {
			return int(a.maxAppendMs - b.maxAppendMs)
		}
		return int(int64(a.id) - int64(b.id))
	})
	all = slices.DeleteFunc(all, func(seg *segmentInfo) bool { return seg.kind == segment.Own && seg.sizeBytes >= sh.s.opts.keepOwn() })
	for i := 0; i+mergeFanIn <= len(all); i++ {
		run := all[i : i+mergeFanIn]
		var size, total, largest int64
		due := true
		for _, seg := range run {
			n := max(seg.sizeBytes, mergeMinBytes)
			size, total, largest = size+seg.sizeBytes, total+n, max(largest, n)
			due = due && seg.refs > 0
		}
		if due && total >= mergeGrowth*largest && size <= mergeMaxBytes {
			return slices.Clone(run)
		}
	}
	return nil
}
