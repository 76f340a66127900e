package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// AnyPartition lets the producer choose: by the key like Kafka's default
// partitioner (murmur2), or, for a null key, one partition per batch in turn.
const AnyPartition int32 = -1

// ErrClosed says that the producer or fetcher was closed.
var ErrClosed = errors.New("client is closed")

// ProducerOptions tune a producer. The zero value works.
type ProducerOptions struct {
	// Linger is how long a batch waits for more records; 0 means 5 ms, negative
	// not at all.
	Linger time.Duration
	// BatchBytes is the size, before compression, at which a batch is sent; 0
	// means 64 KiB. The topic's max.message.bytes bounds it as well.
	BatchBytes int
	// MaxBufferedBytes bounds what is not acknowledged yet: Produce blocks
	// beyond it. 0 means 32 MiB.
	MaxBufferedBytes int64
	// Compression of the batches, unless the topic's compression.type says
	// otherwise.
	Compression record.Codec
}

// ProducerRecord is a record to be produced.
type ProducerRecord struct {
	Topic string
	// Partition is the partition's index or AnyPartition.
	Partition int32
	// Key and Value: nil is null. They are copied.
	Key, Value []byte
	Headers    []record.RecordHeader
	// TimestampMillis is ms since 1970 UTC; 0 means now.
	TimestampMillis int64
}

// Result says where a record is.
type Result struct {
	Topic     topiclog.UUID
	Partition int32
	ID        topiclog.PartitionID
	// Offset is the record's own.
	Offset      int64
	LeaderEpoch int32
}

// Producer batches records.
type Producer struct {
	store *topiclog.Store
	opts  ProducerOptions

	mu       sync.Mutex
	changed  sync.Cond // pending fell, or an error came
	topics   map[string]*producerTopic
	open     []*producerBatch // with records, oldest first; sent ones stay until they are at the front
	pending  int64            // bytes buffered or under way
	inFlight int              // batches not acknowledged, open ones included
	firstErr error
	closed   bool
	builders []*record.Builder
	wake     chan struct{}
	done     chan struct{}
}

type producerTopic struct {
	id       topiclog.UUID
	codec    record.Codec
	maxBytes int
	parts    []*producerPart
	sticky   int
}

// producerPart is a partition's open batch. send keeps the order of batches.
type producerPart struct {
	id    topiclog.PartitionID
	index int32
	topic *producerTopic
	name  string
	send  sync.Mutex
	batch *producerBatch
}

type producerBatch struct {
	part    *producerPart
	builder *record.Builder
	bytes   int64
	due     time.Time
	sent    bool
	dones   []func(Result, error)
}

// NewProducer returns a producer with a goroutine of its own; close it.
func (c *Client) NewProducer(o ProducerOptions) (*Producer, error) {
	if o.Linger == 0 {
		o.Linger = 5 * time.Millisecond
	}
	if o.BatchBytes == 0 {
		o.BatchBytes = 64 << 10
	}
	if o.MaxBufferedBytes == 0 {
		o.MaxBufferedBytes = 32 << 20
	}
	switch {
	case o.BatchBytes < 0:
		return nil, fmt.Errorf("producer options: BatchBytes is %d", o.BatchBytes)
	case o.MaxBufferedBytes < 0:
		return nil, fmt.Errorf("producer options: MaxBufferedBytes is %d", o.MaxBufferedBytes)
	case !o.Compression.Known():
		return nil, fmt.Errorf("producer options: Compression is %s", o.Compression)
	}
	p := &Producer{store: c.store, opts: o, topics: map[string]*producerTopic{}, wake: make(chan struct{}, 1), done: make(chan struct{})}
	p.changed.L = &p.mu
	go p.run()
	return p, nil
}

