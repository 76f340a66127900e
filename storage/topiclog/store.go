package topiclog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/storage/manifest"
	"github.com/millrace/millrace/storage/segment"
	"github.com/millrace/millrace/storage/vfs"
)

// Names in the data directory.
const (
	lockName     = "LOCK"
	manifestName = "manifest"
	journalName  = "journal"
	segmentsName = "segments"
	reserveName  = "RESERVE"
)

type subKey struct {
	group string
	topic UUID
}

type holdKey struct {
	name string
	part PartitionID
}

// Store is an open log store. Make one with Open.
type Store struct {
	opts Options
	fs   vfs.FS
	// segFS is fs for segments: what they hold is in the write cache while it
	// is hot, and must not fill the page cache when it is not.
	segFS vfs.FS
	lock  io.Closer
	meta  *committer
	pool  blockPool
	// ownPool has the blocks of own segments.
	ownPool blockPool
	bufs    bufferPool
	segc    *segment.Cache
	cold    chan struct{} // a place in it is a read of a segment
	ahead   *aheadCache
	// requests has the memory of AppendAll.
	requests sync.Pool

	// Set before any goroutine starts.
	id        UUID
	createdMs int64
	shards    []*shard
	recovery  RecoveryReport

	nextSegment atomic.Uint64
	full        atomic.Bool // the disk was full
	closed      atomic.Bool
	holdMax     int64

	mu         sync.RWMutex
	topics     map[string]*topic
	topicsByID map[UUID]*topic
	parts      []*partition // by id, nil when deleted
	nextPart   PartitionID
	partCount  int
	reserved   map[string]bool // names of topics being created
	subs       map[subKey]Subscription
	holds      map[holdKey]Hold

	producerIDs struct {
		mu        sync.Mutex
		next, end int64        // the ids from next to end-1 are free
		durable   atomic.Int64 // what the manifest says of end
	}

	txns transactions
	// groupLocks, by a hash of the group, are held for reading while positions are
	// committed, and for writing while a transaction decides them.
	groupLocks [groupStripes]sync.RWMutex

	cursorMu sync.Mutex
	cursors  map[string]map[PartitionID]Cursor

	reserveMu sync.Mutex
	spaceLeft chan struct{} // closed and replaced when a full disk has space again

	retention retention
	stop      chan struct{}
	workers   sync.WaitGroup
}

// Open opens the store in a data directory, made if missing, and brings back
// everything that was acknowledged. Only one process can have a directory open:
// *OwnedError names the other. What was damaged is in Status().Recovery; the
// store opens all the same unless something would be lost whose owner is not
// known (ErrDamaged).
func Open(o Options) (*Store, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	s := newStore(o)
	if err := vfs.MkdirAllSync(s.fs, o.Dir); err != nil {
		return nil, fmt.Errorf("making data directory: %w", err)
	}
	lock, err := s.fs.Lock(s.path(lockName))
	if err != nil {
		var locked *vfs.LockedError
		if errors.As(err, &locked) {
			return nil, &OwnedError{Dir: o.Dir, PID: locked.PID, Err: err}
		}
		return nil, fmt.Errorf("locking data directory: %w", err)
	}
	s.lock = lock
	if err := s.open(); err != nil {
		s.abandon()
		return nil, fmt.Errorf("opening log store in %s: %w", o.Dir, err)
	}
	return s, nil
}

func newStore(o Options) *Store {
	return &Store{
		opts: o, fs: o.FS, segFS: vfs.NewUncached(o.FS),
		pool:    blockPool{size: o.blockBytes, most: int(o.CacheBytes) / o.blockBytes, poison: o.PoisonReleased},
		ownPool: blockPool{size: o.ownBlockBytes, most: int(o.CacheBytes) / o.ownBlockBytes, poison: o.PoisonReleased},
		bufs:    bufferPool{poison: o.PoisonReleased},
		cold:    make(chan struct{}, o.ColdReads),
		ahead:   newAheadCache(o.ReadAheadBytes),
		segc:    segment.NewCache(vfs.NewUncached(o.FS), segment.CacheOptions{MaxOpenFiles: o.MaxOpenFiles, MaxIndexBytes: o.MaxIndexBytes}),
		topics:  map[string]*topic{}, topicsByID: map[UUID]*topic{}, reserved: map[string]bool{},
		subs: map[subKey]Subscription{}, holds: map[holdKey]Hold{},
		cursors: map[string]map[PartitionID]Cursor{},
		txns:    transactions{byID: map[string]*transaction{}},
		stop:    make(chan struct{}), spaceLeft: make(chan struct{}),
	}
}

