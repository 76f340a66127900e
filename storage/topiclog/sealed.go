package topiclog

import (
	"errors"
	"slices"

	"github.com/millrace/millrace/storage/segment"
)

// promote decides after a flush which partitions have segments of their own: mu
// is held. Hysteresis: it takes much to be promoted and a while with little to be
// demoted.
func (sh *shard) promote(parts []flushPart) {
	if sh.directBytes() < 0 {
		return
	}
	up, down := sh.s.opts.ownLimits(len(sh.s.shards))
	for i := range parts {
		p, bytes := parts[i].p, parts[i].bytes()
		if o := p.own.Load(); o != nil {
			o.taken = bytes
		} else if bytes >= up && len(sh.promoted) < maxOwn && !p.dead.Load() && p.topic.settings.Durability != OS {
			o := &own{p: p, base: -1, taken: bytes}
			p.own.Store(o)
			sh.promoted = append(sh.promoted, o)
		}
	}
	sh.promoted = slices.DeleteFunc(sh.promoted, func(o *own) bool {
		o.quiet++
		if o.taken >= down {
			o.quiet = 0
		}
		o.taken = 0
		// A group under way may have asked for it already, and be about to make the file.
		if o.w != nil || sh.ownBusy || o.quiet < quietGenerations && !o.p.dead.Load() {
			return false
		}
		o.p.own.Store(nil)
		return true
	})
	sh.promotedCount.Store(int64(len(sh.promoted)))
}

// sealed is the part of an own segment in a flush.
type sealed struct {
	w   *segment.Writer
	seg *segmentInfo
	ref segPart
}

// takeOwn takes the own segments of the generation away from the writer and gives
// them to their parts; mu is held and the writer is not writing them, unless it
// waits for this very flush. It returns the files that are not needed.
func (sh *shard) takeOwn(parts []flushPart) []sealed {
	var useless []sealed
	for _, o := range sh.promoted {
		if o.w == nil {
			o.failed.Store(false)
			continue
		}
		if len(o.regions) > 0 {
			// The file is needed for the group under way; what it has so far goes
			// to the mixed segment.
			o.base, o.bytes = -1, 0
			continue
		}
		t := sealed{w: o.w, seg: o.seg, ref: segPart{id: o.p.id, base: o.base, last: o.last, bytes: o.bytes}}
		i, found := slices.BinarySearchFunc(parts, o.p.id, func(f flushPart, id PartitionID) int { return int(int64(f.p.id) - int64(id)) })
		if found && !o.failed.Load() && o.base >= 0 && parts[i].split(&t) {
			parts[i].own = &t
		} else {
			useless = append(useless, t)
		}
		o.w, o.seg, o.base, o.last, o.bytes = nil, nil, -1, 0, 0
		o.failed.Store(false)
	}
	return useless
}

// split leaves only those batches of a part for the mixed segment that lie before
// the own segment; those behind it go there, too. It is false if the own segment
// has not exactly what the cache has within its offsets: because nothing or only
// some of it is kept any more. All of it goes to the mixed segment then.
func (f *flushPart) split(t *sealed) bool {
	from, to := 0, len(f.batches)
	for from < to && f.batches[from].base < t.ref.base {
		from++
	}
	behind, size := from, int64(0)
	for behind < to && f.batches[behind].base <= t.ref.last {
		size += int64(f.batches[behind].size)
		behind++
	}
	if size != t.ref.bytes {
		return false
	}
	f.batches, f.behind = f.batches[:from:from], f.batches[behind:]
	return true
}

// seal finishes an own segment: with the batches behind it, durable.
func (f *flushPart) seal() error {
	t := f.own
	behind := flushPart{p: f.p, batches: f.behind}
	if len(f.behind) > 0 {
		if _, err := behind.writeTo(t.w, nil); err != nil {
			return err
		}
		t.ref.last, t.ref.bytes = behind.seg.last, t.ref.bytes+behind.seg.bytes
	}
	info, err := t.w.Seal()
	if err != nil {
		return err
	}
	t.seg.minAppendMs, t.seg.maxAppendMs, t.seg.sizeBytes = info.MinAppendMs, info.MaxAppendMs, info.Size
	return nil
}

// sealAll finishes the own segments of a flush, all at once.
func sealAll(parts []flushPart) error {
	errs := make(chan error, len(parts))
	n := 0
	for i := range parts {
		if parts[i].own != nil {
			n++
			go func() { errs <- parts[i].seal() }()
		}
	}
	var err error
	for range n {
		err = errors.Join(err, <-errs)
	}
	return err
}

// discard closes own segments and has their files removed when a flush has made
// the references to them useless.
func (sh *shard) discard(useless []sealed) {
	for i := range useless {
		_ = useless[i].w.Close() // nobody reads it
		sh.discarded = append(sh.discarded, useless[i].seg.path)
	}
}

// closeSealed ends a flush: it closes the own segments and removes the files that
// nothing needs any more. If the flush failed, the journal still names what is in
// them, and the next flush writes it elsewhere.
func (sh *shard) closeSealed(parts []flushPart, done bool) {
	for i := range parts {
		if t := parts[i].own; t != nil && !done {
			sh.discard([]sealed{*t})
		} else if t != nil {
			_ = t.w.Close() // it is durable
		}
	}
	if !done {
		return
	}
	for _, path := range sh.discarded {
		if err := sh.s.fs.Remove(path); err != nil {
			sh.s.opts.Logger.Warn("removing an unfinished segment failed", "file", path, "error", err)
		}
	}
	sh.discarded = nil
}

// closeOwn closes the files that are not sealed; the journal names what of them
// counts.
func (sh *shard) closeOwn() {
	for _, o := range sh.promoted {
		if o.w != nil {
			_ = o.w.Close()
		}
	}
}
