package topiclog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/millrace/millrace/storage/manifest"
	"github.com/millrace/millrace/storage/segment"
	"github.com/millrace/millrace/storage/vfs"
)

// VerifyReport says what a scrub of all files found.
type VerifyReport struct {
	// Recovery is what opening the store found in the manifest and the
	// journals.
	Recovery RecoveryReport
	// Segments and SegmentBytes were read, Batches found in them.
	Segments     int
	SegmentBytes int64
	Batches      int64
	// Damage is everything that was found, in Recovery and in segments, and what
	// was known before. Entries with From > To cost no records.
	Damage []Damage
	// Lost is how many offsets are lost.
	Lost int64
	// Repaired is the number of segments that were rewritten without what is
	// damaged.
	Repaired int
}

// Clean says that nothing was found.
func (r *VerifyReport) Clean() bool { return len(r.Damage) == 0 }

// Verify reads every byte of a store that nobody has open and says what is
// damaged, by topic, partition and offsets. Without repair it changes nothing
// but the lock file. With repair, damaged segments are rewritten: what can be
// read stays at its offsets, what is lost stays known as lost.
func Verify(ctx context.Context, o Options, repair bool) (VerifyReport, error) {
	if err := o.defaults(); err != nil {
		return VerifyReport{}, err
	}
	if _, err := o.FS.Stat(o.FS.Join(o.Dir, manifestName)); err != nil {
		return VerifyReport{}, fmt.Errorf("verifying %s: no log store there: %w", o.Dir, err)
	}
	o.RetentionInterval, o.MarkDelay = -1, time.Hour
	if !repair {
		lock, err := o.FS.Lock(o.FS.Join(o.Dir, lockName))
		if err != nil {
			var locked *vfs.LockedError
			if errors.As(err, &locked) {
				return VerifyReport{}, &OwnedError{Dir: o.Dir, PID: locked.PID, Err: err}
			}
			return VerifyReport{}, fmt.Errorf("verifying %s: %w", o.Dir, err)
		}
		defer lock.Close()
		// Recovery works as ever, and what it writes goes to memory.
		o.FS, o.ReserveBytes = vfs.NewOverlay(o.FS), -1
	}
	s, err := Open(o)
	if err != nil {
		return VerifyReport{}, err
	}
	rep, err := s.scrub(ctx, repair)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return rep, err
}

// Scrub reads every byte of the segments of an open store and says what is
// damaged; what is lost is remembered durably, so that readers are told.
func (s *Store) Scrub(ctx context.Context) (VerifyReport, error) { return s.scrub(ctx, false) }

func (s *Store) scrub(ctx context.Context, repair bool) (VerifyReport, error) {
	s.retention.run.Lock()
	defer s.retention.run.Unlock()
	rep := VerifyReport{Recovery: s.recovery}
	rep.Damage = append(rep.Damage, s.recovery.Damage...)
	for _, sh := range s.shards {
		sh.mu.Lock()
		segs := slices.SortedFunc(maps.Values(sh.segments), func(a, b *segmentInfo) int { return int(int64(a.id) - int64(b.id)) })
		sh.mu.Unlock()
		for _, seg := range segs {
			if err := ctx.Err(); err != nil {
				return rep, err
			}
			if err := s.scrubSegment(ctx, &rep, sh, seg, repair); err != nil {
				return rep, fmt.Errorf("scrubbing %s: %w", seg.path, err)
			}
		}
	}
	s.addKnown(&rep)
	for _, d := range rep.Damage {
		if d.From <= d.To {
			rep.Lost += d.To - d.From + 1
		}
	}
	return rep, nil
}

