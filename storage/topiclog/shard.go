package topiclog

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/storage/manifest"
	"github.com/millrace/millrace/storage/wal"
)

// maxQueueBytes bounds what waits for one shard's writer.
const maxQueueBytes = 32 << 20

// blockUse is a block that the cache holds a reference to.
type blockUse struct {
	b       *block
	lastSeq uint64
	bytes   int64 // of the groups in it
}

// useBlock notes that a group has bytes in a block.
func useBlock(uses []blockUse, b *block, seq uint64, size int64) []blockUse {
	if n := len(uses); n > 0 && uses[n-1].b == b {
		uses[n-1].lastSeq = seq
		uses[n-1].bytes += size
		return uses
	}
	b.retain()
	return append(uses, blockUse{b: b, lastSeq: seq, bytes: size})
}

// dropBlocks lets go of the blocks of groups up to one, and returns the others
// and their size.
func dropBlocks(uses []blockUse, through uint64) (left []blockUse, size int64) {
	n := 0
	for n < len(uses) && uses[n].lastSeq <= through {
		uses[n].b.release()
		n++
	}
	left = slices.Clone(uses[n:])
	for _, u := range left {
		size += u.bytes
	}
	return left, size
}

type cursorKey struct {
	group string
	part  PartitionID
}

// shard owns the I/O of its partitions.
type shard struct {
	s      *Store
	number int

	journal *wal.Journal // Write and Sync: the writer only

	// qmu guards the queue between callers and the writer.
	qmu        sync.Mutex
	room       sync.Cond // queueBytes fell
	queue      []*request
	queueBytes int
	stopping   bool
	wake       chan struct{} // something is queued, or stopping

	// The writer's own.
	builder wal.Builder
	cur     *block // where the next group is laid out, with its own reference
	curUsed int
	group   []*request
	groupMs int64 // when the group was begun
	// groupNumber counts the groups that were begun, from 1.
	groupNumber uint64
	signals     []*Watcher
	// The block where the next region of an own segment is laid out, as cur; the
	// own segments with requests at hand, and those with regions in the group;
	// bytes of these regions.
	ownCur     *block
	ownUsed    int
	planned    []*own
	groupOwns  []*own
	directUsed int
	// staged is what the group does to producers, but for the first batches of
	// partitions; staging numbers the groups and what is staged anew, from 1.
	staged  map[stagedKey]producerState
	staging uint64
	bounded time.Time // when producers were too many and none was idle
	marked  bool      // the last group is known to be durable by a later one
	osDirty time.Time

	// mu guards the state of the shard's partitions and what follows.
	mu           sync.Mutex
	space        sync.Cond // the cache shrank, the shard was fenced, or there is disk space
	journalEpoch uint32
	leaderEpoch  int32
	clean        bool
	cleanSeq     uint64
	flushed      uint64 // the journal up to here is in segments
	published    uint64 // the last group that readers can see
	segments     map[uint64]*segmentInfo
	dirty        []*partition // with something in the cache
	unsynced     []*partition // of os topics, with something not durable
	blocks       []blockUse   // oldest first
	cacheBytes   int64
	// What own segments have of the cache.
	ownBlocks     []blockUse
	ownBytes      int64
	promoted      []*own
	promotedCount atomic.Int64 // of promoted
	ownBusy       bool         // the writer has regions under way
	writerWaits   bool         // the writer waits for a flush
	discarded     []string     // own segments that nothing needs after the next flush; the flusher's
	oldestMs      int64        // append time of the oldest cached batch
	fenced        error
	freshCursors  map[cursorKey]struct{} // not in the manifest yet; guarded by Store.cursorMu
	freshNotes    []*partition
	noteBytes     int // of notes that are not in the manifest yet
	// freshProducers have producers or aborted transactions that are not in the
	// manifest yet; producers is how many producers all partitions know.
	freshProducers []*partition
	producers      int
	states         []producerState // spare ones
	flushWake      chan struct{}
	segmentBuf     []byte      // for the writers of mixed segments, one after another; the flusher's
	flushing       flushMemory // the flusher's
	writerDone     chan struct{}
	flushErr       error // of the last flush
	flushGen       int   // counts finished flushes
	// recoveryEdits go with the flush that ends a recovery, and jumps are what
	// they say of partitions. Until then the partitions do not know: a rewrite
	// of the manifest would make the jumps durable while the journal still has
	// records that lie before them.
	recoveryEdits []manifest.Edit
	jumps         []jump
}

// jump is a partition that leaves offsets out after an unclean end.
type jump struct {
	p               *partition
	floor, reserved int64
}

// settleJumps applies the jumps, which are durable now; mu is held.
func (sh *shard) settleJumps() {
	for _, j := range sh.jumps {
		j.p.floor, j.p.reserved = max(j.p.floor, j.floor), max(j.p.reserved, j.reserved)
	}
	sh.jumps = nil
}

