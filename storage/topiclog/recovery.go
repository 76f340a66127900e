package topiclog

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/storage/manifest"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
	"github.com/millrace/millrace/storage/wal"
)

// recover reads the journals, brings the partitions to where they were, and
// makes durable what has to be known before the first append: the new epochs,
// jumps of offsets, damage.
func (s *Store) recover() error {
	started := time.Now()
	recs := make([]*wal.Recovered, len(s.shards))
	errs := make([]error, len(s.shards))
	var wg sync.WaitGroup
	for i, sh := range s.shards {
		wg.Go(func() { recs[i], errs[i] = wal.Recover(sh.journalOptions(), sh.flushed) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.recovery.Clean = true
	var edits []manifest.Edit
	rebuild := make([]bool, len(s.shards))
	for i, sh := range s.shards {
		r := replayer{s: s, sh: sh, rec: recs[i]}
		if err := r.run(); err != nil {
			return fmt.Errorf("recovering shard %d: %w", i, err)
		}
		s.recovery.Clean = s.recovery.Clean && r.clean
		sh.journalEpoch = max(sh.journalEpoch, recs[i].Epoch) + 1
		if !r.clean {
			sh.leaderEpoch++
		}
		edits = append(edits, shardOpenEdit(i, sh.journalEpoch, sh.leaderEpoch))
		sh.recoveryEdits = r.edits
		rebuild[i] = r.rebuild
		sh.clean = false
	}
	if err := s.meta.commit(nil, edits...); err != nil {
		return err
	}
	for i, sh := range s.shards {
		through := sh.flushed
		var j *wal.Journal
		err := s.withReserve(func() (err error) {
			j, err = wal.Open(sh.journalOptions(), recs[i], sh.journalEpoch, through)
			return err
		})
		if err != nil {
			return err
		}
		sh.journal = j
		sh.published = j.Next() - 1
		if rebuild[i] {
			// What was damaged or jumped over must not be judged again by the
			// next recovery, which knows less: move all of it to segments. The
			// edits go with that, not before: a jump of offsets that is known
			// while the journal still has older records would hide those.
			if err := s.withReserve(sh.flush); err != nil {
				return fmt.Errorf("rebuilding shard %d: %w", i, err)
			}
			err := s.meta.commit(func() {
				sh.mu.Lock()
				defer sh.mu.Unlock()
				sh.settleJumps()
			}, sh.recoveryEdits...)
			if err != nil {
				return fmt.Errorf("rebuilding shard %d: %w", i, err)
			}
			sh.recoveryEdits = nil
		}
	}
	s.recovery.Duration = time.Since(started)
	return nil
}

func (sh *shard) journalOptions() wal.Options {
	o := &sh.s.opts
	return wal.Options{FS: sh.s.fs, Dir: sh.s.path(journalName), Store: sh.s.id, Shard: uint32(sh.number),
		FileBytes: o.JournalFileBytes, MaxBytes: o.journalMax(len(sh.s.shards)), Logger: o.Logger}
}

// replayer applies one shard's journal.
type replayer struct {
	s   *Store
	sh  *shard
	rec *wal.Recovered

	clean   bool // closed properly and complete
	rebuild bool // flush before the first append
	edits   []manifest.Edit
	cut     map[*partition]int64 // torn tail: drop what follows; the highest offset dropped
	jumped  map[*partition]bool
	own     map[uint64]vfs.File // own segments that references name, nil if they are not there
}

func (r *replayer) run() error {
	sh := r.sh
	r.cut, r.jumped = map[*partition]int64{}, map[*partition]bool{}
	r.own = map[uint64]vfs.File{}
	defer r.closeOwn()
	r.clean = sh.clean && (r.rec.Last == sh.cleanSeq || sh.cleanSeq <= sh.flushed)
	for _, text := range r.rec.Damage {
		r.report(Damage{Kind: DamageRotten, File: text, From: 0, To: -1, Detail: "journal file header"})
	}
	mark := r.rec.Mark
	if sh.clean {
		// A clean close made everything durable, whatever the last mark says.
		mark = max(mark, sh.cleanSeq)
	}
	next := sh.flushed + 1
	for _, g := range r.rec.Groups {
		if g.Sequence != next {
			r.missing(next, g.Sequence-1, mark)
		}
		next = g.Sequence + 1
		if err := r.group(g, g.Sequence <= mark); err != nil {
			return err
		}
	}
	if next <= mark {
		r.missing(next, mark, mark)
	}
	r.settle()
	return nil
}

// missing reports groups of which nothing could be read.
func (r *replayer) missing(from, to, mark uint64) {
	r.clean = false
	kind := DamageTorn
	if from <= mark {
		kind = DamageRotten
	}
	r.rebuild = true
	r.report(Damage{Kind: kind, File: r.s.path(journalName), From: 0, To: -1,
		Detail: fmt.Sprintf("groups %d to %d of shard %d cannot be found", from, to, r.sh.number)})
}

func (r *replayer) report(d Damage) {
	r.s.recovery.Damage = append(r.s.recovery.Damage, d)
	r.s.opts.Logger.Warn("damage found", "damage", d.String())
}

// group applies one group. durable says that it was known to be durable: then
// damage is rot and costs only what it hit. In the last group it may be an
// interrupted write, and each partition is kept up to its first bad entry.
func (r *replayer) group(g *wal.Group, durable bool) error {
	r.s.recovery.Groups++
	kind := DamageTornOrRotten
	if durable {
		kind = DamageRotten
	}
	for _, text := range g.Damage {
		r.clean, r.rebuild = false, true
		r.report(Damage{Kind: kind, File: g.File, Position: g.Position, From: 0, To: -1, Detail: text})
	}
	for i := range g.Entries {
		if e := &g.Entries[i]; e.Kind == wal.KindReference {
			if err := r.resolve(e); err != nil {
				return err
			}
		}
	}
	b := r.blockFor(g)
	at := 0
	for i := range g.Entries {
		e := &g.Entries[i]
		switch e.Kind {
		case wal.KindBatch:
			n, err := r.batch(g, e, durable, kind, b, at)
			if err != nil {
				return err
			}
			at += n
		case wal.KindCursor:
			if e.State == wal.Valid {
				r.cursors(g, e, kind)
			} else {
				r.bad(g, e, kind, "cursors damaged", nil)
			}
		default:
			return fmt.Errorf("%w: journal entry of kind %d in %s", ErrFormat, e.Kind, g.File)
		}
	}
	if b != nil {
		if at == 0 {
			b.release()
			return nil
		}
		r.sh.blocks = append(r.sh.blocks, blockUse{b: b, lastSeq: g.Sequence, bytes: int64(len(b.buf))})
		r.sh.cacheBytes += int64(len(b.buf))
	}
	return nil
}

// blockFor is memory of the cache for the group's batches.
func (r *replayer) blockFor(g *wal.Group) *block {
	size := 0
	for i := range g.Entries {
		if e := &g.Entries[i]; e.Kind == wal.KindBatch {
			size += len(e.Payload)
		}
	}
	if size == 0 {
		return nil
	}
	b := &block{buf: make([]byte, size), pool: &r.s.pool}
	b.refs.Store(1)
	return b
}

// batch applies one batch entry and returns how much of the block it took.
func (r *replayer) batch(g *wal.Group, e *wal.Entry, durable bool, kind DamageKind, b *block, at int) (int, error) {
	id := PartitionID(e.Partition)
	p := r.s.part(id)
	if p == nil {
		// Partition ids are given in rising order and never twice, and each was
		// in the manifest before its first append: one that is below the next
		// and not there was deleted.
		if id < r.s.nextPart {
			r.s.recovery.Dropped++
			return 0, nil
		}
		return 0, fmt.Errorf("%w: %s at %d holds records of partition %d, which the metadata does not know",
			ErrDamaged, g.File, e.Position, id)
	}
	if p.shard != r.sh {
		return 0, fmt.Errorf("%w: %s at %d holds records of partition %d of shard %d", ErrDamaged, g.File, e.Position, id, p.shard.number)
	}
	if e.Last < p.next {
		return 0, nil // already in a segment
	}
	if dropped, ok := r.cut[p]; ok {
		r.cut[p] = max(dropped, e.Last)
		return 0, nil
	}
	expected := max(p.next, p.start)
	bad := e.State != wal.Valid
	if !bad {
		if err := checkEntry(e); err != nil {
			bad = true
		}
	}
	hole := e.Base > expected
	switch {
	case bad && durable:
		// Invariant: rot costs the batch that it hit.
		r.bad(g, e, kind, "checksum mismatch", p)
		if hole {
			r.lost(g, e, p, expected, e.Base-1)
		}
		// The lost offsets count as there: a reader must meet the damage.
		p.next, p.end = e.Last+1, e.Last+1
		return 0, nil
	case bad:
		r.bad(g, e, kind, "checksum mismatch", nil)
		r.cut[p] = e.Last
		return 0, nil
	case hole && durable:
		r.lost(g, e, p, expected, e.Base-1)
	case hole:
		// Something before it in the torn tail is gone.
		r.clean, r.rebuild = false, true
		r.report(Damage{Kind: kind, File: g.File, Position: e.Position, Topic: p.topic.name, Index: p.index, Partition: p.id,
			From: expected, To: e.Last, Detail: "records before it are missing"})
		r.cut[p] = e.Last
		return 0, nil
	}
	r.keep(g, e, p, b, at)
	return len(e.Payload), nil
}

// keep puts a good batch entry into the cache.
func (r *replayer) keep(g *wal.Group, e *wal.Entry, p *partition, b *block, at int) {
	copy(b.buf[at:], e.Payload)
	c := cached{base: e.Base, last: e.Last, block: b, off: uint32(at), size: uint32(len(e.Payload)), seq: g.Sequence,
		maxTs: record.NoTimestamp, timeMs: g.TimeMs}
	for rest := e.Payload; len(rest) > 0; {
		h, err := record.ParseHeader(rest)
		if err != nil {
			break // cannot be: checkEntry parsed it
		}
		c.maxTs = max(c.maxTs, h.MaxTimestamp)
		p.noteEpoch(h.LeaderEpoch, h.BaseOffset, h.LastOffset())
		r.sh.leaderEpoch = max(r.sh.leaderEpoch, h.LeaderEpoch)
		rest = rest[h.Size():]
	}
	p.recent = append(p.recent, c)
	p.end, p.next, p.lastMs = e.Last+1, e.Last+1, g.TimeMs
	p.noteProducers(e.Payload, g.TimeMs)
	if !p.dirty {
		p.dirty = true
		r.sh.dirty = append(r.sh.dirty, p)
	}
	if r.sh.oldestMs == 0 {
		r.sh.oldestMs = g.TimeMs
	}
	if key, data, ok := decodeNote(e.Note); ok {
		p.addNote(key, Note{BaseOffset: e.Base, LastOffset: e.Last, Data: slices.Clone(data)}, true)
		r.sh.noteBytes += len(data)
	}
	r.s.recovery.Batches++
	r.s.recovery.Bytes += int64(len(e.Payload))
}

// checkEntry verifies that the payload is what the entry header says.
func checkEntry(e *wal.Entry) error {
	next := e.Base
	for rest := e.Payload; len(rest) > 0; {
		b, after, err := record.Split(rest)
		if err != nil {
			return err
		}
		if b.BaseOffset != next {
			return fmt.Errorf("%w: offset %d, expected %d", ErrCorrupt, b.BaseOffset, next)
		}
		next, rest = b.LastOffset()+1, after
	}
	if next != e.Last+1 {
		return fmt.Errorf("%w: ends at offset %d, expected %d", ErrCorrupt, next-1, e.Last)
	}
	return nil
}

// bad reports a damaged entry; with a partition its offsets are lost for good.
func (r *replayer) bad(g *wal.Group, e *wal.Entry, kind DamageKind, detail string, p *partition) {
	r.clean, r.rebuild = false, true
	d := Damage{Kind: kind, File: g.File, Position: e.Position, Partition: PartitionID(e.Partition), From: e.Base, To: e.Last, Detail: detail}
	if e.Kind != wal.KindBatch {
		d.From, d.To = 0, -1
	}
	if q := r.s.part(d.Partition); q != nil {
		d.Topic, d.Index = q.topic.name, q.index
	}
	r.report(d)
	if p != nil && p.addDamage(d) {
		r.edits = append(r.edits, damageEdit(&d))
	}
}

// lost reports offsets that once were durable and of which nothing was found.
func (r *replayer) lost(g *wal.Group, e *wal.Entry, p *partition, from, to int64) {
	r.clean, r.rebuild = false, true
	d := Damage{Kind: DamageRotten, File: g.File, Position: e.Position, Topic: p.topic.name, Index: p.index, Partition: p.id,
		From: from, To: to, Detail: "nothing of these records was found"}
	r.report(d)
	if p.addDamage(d) {
		r.edits = append(r.edits, damageEdit(&d))
	}
}

func (r *replayer) cursors(g *wal.Group, e *wal.Entry, kind DamageKind) {
	d := &dec{b: e.Payload}
	for n := d.count(); n > 0 && d.err == nil; n-- {
		group, c := decodeCursor(d)
		if d.err == nil && r.s.part(c.Partition) != nil {
			r.s.applyCursor(group, c)
			r.sh.freshCursors[cursorKey{group, c.Partition}] = struct{}{}
		}
	}
	if d.err != nil {
		r.bad(g, e, kind, "cursors unreadable", nil)
	}
}

// settle decides where each partition goes on.
func (r *replayer) settle() {
	unclean := !r.clean
	if len(r.cut) > 0 {
		unclean, r.rebuild = true, true
	}
	known := map[PartitionID]int64{}
	if unclean {
		for _, m := range r.s.cursors {
			for id, c := range m {
				known[id] = max(known[id], c.Offset)
			}
		}
	}
	for _, p := range r.s.parts {
		if p == nil || p.shard != r.sh {
			continue
		}
		if n := len(p.segs); n > 0 {
			p.end = max(p.end, p.segs[n-1].last+1)
		}
		if n := len(p.damage); n > 0 {
			p.end = max(p.end, p.damage[n-1].To+1)
		}
		p.end = max(p.end, p.start)
		p.next = max(p.next, p.end)
		next := p.next
		if unclean {
			// Invariant: what a reader may have seen is never given again.
			next = max(next, r.cut[p]+1)
			// A cursor far beyond the end is a mistake of whoever set it.
			if k := known[p.id]; k <= next+2*reserveStep {
				next = max(next, k)
			}
			if p.reserved > 0 {
				next = max(next, p.reserved)
			}
		}
		if next > p.next {
			p.next = next
			reserved := p.reserved
			if reserved > 0 {
				reserved = next + reserveStep
			}
			r.rebuild = true
			r.edits = append(r.edits, partitionEdit(p.id, p.start, next, reserved))
			r.sh.jumps = append(r.sh.jumps, jump{p: p, floor: next, reserved: reserved})
		}
		p.trimBelowStart()
		p.trimEpochs()
		p.durable, p.assign = p.end, p.next
	}
}

// trimEpochs cuts the epoch history at the end: the manifest may know of records
// that a crash took away.
func (p *partition) trimEpochs() {
	for n := len(p.epochs); n > 0; n-- {
		r := &p.epochs[n-1]
		if r.Start < p.end || n == 1 && r.Start <= p.end {
			if n == len(p.epochs) {
				r.End = p.end
			}
			return
		}
		p.epochs = p.epochs[:n-1]
		p.newEpochs = min(p.newEpochs, n-1)
	}
}
