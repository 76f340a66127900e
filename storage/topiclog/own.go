package topiclog

import (
	"errors"
	"sync/atomic"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/segment"
	"github.com/millrace/millrace/storage/wal"
)

// Partitions with much traffic get segments of their own. What comes for one of
// them in large pieces goes past the journal, straight into its own segment: the
// journal has only a reference to the place. So these bytes are written once and
// summed never again.
//
//	writer    lays the batches out as regions of own segments, writes these, writes
//	          the group with the references, syncs all files at once, publishes
//	flusher   seals the own segments of a generation of the cache and lets the
//	          manifest name them, together with the mixed segment
//	recovery  reads what references name into the cache, as if the journal had it
//
// Until a flush has ended, everything in an own segment is in the write cache,
// too: a flush that cannot use an own segment writes the batches to the mixed one.
const (
	// maxOwn bounds the promoted partitions of a shard, and with them the files
	// that one group syncs.
	maxOwn = 16
	// quietGenerations is how many generations of the cache in a row a partition
	// must have little traffic before it is demoted.
	quietGenerations = 3
	// maxDirectRequest bounds what goes past the journal in one piece, and
	// maxDirectGroup what does in one group, in bytes.
	maxDirectRequest = 2 << 20
	maxDirectGroup   = 4 << 20
	// maxGapBytes bounds the batches that the journal has between two regions of
	// an own segment, which are copied into it.
	maxGapBytes = 1 << 20
	// maxPlanned bounds the requests that are looked at ahead of a group.
	maxPlanned = 1024
)

// own is what a promoted partition has more than others.
type own struct {
	p *partition

	// The writer's alone.
	planned int // bytes of regions that the requests at hand would take
	regions []ownRegion
	// bodied is the number of the last group where the journal took batches of the
	// partition. None go past it behind them in that group: an own segment has no
	// holes, and what is not published yet cannot be copied into it.
	bodied uint64

	failed atomic.Bool // no region can be written to w any more

	// Guarded by the shard's mutex; the writer sets them.
	w   *segment.Writer // nil until the first region of a generation
	seg *segmentInfo
	// base and last are the published offsets in w that a flush may count on,
	// base is -1 if there are none; bytes is their size.
	base, last, bytes int64
	quiet             int   // generations in a row with little traffic
	taken             int64 // bytes of the generation that was flushed last
}

// ownRegion is a region of the group under way. It holds a reference of its block: the
// group may go on to another block while a flush lets go of everything else in this one.
type ownRegion struct {
	r     *segment.Region
	block *block
	off   int   // of the region in the block
	base  int64 // the first offset that is no copy, -1 if there is none
}

func (sh *shard) directBytes() int { return sh.s.opts.DirectBytes }

// roomOf is what a request takes in a region.
func (r *request) roomOf() int { return segment.ExtentRoom(r.count, len(r.batches)) }

// ownOf returns what the partition of a request has if it may go past the
// journal, else nil.
func (sh *shard) ownOf(r *request) *own {
	if r.kind != wal.KindBatch || r.os || r.bodied || r.count == 0 || len(r.batches) > maxDirectRequest {
		return nil
	}
	return r.part.own.Load()
}

// entrySize is what a request probably takes in the group.
func (sh *shard) entrySize(r *request) int {
	if o := sh.ownOf(r); o != nil && !o.failed.Load() && max(o.planned, r.roomOf()) >= sh.directBytes() {
		return len(r.note) + refBytes
	}
	return r.size()
}

// plan sums up what is at hand for each promoted partition: many small requests
// are worth a region, too.
func (sh *shard) plan(pending []*request) {
	for _, o := range sh.planned {
		o.planned = 0
	}
	sh.planned = sh.planned[:0]
	if sh.promotedCount.Load() == 0 {
		return
	}
	for _, r := range pending[:min(len(pending), maxPlanned)] {
		if o := sh.ownOf(r); o != nil {
			if o.planned == 0 {
				sh.planned = append(sh.planned, o)
			}
			o.planned += r.roomOf()
		}
	}
}