// Produce adds a record to its partition's batch. done, if not nil, is called
// exactly once, after the record's batch was acknowledged or has failed; it must
// not block and must not call the producer or the store. If Produce itself
// fails, done is not called. It blocks while too much is unacknowledged.
func (p *Producer) Produce(ctx context.Context, r ProducerRecord, done func(Result, error)) error {
	size := int64(record.RecordSize(r.Key, r.Value, r.Headers))
	p.mu.Lock()
	if err := p.waitForRoom(ctx, size); err != nil {
		p.mu.Unlock()
		return err
	}
	part, err := p.choose(&r)
	if err != nil {
		p.mu.Unlock()
		return err
	}
	b := part.batch
	var full *producerBatch
	limit := min(p.opts.BatchBytes, part.topic.maxBytes)
	if b != nil && b.builder.Size()+int(size) > limit {
		full, b = b, nil
	}
	if b == nil {
		b = p.newBatch(part)
	}
	if r.TimestampMillis == 0 {
		r.TimestampMillis = time.Now().UnixMilli()
	}
	if err := b.builder.Append(r.TimestampMillis, r.Key, r.Value, r.Headers); err != nil {
		if b.builder.Count() == 0 {
			p.drop(b)
		}
		p.mu.Unlock()
		if full != nil {
			p.send(full)
		}
		return fmt.Errorf("producing to topic %s: %w", r.Topic, err)
	}
	// Most batches of many partitions stay small; one that does not will
	// probably be full.
	if b.builder.Size() > limit/8 {
		b.builder.Grow(limit)
	}
	b.bytes += size
	p.pending += size
	if done != nil {
		for len(b.dones) < b.builder.Count()-1 {
			b.dones = append(b.dones, nil)
		}
		b.dones = append(b.dones, done)
	}
	now := p.opts.Linger < 0 || b.builder.Size() >= limit
	p.mu.Unlock()
	if full != nil {
		p.send(full)
	}
	if now {
		p.send(b)
	}
	return nil
}

// waitForRoom waits until size more bytes may be buffered; mu is held.
func (p *Producer) waitForRoom(ctx context.Context, size int64) error {
	if p.pending > 0 && p.pending+size > p.opts.MaxBufferedBytes && !p.closed {
		stop := context.AfterFunc(ctx, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.changed.Broadcast()
		})
		defer stop()
		for p.pending > 0 && p.pending+size > p.opts.MaxBufferedBytes && !p.closed && ctx.Err() == nil {
			p.changed.Wait()
		}
	}
	if p.closed {
		return ErrClosed
	}
	return ctx.Err()
}

// choose finds the record's partition; mu is held.
func (p *Producer) choose(r *ProducerRecord) (*producerPart, error) {
	t := p.topics[r.Topic]
	if t == nil || int(r.Partition) >= len(t.parts) {
		var err error
		if t, err = p.learn(r.Topic); err != nil {
			return nil, err
		}
	}
	switch {
	case int(r.Partition) >= len(t.parts) || r.Partition < AnyPartition:
		return nil, fmt.Errorf("producing: %w: topic %s has %d partitions, there is no %d", topiclog.ErrPartitionNotFound, r.Topic, len(t.parts), r.Partition)
	case r.Partition >= 0:
		return t.parts[r.Partition], nil
	case r.Key != nil:
		return t.parts[record.PartitionOf(r.Key, len(t.parts))], nil
	default:
		return t.parts[t.sticky%len(t.parts)], nil
	}
}

// learn looks a topic up, again if it has changed; mu is held.
func (p *Producer) learn(name string) (*producerTopic, error) {
	d, err := p.store.Topic(name)
	if err != nil {
		return nil, fmt.Errorf("producing: %w", err)
	}
	t := p.topics[name]
	if t == nil || t.id != d.ID {
		t = &producerTopic{id: d.ID}
		p.topics[name] = t
	}
	t.codec, t.maxBytes = p.opts.Compression, d.Settings.MaxMessageBytes
	if c := d.Settings.Compression; c != "producer" {
		if codec, err := record.ParseCodec(c); err == nil {
			t.codec = codec
		}
	}
	for i := len(t.parts); i < len(d.Partitions); i++ {
		t.parts = append(t.parts, &producerPart{id: d.Partitions[i].ID, index: int32(i), topic: t, name: name})
	}
	return t, nil
}

