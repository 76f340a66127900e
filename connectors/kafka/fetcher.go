package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/record"
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
	// damageTries is how often a batch with a wrong checksum is fetched before
	// it is the log's damage and not the network's.
	damageTries = 3
	topicIDs    = 13 // the first version of Fetch that names topics by id
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
		f.fail(failed(err, "reading topic %s partition %d at offset %d", f.s.topic, d.part.ID, d.next))
	}
	select {
	case f.stir <- struct{}{}:
	default:
	}
}

// unled are the feeds without a leader, and how long to wait before looking.
func (f *fetcher) unled() ([]*feed, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*feed
	tries := 1 << 30
	for _, d := range f.feeds {
		if d.leader == noLeader && !d.stopped {
			out = append(out, d)
			tries = min(tries, d.tries)
		}
	}
	if tries <= 1 {
		return out, 0
	}
	return out, min(minPause<<min(tries-2, 10), maxPause)
}

// lead finds leaders for feeds that have none.
func (f *fetcher) lead() {
	for f.ctx.Err() == nil {
		lost, pause := f.unled()
		if len(lost) > 0 && pause > 0 {
			timer := time.NewTimer(pause)
			select {
			case <-f.ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			lost, _ = f.unled()
		}
		if len(lost) > 0 {
			f.findLeaders(lost)
			continue
		}
		select {
		case <-f.ctx.Done():
			return
		case <-f.stir:
		}
	}
}

func (f *fetcher) findLeaders(lost []*feed) {
	t, err := f.s.describe(f.ctx)
	switch {
	case f.ctx.Err() != nil:
		return
	case unknownTopic(err), err == nil && t.id != f.s.id:
		for _, d := range lost {
			f.gone(d, f.s.recreated(f.ctx, d.position(), err != nil))
		}
		return
	case err != nil:
		for _, d := range lost {
			f.lose(d, err)
		}
		if e := (connector.Retryable)(nil); errors.As(err, &e) && !e.Retryable() {
			f.fail(err)
		}
		return
	}
	var epochs kadm.OffsetForLeaderEpochRequest
	for _, d := range lost {
		if d.epoch >= 0 {
			epochs.Add(f.s.topic, d.part.ID, d.epoch)
		}
	}
	ends, err := f.s.epochEnds(f.ctx, f.conn, epochs)
	for _, d := range lost {
		p, ok := t.partitions[d.part.ID]
		e, asked := ends[d.part.ID]
		switch {
		case !ok:
			f.lose(d, kerr.UnknownTopicOrPartition)
		case p.err != nil:
			f.lose(d, p.err)
		case p.leader < 0:
			f.lose(d, kerr.LeaderNotAvailable)
		case err != nil:
			f.lose(d, err)
		case asked && e.Err != nil:
			f.lose(d, e.Err)
		case asked && (e.EndOffset < d.next):
			f.suspect(d, p)
		default:
			f.led(d, p)
		}
	}
}

// suspect looks closer at a feed whose leader epoch ends below its position.
func (f *fetcher) suspect(d *feed, p led) {
	m, err := f.s.mismatchAt(f.ctx, d.position())
	switch {
	case err != nil:
		f.lose(d, err)
	case m != nil:
		f.gone(d, m)
	default:
		f.led(d, p)
	}
}

// led lets a broker's goroutine fetch a feed.
func (f *fetcher) led(d *feed, p led) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	d.leader, d.leaderEpoch = p.leader, p.epoch
	if !f.brokers[p.leader] {
		f.brokers[p.leader] = true
		f.wg.Go(func() { f.serve(p.leader) })
	}
	f.changed.Broadcast()
}

// serve fetches from one broker.
func (f *fetcher) serve(broker int32) {
	for turn := 0; ; turn++ {
		feeds, ok := f.due(broker)
		if !ok {
			return
		}
		// Answers are filled in the order of the request: each comes first in
		// its turn.
		k := turn % len(feeds)
		feeds = append(feeds[k:len(feeds):len(feeds)], feeds[:k]...)
		if err := f.ask(broker, feeds); err != nil {
			for _, d := range feeds {
				f.lose(d, err)
			}
		}
	}
}

// due waits until a broker is to be asked.
func (f *fetcher) due(broker int32) ([]*feed, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.closed {
		var out []*feed
		waiting := false
		for _, d := range f.feeds {
			if d.leader == broker {
				waiting = waiting || d.waiting
				if !d.stopped {
					out = append(out, d)
				}
			}
		}
		// Invariant 8: bounded.
		if len(out) > 0 && !waiting && f.err == nil {
			slices.SortFunc(out, func(a, b *feed) int { return cmp.Compare(a.part.ID, b.part.ID) })
			return out, true
		}
		f.changed.Wait()
	}
	return nil, false
}