func (s *Store) open() error {
	if err := s.openManifest(); err != nil {
		return err
	}
	for _, dir := range []string{journalName, segmentsName} {
		if err := vfs.MkdirAllSync(s.fs, s.path(dir)); err != nil {
			return err
		}
	}
	s.makeReserve()
	if s.holdMax = s.opts.HoldMaxBytes; s.holdMax == 0 {
		if free, err := s.fs.FreeSpace(s.opts.Dir); err == nil {
			s.holdMax = free / 2
		}
	}
	// Before anything is flushed: a segment's id must never have been used.
	orphans := s.findOrphans()
	if err := s.recover(); err != nil {
		return err
	}
	// The journal may have named some; now segments have what it named.
	s.removeOrphans(orphans)
	// Topics whose last reader left just before a crash.
	for _, t := range s.sortedTopics() {
		if err := s.finishClosing(context.Background(), t.id); err != nil && !errors.Is(err, ErrDiskFull) {
			return err
		}
	}
	for _, sh := range s.shards {
		s.workers.Add(2)
		go sh.runWriter()
		go sh.runFlusher()
	}
	s.finishTransactions()
	s.finishEndless()
	if s.opts.TransactionInterval > 0 {
		s.workers.Add(1)
		go s.runTransactions()
	}
	if s.opts.RetentionInterval > 0 {
		s.workers.Add(1)
		go s.runRetention()
	}
	s.workers.Add(1)
	go s.runSpaceWatch()
	return nil
}

// openManifest loads the metadata and starts the committer.
func (s *Store) openManifest() error {
	used, err := vfs.Exists(s.fs, s.path(journalName))
	if err != nil {
		return err
	}
	l := &loader{s: s, segments: map[uint64]*segmentInfo{}}
	// A store that has a journal had a manifest: an empty one must not take
	// its place.
	open := func(apply func(uint16, []byte) error) (*manifest.Log, manifest.Recovery, error) {
		mo := s.opts.manifest
		mo.MustExist = used
		return manifest.Open(s.fs, s.path(manifestName), mo, apply)
	}
	log, rec, err := open(l.apply)
	if err != nil {
		return err
	}
	used = true
	s.meta = &committer{s: s, log: log, open: open, entries: rec.Entries, done: make(chan struct{})}
	s.meta.wake.L = &s.meta.mu
	go s.meta.run()
	if rec.HealedFrames > 0 || rec.CurrentRebuilt {
		// An interrupted write can look like this, too.
		s.recovery.Damage = append(s.recovery.Damage, Damage{Kind: DamageTornOrRotten, File: s.fs.Join(s.path(manifestName), rec.File), To: -1,
			Detail: fmt.Sprintf("nothing lost: %d frames had one damaged copy, CURRENT rebuilt: %v", rec.HealedFrames, rec.CurrentRebuilt)})
	}
	if l.found {
		return l.finish()
	}
	if rec.Entries > 0 {
		return fmt.Errorf("%w: the manifest does not say whose it is", ErrDamaged)
	}
	if _, err := rand.Read(s.id[:]); err != nil {
		return fmt.Errorf("making the store's id: %w", err)
	}
	s.createdMs = s.nowMs()
	s.makeShards(s.opts.Shards)
	for _, sh := range s.shards {
		sh.clean = true
	}
	return s.meta.commit(nil, storeEdit(s.id, len(s.shards), s.createdMs))
}

// finish drops what the manifest says is gone.
func (l *loader) finish() error {
	for _, p := range l.s.parts {
		if p == nil {
			continue
		}
		kept := p.segs[:0]
		for _, r := range p.segs {
			if l.segments[r.seg.id] == r.seg {
				kept = append(kept, r)
			} else {
				p.segBytes -= r.bytes
			}
		}
		p.segs = kept
	}
	for _, seg := range l.segments {
		l.s.shards[seg.shard].segments[seg.id] = seg
	}
	return nil
}

func (s *Store) makeShards(n int) {
	if len(s.shards) > 0 {
		return
	}
	for i := range n {
		s.shards = append(s.shards, newShard(s, i))
	}
}

func (s *Store) path(name string) string { return s.fs.Join(s.opts.Dir, name) }

func (s *Store) segmentPath(id uint64) string {
	return s.fs.Join(s.opts.Dir, segmentsName, fmt.Sprintf("%010d.mrs", id))
}

// findOrphans lists the segment files that no manifest names: flushes that a crash
// cut short, and own segments that were not sealed.
func (s *Store) findOrphans() (paths []string) {
	known := map[string]bool{}
	for _, sh := range s.shards {
		for _, seg := range sh.segments {
			known[s.fs.Base(seg.path)] = true
		}
	}
	names, err := s.fs.List(s.path(segmentsName))
	if err != nil {
		s.opts.Logger.Warn("listing segments failed", "error", err)
		return nil
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".mrs") || known[name] {
			continue
		}
		var id uint64
		if _, err := fmt.Sscanf(name, "%d.mrs", &id); err == nil {
			s.nextSegment.Store(max(s.nextSegment.Load(), id+1))
		}
		paths = append(paths, s.fs.Join(s.path(segmentsName), name))
	}
	return paths
}

