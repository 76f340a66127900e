package topiclog

import (
	"sync/atomic"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/wal"
)

// request is one append or cursor commit on its way through a writer.
type request struct {
	part    *partition
	kind    wal.Kind
	batches []byte
	note    []byte // encoded with its key
	noteKey string
	rawNote []byte
	records int64 // offsets that the batches take
	count   int   // batches, if they may go past the journal
	// head is the header of the only batch, if count is 1. The offset in it is the
	// writer's business. Those of AppendAll point to the caller's, until the last of
	// them was told how it went.
	head  *record.Header
	maxTs int64
	os    bool // acknowledge before the fsync
	stamp bool // give the records the time of the append
	// producers says that batches are of idempotent producers.
	producers bool
	// marker says that the batch is the end of a transaction, by a coordinator of
	// the epoch. freshEpoch is AppendRequest.FreshEpoch.
	marker           bool
	freshEpoch       bool
	coordinatorEpoch int32
	// done is told how it went or, if that is nil, those of AppendAll are.
	done  func(AppendResult, error)
	all   *requests
	index int32 // in all

	// cursors of one group, for KindCursor
	group       string
	cursors     []Cursor
	cursorParts []*partition // of the cursors

	// Set by the writer.
	base  int64
	start int64 // of the partition
	block *block
	off   uint32 // of the batches in the block
	// bodied says that the journal must take the batches themselves.
	bodied bool
	// repeated says that the batches are in the log, or earlier in the group,
	// already: the request only waits.
	repeated bool
}

// finish tells the caller how it went. The request is not used after it.
func (r *request) finish(res AppendResult, err error) {
	if r.done != nil {
		r.done(res, err)
		return
	}
	all := r.all
	all.done(int(r.index), res, err)
	all.leave(1)
}

// requests are those of one AppendAll, whose memory is used again.
type requests struct {
	s     *Store
	list  []request
	to    [][]*request // by shard
	done  func(int, AppendResult, error)
	ended func()
	left  atomic.Int64
}

// takeRequests returns memory for n requests, each of them zero.
func (s *Store) takeRequests(n int) *requests {
	all, ok := s.requests.Get().(*requests)
	if !ok {
		all = &requests{s: s, to: make([][]*request, len(s.shards))}
	}
	if cap(all.list) < n {
		all.list = make([]request, n)
	}
	all.list = all.list[:n]
	all.left.Store(1)
	return all
}

// leave says that so many of the requests, or who handed them in, have ended. The
// last one gives the memory back.
func (all *requests) leave(n int64) {
	if all.left.Add(-n) != 0 {
		return
	}
	ended := all.ended
	clear(all.list)
	for i := range all.to {
		clear(all.to[i])
		all.to[i] = all.to[i][:0]
	}
	all.done, all.ended = nil, nil
	if cap(all.list) <= maxPooledRequests {
		all.s.requests.Put(all)
	}
	if ended != nil {
		ended()
	}
}

// maxPooledRequests bounds the lists of requests whose memory is kept.
const maxPooledRequests = 1 << 14

func (r *request) size() int { return len(r.batches) + len(r.note) }