func (s *Store) scrubSegment(ctx context.Context, rep *VerifyReport, sh *shard, seg *segmentInfo, repair bool) error {
	sr, err := segment.Scrub(s.fs, seg.path, segment.ScrubOptions{Throttle: func(int) error { return ctx.Err() }})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	rep.Segments++
	switch lost := errors.Is(err, segment.ErrNotSegment) || errors.Is(err, vfs.ErrNotExist); {
	case lost:
		// The file is gone or nothing in it is recognizable.
		return s.loseSegment(rep, sh, seg, err, repair)
	case errors.Is(err, syscall.EIO) && !repair:
		return s.loseSegment(rep, sh, seg, err, false)
	case err != nil:
		// Invariant 3: a file that cannot be read now, or only by a newer
		// version, is no lost file; repair must not let go of it.
		return err
	case sr.ID != seg.id:
		err := fmt.Errorf("%w %d: the file is of segment %d", segment.ErrNotSegment, seg.id, sr.ID)
		if repair {
			return err // it may be the only copy of that one
		}
		return s.loseSegment(rep, sh, seg, err, false)
	}
	rep.SegmentBytes += sr.Size
	rep.Batches += sr.Batches
	var edits []manifest.Edit
	var lost []Damage
	for _, d := range sr.Damage {
		out := Damage{Kind: DamageRotten, File: seg.path, Position: d.Position, To: -1, Detail: d.Part + ": " + errText(d.Err)}
		if d.Lost {
			out.Partition, out.From, out.To = PartitionID(d.Partition), d.From, d.To
			p := s.part0(out.Partition)
			if p != nil && !p.uses(seg, d.From, d.To) {
				out.From, out.To = 0, -1 // other segments have these
			} else if p != nil {
				out.Topic, out.Index = p.topic.name, p.index
				lost = append(lost, out)
				edits = append(edits, damageEdit(&out))
			}
		}
		rep.Damage = append(rep.Damage, out)
	}
	if len(edits) > 0 {
		err := s.meta.commit(func() {
			for _, d := range lost {
				if p := s.part0(d.Partition); p != nil {
					p.shard.mu.Lock()
					p.addDamage(d)
					p.shard.mu.Unlock()
				}
			}
		}, edits...)
		if err != nil {
			return err
		}
	}
	if !repair || len(sr.Damage) == 0 {
		return nil
	}
	if err := s.rewriteAll(ctx, sh, []*segmentInfo{seg}); err != nil {
		return err
	}
	rep.Repaired++
	return nil
}

// uses says that the partition reads some of the offsets from the segment.
func (p *partition) uses(seg *segmentInfo, from, to int64) bool {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	return slices.ContainsFunc(p.segs, func(r segRef) bool { return r.seg == seg && r.base <= to && from <= r.last })
}

func errText(err error) string {
	if err == nil {
		return "damaged"
	}
	return err.Error()
}

// loseSegment reports everything a segment held as lost. With repair the
// partitions let go of it.
func (s *Store) loseSegment(rep *VerifyReport, sh *shard, seg *segmentInfo, cause error, repair bool) error {
	parts := sh.partsOf(map[*segmentInfo]bool{seg: true})
	var edits []manifest.Edit
	var lost []Damage
	for _, part := range parts {
		for _, r := range part.refs {
			d := Damage{Kind: DamageRotten, File: seg.path, Topic: part.p.topic.name, Index: part.p.index, Partition: part.p.id,
				From: max(r.base, part.p.start), To: r.last, Detail: "the segment cannot be read: " + cause.Error()}
			lost = append(lost, d)
			edits = append(edits, damageEdit(&d))
		}
	}
	rep.Damage = append(rep.Damage, lost...)
	if !repair {
		return nil
	}
	err := s.meta.commit(func() {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		n := 0
		for _, part := range parts {
			part.p.segs = slices.DeleteFunc(slices.Clone(part.p.segs), func(r segRef) bool { return r.seg == seg })
			for _, r := range part.refs {
				part.p.segBytes -= r.bytes
				part.p.addDamage(lost[n])
				n++
			}
		}
	}, edits...)
	if err != nil {
		return err
	}
	rep.Repaired++
	return s.forgetSegments(sh, []*segmentInfo{seg})
}

// addKnown adds damage that was known before.
func (s *Store) addKnown(rep *VerifyReport) {
	type place struct {
		id   PartitionID
		from int64
	}
	seen := map[place]bool{}
	for _, d := range rep.Damage {
		if d.From <= d.To {
			seen[place{d.Partition, d.From}] = true
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, t := range s.sortedTopics() {
		for _, p := range t.parts {
			p.shard.mu.Lock()
			for _, d := range p.damage {
				if !seen[place{d.Partition, d.From}] {
					rep.Damage = append(rep.Damage, d)
				}
			}
			p.shard.mu.Unlock()
		}
	}
}
