package kafka

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/runtime/connector"
)

// fetcher brings record batches of a reader's partitions. One goroutine a
// broker fetches from it, one finds out which broker leads what. A broker is
// asked again only when the reader has taken everything of its last answer, so
// that at most one answer a broker waits in memory, and one is being decoded.
type fetcher struct {
	s      *source
	conn   *conn
	notify func()
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	fetch  kmsg.FetchRequest // without topics
	part   int32             // PartitionMaxBytes
	retry  time.Duration
	stir   chan struct{} // a feed has no leader

	mu      sync.Mutex
	changed sync.Cond // of what a broker's goroutine waits for
	closed  bool
	feeds   []*feed
	brokers map[int32]bool // that have a goroutine
	queue   []*chunk
	err     error // ends the reader, once queue is empty
}

// feed is a partition being fetched. Its fields belong to fetcher.mu.
type feed struct {
	part        connector.Partition
	next, end   int64
	epoch       int32 // leader epoch of the last batch
	leader      int32 // -1: unknown
	leaderEpoch int32
	waiting     bool // a chunk of it is in the queue
	stopped     bool // nothing more is to be fetched
	answered    bool // logEnd is known
	logEnd      int64
	tries       int       // failures since the last answer
	since       time.Time // of the first of them
	damaged     int       // failures of a checksum at next
}

func (d *feed) position() connector.Position {
	return connector.Position{Partition: d.part, LeaderEpoch: d.epoch, Offset: d.next}
}

// chunk is whole record batches of one feed with verified checksums, or the
// reason why there are no more.
type chunk struct {
	feed    *feed
	data    []byte
	aborted []kmsg.FetchResponseTopicPartitionAbortedTransaction
	next    int64
	err     error
}

const (
	noLeader = int32(-1)
	minPause = 50 * time.Millisecond
	maxPause = 2 * time.Second
)

func newFetcher(s *source, c *conn, notify func()) *fetcher {
	v := s.table.Options
	f := &fetcher{s: s, conn: c, notify: notify, brokers: map[int32]bool{}, stir: make(chan struct{}, 1),
		part: int32(v.Int("properties.max.partition.fetch.bytes")), retry: millis(v, "properties.default.api.timeout.ms")}
	f.changed.L = &f.mu
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.fetch = kmsg.NewFetchRequest()
	f.fetch.MaxWaitMillis = int32(v.Int("properties.fetch.max.wait.ms"))
	f.fetch.MinBytes = int32(v.Int("properties.fetch.min.bytes"))
	f.fetch.MaxBytes = int32(v.Int("properties.fetch.max.bytes"))
	f.fetch.IsolationLevel = 1
	return f
}

// add is called before start.
func (f *fetcher) add(x connector.Split) *feed {
	d := &feed{part: x.From.Partition, next: x.From.Offset, end: x.End, epoch: x.From.LeaderEpoch, leader: noLeader}
	d.stopped = d.next >= d.end
	f.feeds = append(f.feeds, d)
	return d
}

func (f *fetcher) start() {
	f.wg.Go(f.lead)
}

func (f *fetcher) close() {
	f.mu.Lock()
	f.closed = true
	f.changed.Broadcast()
	f.mu.Unlock()
	f.cancel()
	f.wg.Wait()
	f.conn.close()
}

// take gives the chunk that has waited longest, or nil, and then the error that
// ended fetching.
func (f *fetcher) take() (*chunk, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		return nil, f.err
	}
	c := f.queue[0]
	f.queue[0] = nil
	f.queue = f.queue[1:]
	c.feed.waiting = false
	f.changed.Broadcast()
	return c, nil
}

// logEnd is the end of a partition of which the reader has read up to at. While
// nobody says where it ends it is not taken for caught up.
func (f *fetcher) logEnd(d *feed, at int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d.answered && (d.leader != noLeader || d.stopped) {
		return d.logEnd
	}
	return max(d.logEnd, at+1)
}

// push gives the reader a chunk.
func (f *fetcher) push(c *chunk) {
	f.mu.Lock()
	if !f.closed {
		c.feed.waiting = true
		f.queue = append(f.queue, c)
	}
	f.mu.Unlock()
	f.notify()
}

// fail ends the reader behind what was fetched.
func (f *fetcher) fail(err error) {
	f.mu.Lock()
	if f.err == nil && f.ctx.Err() == nil {
		f.err = err
	}
	f.mu.Unlock()
	f.notify()
}

// gone ends a feed at its position.
func (f *fetcher) gone(d *feed, m *connector.MismatchError) {
	f.mu.Lock()
	d.stopped = true
	next := d.next
	f.mu.Unlock()
	f.push(&chunk{feed: d, next: next, err: m})
}

// lose gives a feed back to be led anew. What fails for long ends the reader, so
// that the lane says why it stands still.
func (f *fetcher) lose(d *feed, err error) {
	if f.ctx.Err() != nil {
		return
	}
	f.mu.Lock()
	now := time.Now()
	if d.tries == 0 {
		d.since = now
	}
	d.tries++
	d.leader = noLeader
	late := now.Sub(d.since) > f.retry
	f.mu.Unlock()
	if late {
		f.fail(f.conn.failed(err, f.s.topic, "reading topic %s partition %d at offset %d", f.s.topic, d.part.ID, d.next))
	}
	select {
	case f.stir <- struct{}{}:
	default:
	}
}