func newShard(s *Store, number int) *shard {
	sh := &shard{s: s, number: number, segments: map[uint64]*segmentInfo{}, freshCursors: map[cursorKey]struct{}{},
		staged: map[stagedKey]producerState{}, staging: 1, wake: make(chan struct{}, 1), flushWake: make(chan struct{}, 1), writerDone: make(chan struct{}), marked: true}
	sh.room.L, sh.space.L = &sh.qmu, &sh.mu
	return sh
}

// enqueue hands a request to the writer. It blocks while too much is waiting.
func (sh *shard) enqueue(r *request) error {
	_, err := sh.enqueueAll([]*request{r})
	return err
}

// enqueueAll is enqueue for many, and returns how many went in: all of them unless
// the shard stops. The writer finds them together, so they share groups.
func (sh *shard) enqueueAll(rs []*request) (int, error) {
	sh.qmu.Lock()
	defer sh.qmu.Unlock()
	for i, r := range rs {
		for sh.queueBytes > maxQueueBytes && !sh.stopping {
			sh.room.Wait()
		}
		if sh.stopping {
			return i, ErrClosed
		}
		sh.queue = append(sh.queue, r)
		sh.queueBytes += r.size()
		if len(sh.queue) == 1 {
			select {
			case sh.wake <- struct{}{}:
			default:
			}
		}
	}
	return len(rs), nil
}

// drain takes everything that is queued.
func (sh *shard) drain(into []*request) []*request {
	sh.qmu.Lock()
	defer sh.qmu.Unlock()
	if len(sh.queue) > 0 {
		into = append(into, sh.queue...)
		clear(sh.queue)
		sh.queue = sh.queue[:0]
		sh.queueBytes = 0
		sh.room.Broadcast()
	}
	return into
}

func (sh *shard) isStopping() bool {
	sh.qmu.Lock()
	defer sh.qmu.Unlock()
	return sh.stopping
}

func (sh *shard) stopWriter() {
	sh.qmu.Lock()
	sh.stopping = true
	sh.room.Broadcast()
	sh.qmu.Unlock()
	select {
	case sh.wake <- struct{}{}:
	default:
	}
	sh.mu.Lock()
	sh.space.Broadcast()
	sh.mu.Unlock()
}

// fence stops the shard for good: what the journal holds is unknown now.
func (sh *shard) fence(err error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.fenced == nil {
		sh.fenced = &FencedError{Shard: sh.number, Err: err}
		sh.s.opts.Logger.Error("log shard fenced", "shard", sh.number, "error", err)
	}
	sh.space.Broadcast()
}

func (sh *shard) fencedErr() error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.fenced
}

// syncOS makes durable what os topics wrote.
func (sh *shard) syncOS() {
	sh.osDirty = time.Time{}
	if sh.fencedErr() != nil {
		return
	}
	if err := sh.journal.Sync(); err != nil {
		sh.fence(err)
		return
	}
	sh.mu.Lock()
	sh.settleUnsynced()
	sh.mu.Unlock()
	sh.notify()
}

// settleUnsynced says that everything published is durable; mu is held.
func (sh *shard) settleUnsynced() {
	for i, p := range sh.unsynced {
		p.durable, p.lagging = p.end, false
		sh.signal(p)
		sh.unsynced[i] = nil
	}
	sh.unsynced = sh.unsynced[:0]
}

// bury lets go of what a deleted partition holds; Store.mu is held, too.
func (sh *shard) bury(p *partition) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, r := range p.segs {
		r.seg.refs--
	}
	if p.producers != nil {
		sh.producers -= len(p.producers.states)
	}
	p.segs, p.recent, p.notes, p.segBytes, p.producers = nil, nil, nil, 0, nil
}

// finish ends a stopped shard: everything durable, and a mark that says so. It
// returns the last sequence.
func (sh *shard) finish() (uint64, error) {
	if err := sh.fencedErr(); err != nil {
		return 0, err
	}
	if err := sh.journal.Sync(); err != nil {
		return 0, err
	}
	sh.mu.Lock()
	sh.settleUnsynced()
	sh.mu.Unlock()
	if !sh.marked {
		sh.mark(true)
	}
	return sh.journal.Next() - 1, sh.fencedErr()
}

func (sh *shard) status() (ShardState, int, int64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	st := ShardState{Shard: sh.number, Fenced: sh.fenced, CacheBytes: sh.cacheBytes + sh.ownBytes, Promoted: len(sh.promoted)}
	if sh.journal != nil {
		st.JournalBytes, st.UnflushedBytes = sh.journal.Bytes()
	}
	var bytes int64
	for _, seg := range sh.segments {
		bytes += seg.sizeBytes
	}
	return st, len(sh.segments), bytes
}

// stamped is the time that the records were given, or -1. It is not known of
// repeated ones.
func (r *request) stamped() int64 {
	if !r.stamp || r.repeated {
		return -1
	}
	return r.maxTs
}