// regionFor returns the region that a request goes into, nil if it goes into the
// journal. full says that it must wait for the next group.
func (sh *shard) regionFor(r *request) (reg *ownRegion, full bool) {
	o := sh.ownOf(r)
	if o == nil || o.failed.Load() || o.bodied == sh.groupNumber {
		return nil, false
	}
	room := r.roomOf()
	if n := len(o.regions); n > 0 && o.regions[n-1].r.Fits(r.count, len(r.batches)) {
		return &o.regions[n-1], false
	}
	if len(o.regions) == 0 && max(o.planned, room) < sh.directBytes() {
		return nil, false
	}
	if sh.directUsed > 0 && sh.directUsed+room > maxDirectGroup {
		return nil, true
	}
	reg, err := sh.beginRegion(o, room, max(room, min(o.planned, maxDirectGroup-sh.directUsed)))
	if err != nil {
		// Nothing was written yet: the journal takes it.
		sh.s.opts.Logger.Warn("a partition's own segment cannot be used", "topic", r.part.topic.name, "partition", r.part.index, "error", err)
		return nil, false
	}
	return reg, false
}

// beginRegion starts a region with room for so many bytes, least and wanted. The
// first one of a group begins with what the journal got of the partition since the
// one before.
func (sh *shard) beginRegion(o *own, least, wanted int) (*ownRegion, error) {
	var gap []cached
	if len(o.regions) == 0 {
		var ok bool
		if gap, ok = sh.enterOwn(o); !ok {
			return nil, nil
		}
		if err := sh.openOwn(o); err != nil {
			o.failed.Store(true)
			return nil, err
		}
	}
	for i := range gap {
		room := segment.ExtentRoom(countBatches(gap[i].bytes()), int(gap[i].size))
		least, wanted = least+room, wanted+room
	}
	size := sh.regionMemory(segment.RegionBytes(least), segment.RegionBytes(wanted))
	r, err := o.w.BeginRegion(sh.ownCur.buf[sh.ownUsed : sh.ownUsed+size])
	if err != nil {
		o.failed.Store(true)
		return nil, err
	}
	sh.ownCur.retain()
	o.regions = append(o.regions, ownRegion{r: r, block: sh.ownCur, off: sh.ownUsed, base: -1})
	sh.ownUsed += size
	sh.directUsed += size
	if len(o.regions) == 1 {
		sh.groupOwns = append(sh.groupOwns, o)
	}
	reg := &o.regions[len(o.regions)-1]
	for i := range gap {
		c := &gap[i]
		copy(r.Reserve(countBatches(c.bytes()), int(c.size)), c.bytes())
		if _, err := r.Commit(o.w, int(c.size), c.timeMs); err != nil {
			o.failed.Store(true)
			return nil, err // cannot be: the batches were parsed before
		}
	}
	return reg, nil
}

// regionMemory makes ownCur a block with room for a region and returns the size
// that it can have. The end of a block is used if it is not too small.
func (sh *shard) regionMemory(least, wanted int) int {
	if sh.ownCur != nil {
		left := len(sh.ownCur.buf) - sh.ownUsed
		if left >= wanted || left >= max(least, sh.s.ownPool.size/8) {
			return min(left, wanted)
		}
		sh.ownCur.release()
	}
	size := max(least, min(wanted, sh.s.ownPool.size))
	sh.ownCur, sh.ownUsed = sh.s.ownPool.take(size), 0
	return size
}

func countBatches(b []byte) int {
	n := 0
	for ; len(b) > 0; n++ {
		h, err := record.ParseHeader(b)
		if err != nil {
			return n // cannot be: the batches were parsed before
		}
		b = b[h.Size():]
	}
	return n
}

// enterOwn marks the shard's own segments as being written, and returns the
// batches that only the journal has between what the own segment holds and what
// comes. It is false if the partition was demoted meanwhile or these are many.
func (sh *shard) enterOwn(o *own) (gap []cached, ok bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if o.p.own.Load() != o {
		return nil, false
	}
	if o.base >= 0 {
		i := o.p.findRecent(o.last + 1)
		gap = o.p.recent[i:len(o.p.recent):len(o.p.recent)]
		size := 0
		for k := range gap {
			size += int(gap[k].size)
		}
		if size > maxGapBytes {
			return nil, false
		}
	}
	sh.ownBusy = true
	return gap, true
}

// leaveOwn ends what enterOwn began; mu is held.
func (sh *shard) leaveOwn() {
	if sh.ownBusy {
		sh.ownBusy = false
		sh.space.Broadcast()
	}
}