func (s *Store) removeOrphans(paths []string) {
	for _, path := range paths {
		if err := s.fs.Remove(path); err != nil {
			s.opts.Logger.Warn("removing an unfinished segment failed", "file", path, "error", err)
		}
	}
}

// ID names the store; never re-used.
func (s *Store) ID() UUID { return s.id }

// Dir is the data directory.
func (s *Store) Dir() string { return s.opts.Dir }

func (s *Store) nowMs() int64 { return s.opts.Clock.Wall().UnixMilli() }

// Close makes everything durable, marks the store clean and lets go of the
// directory. Calls under way fail with ErrClosed; leases stay valid.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	close(s.stop)
	s.ahead.close()
	for _, sh := range s.shards {
		sh.stopWriter()
	}
	s.workers.Wait()
	var first error
	var edits []manifest.Edit
	closed := map[*shard]uint64{}
	for _, sh := range s.shards {
		seq, err := sh.finish()
		if err != nil {
			first = errors.Join(first, err)
			continue
		}
		edits = append(edits, shardClosedEdit(sh.number, seq))
		closed[sh] = seq
	}
	edits = append(edits, s.holdEdits()...)
	err := s.meta.commit(func() {
		for sh, seq := range closed {
			sh.mu.Lock()
			sh.clean, sh.cleanSeq = true, seq
			sh.mu.Unlock()
		}
	}, edits...)
	first = errors.Join(first, err)
	s.wakeAll()
	if err := s.abandon(); err != nil {
		first = errors.Join(first, err)
	}
	if first != nil {
		return fmt.Errorf("closing log store in %s: %w", s.opts.Dir, first)
	}
	return nil
}

// abandon closes the files without finishing anything.
func (s *Store) abandon() error {
	var first error
	s.ahead.close()
	if s.meta != nil {
		first = s.meta.close()
	}
	for _, sh := range s.shards {
		if sh.journal != nil {
			first = errors.Join(first, sh.journal.Close())
		}
		sh.closeOwn()
	}
	s.segc.Close()
	return errors.Join(first, s.lock.Close())
}

// wakeAll ends every wait for records.
func (s *Store) wakeAll() {
	for _, sh := range s.shards {
		sh.wakeWatchers()
	}
}

// part returns a live partition or nil; it takes no lock.
func (s *Store) part(id PartitionID) *partition {
	if int(id) >= len(s.parts) {
		return nil
	}
	return s.parts[id]
}

// partition returns a live partition.
func (s *Store) partition(id PartitionID) (*partition, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	s.mu.RLock()
	p := s.part(id)
	s.mu.RUnlock()
	if p == nil {
		return nil, fmt.Errorf("%w: %d", ErrPartitionNotFound, id)
	}
	return p, nil
}

// setPart and removeTopic need Store.mu for writing.
func (s *Store) setPart(p *partition) {
	for int(p.id) >= len(s.parts) {
		s.parts = append(s.parts, nil)
	}
	s.parts[p.id] = p
	s.partCount++
	s.nextPart = max(s.nextPart, p.id+1)
}

func (s *Store) removeTopic(t *topic) {
	delete(s.topicsByID, t.id)
	if s.topics[t.name] == t {
		delete(s.topics, t.name)
	}
	ids := map[PartitionID]bool{}
	for _, p := range t.parts {
		ids[p.id] = true
		p.dead.Store(true)
		s.parts[p.id] = nil
		s.partCount--
	}
	for k := range s.subs {
		if k.topic == t.id {
			delete(s.subs, k)
		}
	}
	for k := range s.holds {
		if ids[k.part] {
			delete(s.holds, k)
		}
	}
	s.cursorMu.Lock()
	defer s.cursorMu.Unlock()
	for g, m := range s.cursors {
		for id := range ids {
			delete(m, id)
		}
		if len(m) == 0 {
			delete(s.cursors, g)
		}
	}
}

func (s *Store) sortedTopics() []*topic {
	return slices.SortedFunc(maps.Values(s.topics), func(a, b *topic) int { return strings.Compare(a.name, b.name) })
}

// Status describes the store.
func (s *Store) Status() Status {
	st := Status{Recovery: s.recovery, RetentionPaused: s.retention.pausedFor()}
	s.mu.RLock()
	st.Topics, st.Partitions = len(s.topics), s.partCount
	s.mu.RUnlock()
	for _, sh := range s.shards {
		ss, segs, bytes := sh.status()
		ss.Full = s.full.Load()
		st.Shards = append(st.Shards, ss)
		st.Segments += segs
		st.SegmentBytes += bytes
	}
	return st
}