// ask fetches once; the error is of all feeds.
func (f *fetcher) ask(broker int32, feeds []*feed) error {
	req := f.fetch
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = f.s.topic, f.s.id
	byID := make(map[int32]*feed, len(feeds))
	for _, d := range feeds {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch, p.FetchOffset, p.PartitionMaxBytes = d.part.ID, d.leaderEpoch, d.next, f.part
		topic.Partitions = append(topic.Partitions, p)
		byID[d.part.ID] = d
	}
	req.Topics = []kmsg.FetchRequestTopic{topic}
	raw, err := f.conn.client.Broker(int(broker)).Request(f.ctx, &req)
	if err != nil {
		return err
	}
	resp := raw.(*kmsg.FetchResponse)
	if resp.Version < topicIDs {
		// By name alone a topic that was made again would be read on.
		f.fail(fmt.Errorf("reading topic %s: broker %d fetches by name only: Kafka 3.1 or later is needed", f.s.topic, broker))
		return nil
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return err
	}
	for i := range resp.Topics {
		for k := range resp.Topics[i].Partitions {
			p := &resp.Topics[i].Partitions[k]
			if d := byID[p.Partition]; d != nil {
				delete(byID, p.Partition)
				f.answer(d, p)
			}
		}
	}
	for _, d := range byID {
		f.lose(d, errors.New("the broker left the partition out of its answer"))
	}
	return nil
}

// answer takes what a broker said about one partition.
func (f *fetcher) answer(d *feed, p *kmsg.FetchResponseTopicPartition) {
	err := kerr.ErrorForCode(p.ErrorCode)
	switch {
	case err == nil:
		f.records(d, p)
	case errors.Is(err, kerr.OffsetOutOfRange):
		m, cause := f.s.mismatchAt(f.ctx, d.position())
		switch {
		case m != nil:
			f.gone(d, m)
		case cause != nil:
			f.lose(d, cause)
		default:
			f.lose(d, err)
		}
	case moved(err) || unknownTopic(err) || kerr.IsRetriable(err):
		f.lose(d, err)
	default:
		f.fail(failed(err, "reading topic %s partition %d at offset %d", f.s.topic, d.part.ID, d.next))
	}
}

// records cuts an answer into whole batches: brokers end it where it has the
// size asked for.
func (f *fetcher) records(d *feed, p *kmsg.FetchResponseTopicPartition) {
	rest, next, epoch := p.RecordBatches, d.next, d.epoch
	var err error
	for len(rest) > 0 && next < d.end {
		var b record.Batch
		var after []byte
		if b, after, err = record.Split(rest); err != nil {
			break
		}
		next, epoch, rest = max(next, b.LastOffset()+1), b.LeaderEpoch, after
	}
	data := p.RecordBatches[:len(p.RecordBatches)-len(rest)]
	if next == d.next && err != nil {
		f.unreadable(d, p.RecordBatches, err)
		return
	}
	f.mu.Lock()
	d.tries, d.damaged = 0, 0
	d.answered, d.logEnd = true, max(p.HighWatermark, next)
	moved := next > d.next
	d.next, d.epoch = next, epoch
	d.stopped = d.stopped || next >= d.end
	f.mu.Unlock()
	if moved {
		f.push(&chunk{feed: d, data: data, aborted: p.AbortedTransactions, next: next})
	}
}

// unreadable handles an answer whose first batch cannot be used.
func (f *fetcher) unreadable(d *feed, data []byte, err error) {
	h, bad := record.ParseHeader(data)
	if bad != nil || !errors.Is(err, record.ErrChecksum) {
		f.lose(d, fmt.Errorf("the broker's answer is no record batch: %w", err))
		return
	}
	if d.damaged++; d.damaged < damageTries {
		f.lose(d, err)
		return
	}
	at := d.position()
	f.gone(d, &connector.MismatchError{Position: at, Earliest: h.LastOffset() + 1, Latest: max(d.logEnd, h.LastOffset()+1),
		Lost: h.LastOffset() + 1 - at.Offset, Damaged: true, Err: err,
		Reason: fmt.Sprintf("offsets %d to %d are damaged and cannot be read", at.Offset, h.LastOffset())})
}