// openOwn makes the file of the own segment if there is none.
func (sh *shard) openOwn(o *own) error {
	if o.w != nil {
		return nil
	}
	seg := &segmentInfo{id: sh.s.nextSegment.Add(1) - 1, kind: segment.Own, shard: sh.number}
	seg.path = sh.s.segmentPath(seg.id)
	w, err := segment.Create(sh.s.segFS, seg.path, segment.Options{Meta: segment.Meta{ID: seg.id, Kind: segment.Own,
		Partition: uint64(o.p.id), BaseOffset: o.p.assign, CreatedMs: sh.s.nowMs()}})
	if err != nil {
		return err
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	o.w, o.seg = w, seg
	return nil
}

// placeDirect lays a request out in a region and its reference in the group.
func (sh *shard) placeDirect(r *request, reg *ownRegion) error {
	o := r.part.own.Load()
	place := reg.r.Reserve(r.count, len(r.batches))
	at, err := sh.assign(r, place)
	if err != nil {
		return err
	}
	e, err := reg.r.Commit(o.w, len(place), sh.groupMs)
	if err != nil {
		return err
	}
	var b [refBytes]byte
	ref := reference{segment: o.seg.id, position: e.Position, length: e.Length, batches: e.Batches, checksum: e.Checksum}
	ref.encode(b[:])
	if _, err := sh.builder.Add(wal.EntrySpec{Kind: wal.KindReference, Partition: uint32(r.part.id), Base: r.base, Last: at - 1, Note: r.note, Payload: b[:]}); err != nil {
		return err // cannot be: add saw that it fits
	}
	o.planned = max(0, o.planned-r.roomOf())
	r.block, r.off = reg.block, uint32(reg.off+reg.r.Payload())
	if reg.base < 0 {
		reg.base = r.base
	}
	r.part.assign = at
	return nil
}

// writeOwn writes the regions of the group. On a full disk the group fails and
// the shard goes on without these files.
func (sh *shard) writeOwn() error {
	err := sh.eachOwn(func(o *own) error {
		err := o.w.WriteRegions()
		if err != nil {
			o.failed.Store(true)
		}
		return err
	})
	if err == nil {
		return nil
	}
	if isFull(err) {
		sh.s.diskFull(err)
		return &DiskFullError{Dir: sh.s.opts.Dir, Err: err}
	}
	sh.fence(err)
	return sh.fencedErr()
}

// syncGroup makes the group durable: its references and what they name, all files
// at once. The next group is not written before all of it is, and says so by its
// mark; a crash before that leaves references whose bytes are not there, like
// entries with torn payloads.
func (sh *shard) syncGroup() error {
	if len(sh.groupOwns) == 0 {
		return sh.journal.Sync()
	}
	done := make(chan error, 1)
	go func() { done <- sh.eachOwn(func(o *own) error { return o.w.Sync() }) }()
	err := sh.journal.Sync()
	return errors.Join(err, <-done)
}

// eachOwn calls f for the own segments of the group, all at once.
func (sh *shard) eachOwn(f func(*own) error) error {
	if len(sh.groupOwns) == 1 {
		return f(sh.groupOwns[0])
	}
	errs := make(chan error, len(sh.groupOwns))
	for _, o := range sh.groupOwns {
		go func() { errs <- f(o) }()
	}
	var err error
	for range sh.groupOwns {
		err = errors.Join(err, <-errs)
	}
	return err
}

// dropRegions forgets the regions of a group that failed.
func (sh *shard) dropRegions() {
	for _, o := range sh.groupOwns {
		o.releaseRegions()
		o.w.DropRegions()
	}
	sh.groupOwns, sh.directUsed = sh.groupOwns[:0], 0
	sh.mu.Lock()
	sh.leaveOwn()
	sh.mu.Unlock()
}

// releaseRegions forgets the regions of a group that has ended.
func (o *own) releaseRegions() {
	for i := range o.regions {
		o.regions[i].block.release()
	}
	clear(o.regions) // lets the blocks go
	o.regions = o.regions[:0]
}

// publishRegions makes the regions of the group parts of their segments; mu is
// held.
func (sh *shard) publishRegions(seq uint64) {
	for _, o := range sh.groupOwns {
		if err := o.w.TakeRegions(); err != nil {
			// The cache has the batches all the same, and a flush writes them.
			sh.s.opts.Logger.Error("a partition's own segment is out of order", "file", o.seg.path, "error", err)
			o.failed.Store(true)
		}
		for i := range o.regions {
			reg := &o.regions[i]
			size := int64(reg.r.Room())
			sh.ownBlocks = useBlock(sh.ownBlocks, reg.block, seq, size)
			sh.ownBytes += size
			if o.base < 0 {
				o.base = reg.base
			}
			if last, ok := reg.r.Last(); ok && o.base >= 0 {
				o.last = last
				o.bytes += reg.r.Bytes()
			}
		}
		o.releaseRegions()
	}
	sh.groupOwns, sh.directUsed = sh.groupOwns[:0], 0
	sh.leaveOwn()
}