// newBatch opens a batch; mu is held.
func (p *Producer) newBatch(part *producerPart) *producerBatch {
	b := &producerBatch{part: part, due: time.Now().Add(p.opts.Linger)}
	if n := len(p.builders); n > 0 {
		b.builder, p.builders = p.builders[n-1], p.builders[:n-1]
	} else {
		b.builder = &record.Builder{}
	}
	b.builder.Codec = part.topic.codec
	part.batch = b
	p.inFlight++
	p.open = append(p.open, b)
	if len(p.open) == 1 {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	return b
}

// drop takes back a batch that has no records; mu is held.
func (p *Producer) drop(b *producerBatch) {
	b.sent, b.part.batch = true, nil
	p.inFlight--
	p.recycle(b)
	p.changed.Broadcast()
}

// recycle keeps a batch's builder for another one; mu is held.
func (p *Producer) recycle(b *producerBatch) {
	b.builder.Reset()
	if len(p.builders) < 64 {
		p.builders = append(p.builders, b.builder)
	}
	b.builder, b.dones = nil, nil
}

// send builds a batch and appends it. Batches of one partition go in the order
// in which they were opened: an older one is sent before by whoever comes first.
func (p *Producer) send(b *producerBatch) {
	b.part.send.Lock()
	defer b.part.send.Unlock()
	p.mu.Lock()
	if b.sent {
		p.mu.Unlock()
		return
	}
	older := p.openBefore(b)
	p.mu.Unlock()
	for _, o := range older {
		p.sendOne(o)
	}
	p.sendOne(b)
}

// openBefore lists the unsent batches of the same partition opened before b; mu
// is held.
func (p *Producer) openBefore(b *producerBatch) []*producerBatch {
	var older []*producerBatch
	for _, o := range p.open {
		if o == b {
			break
		}
		if o.part == b.part && !o.sent {
			older = append(older, o)
		}
	}
	return older
}

// sendOne appends one batch; part.send is held.
func (p *Producer) sendOne(b *producerBatch) {
	p.mu.Lock()
	if b.sent {
		p.mu.Unlock()
		return
	}
	b.sent = true
	if b.part.batch == b {
		b.part.batch = nil
	}
	b.part.topic.sticky++
	for len(p.open) > 0 && p.open[0].sent {
		p.open[0] = nil
		p.open = p.open[1:]
	}
	p.mu.Unlock()
	raw, err := b.builder.Build()
	if err != nil {
		p.finish(b, topiclog.AppendResult{}, err)
		return
	}
	p.store.AppendAsync(topiclog.AppendRequest{Partition: b.part.id, Batches: raw, Trusted: true},
		func(res topiclog.AppendResult, err error) { p.finish(b, res, err) })
}

// finish acknowledges a batch's records.
func (p *Producer) finish(b *producerBatch, res topiclog.AppendResult, err error) {
	if err != nil {
		err = fmt.Errorf("producing to topic %s partition %d: %w", b.part.name, b.part.index, err)
	}
	for i, done := range b.dones {
		if done == nil {
			continue
		}
		if err != nil {
			done(Result{}, err)
			continue
		}
		done(Result{Topic: b.part.topic.id, Partition: b.part.index, ID: b.part.id, Offset: res.BaseOffset + int64(i), LeaderEpoch: res.LeaderEpoch}, nil)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending -= b.bytes
	p.inFlight--
	if err != nil {
		if p.firstErr == nil {
			p.firstErr = err
		}
		if errors.Is(err, topiclog.ErrPartitionNotFound) {
			delete(p.topics, b.part.name) // deleted, perhaps made again
		}
	}
	p.recycle(b)
	p.changed.Broadcast()
}

// run sends batches whose linger time is over.
func (p *Producer) run() {
	defer close(p.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p.mu.Lock()
		for len(p.open) > 0 && p.open[0].sent {
			p.open = p.open[1:]
		}
		wait := time.Hour
		var due *producerBatch
		if len(p.open) > 0 {
			if wait = time.Until(p.open[0].due); wait <= 0 {
				due = p.open[0]
			}
		}
		closed := p.closed
		p.mu.Unlock()
		switch {
		case due != nil:
			p.send(due)
			continue
		case closed:
			return
		}
		timer.Reset(wait)
		select {
		case <-p.wake:
		case <-timer.C:
		}
	}
}

// Flush sends all batches and waits until they are acknowledged. It returns the
// first error of any batch since the last Flush.
func (p *Producer) Flush(ctx context.Context) error {
	p.mu.Lock()
	open := append([]*producerBatch(nil), p.open...)
	p.mu.Unlock()
	for _, b := range open {
		p.send(b)
	}
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changed.Broadcast()
	})
	defer stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.inFlight > 0 && ctx.Err() == nil {
		p.changed.Wait()
	}
	if p.inFlight > 0 {
		return ctx.Err()
	}
	err := p.firstErr
	p.firstErr = nil
	return err
}

// Close flushes and ends the producer.
func (p *Producer) Close(ctx context.Context) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	p.changed.Broadcast()
	p.mu.Unlock()
	err := p.Flush(ctx)
	select {
	case p.wake <- struct{}{}:
	default:
	}
	if err == nil {
		<-p.done
	}
	return err
}
