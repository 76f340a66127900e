package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/connectors/logtopic"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/readrange"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

func nearest(name string, names []string) (string, bool) { return diag.Nearest(name, names) }

// findTopic is the topic of a name, or a not-found error with the nearest.
func (n *Node) findTopic(name string) (topiclog.Topic, error) {
	t, err := n.store.Topic(name)
	if errors.Is(err, topiclog.ErrTopicNotFound) {
		var names []string
		for _, t := range n.store.Topics() {
			names = append(names, t.Name)
		}
		return t, notFound("topic", name, names)
	}
	return t, err
}

func (n *Node) describe(t topiclog.Topic) (control.Topic, error) {
	out := control.Topic{Name: t.Name, ID: t.ID.String(), Config: t.Config, Internal: logtopic.Internal(t.Name), Partitions: []control.Partition{}}
	for _, p := range t.Partitions {
		st, err := n.store.State(p.ID)
		if err != nil {
			return out, err
		}
		out.Partitions = append(out.Partitions, control.Partition{Partition: p.Index, Earliest: st.Start, Latest: st.HighWatermark, Bytes: st.SizeBytes})
	}
	return out, nil
}

// Topics implements control.API.
func (n *Node) Topics(context.Context) ([]control.Topic, error) {
	all := n.store.Topics()
	slices.SortFunc(all, func(a, b topiclog.Topic) int { return strings.Compare(a.Name, b.Name) })
	out := make([]control.Topic, 0, len(all))
	for _, t := range all {
		d, err := n.describe(t)
		if errors.Is(err, topiclog.ErrPartitionNotFound) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// Topic implements control.API.
func (n *Node) Topic(_ context.Context, name string) (control.Topic, error) {
	t, err := n.findTopic(name)
	if err != nil {
		return control.Topic{}, err
	}
	return n.describe(t)
}

// CreateTopic implements control.API.
func (n *Node) CreateTopic(ctx context.Context, req control.CreateTopic) (control.Topic, error) {
	t, err := n.store.CreateTopic(ctx, topiclog.TopicSpec{Name: req.Name, Partitions: req.Partitions, Config: req.Config})
	var bad *topiclog.ConfigError
	switch {
	case err == nil:
		return n.describe(t)
	case errors.Is(err, topiclog.ErrTopicExists) && req.IfNotExists:
		return n.Topic(ctx, req.Name)
	case errors.Is(err, topiclog.ErrTopicExists), errors.Is(err, topiclog.ErrInvalidTopic), errors.As(err, &bad):
		return control.Topic{}, inputError(err)
	}
	return control.Topic{}, err
}

// DeleteTopic implements control.API.
func (n *Node) DeleteTopic(ctx context.Context, req control.DeleteTopic) error {
	if logtopic.Internal(req.Name) {
		return inputError(fmt.Errorf("topic %s is Millrace's own; it goes with the data directory", req.Name))
	}
	t, err := n.findTopic(req.Name)
	if err != nil {
		return err
	}
	err = n.store.DeleteTopic(ctx, req.Name, req.Force)
	var subscribed *topiclog.SubscribedError
	if errors.As(err, &subscribed) {
		return &control.Error{Kind: "input", Message: subscribed.Error(), Hint: "--force removes it all the same; the lane that reads it then stops and says so"}
	}
	if err != nil {
		return err
	}
	return n.releaseTopic(ctx, t.ID)
}

// releaseTopic ends the subscriptions of a topic that is closing, which deletes
// it: lanes that run read it to its end and commit first; jobs that do not run
// keep nothing back.
func (n *Node) releaseTopic(ctx context.Context, id topiclog.UUID) error {
	for _, sub := range n.store.Subscriptions() {
		if sub.Topic != id {
			continue
		}
		n.mu.Lock()
		var r *Running
		for _, x := range n.running {
			if jobOwner(x.record.Name) == sub.Owner {
				r = x
			}
		}
		n.mu.Unlock()
		if r != nil && r.run != nil {
			if err := r.drain(ctx, connector.UUID(id)); err != nil {
				return fmt.Errorf("reading the topic to its end by job %s, before it goes: %w", r.record.Name, err)
			}
		}
		if err := n.store.Unsubscribe(ctx, sub.Group, id); err != nil {
			return fmt.Errorf("ending the subscription of %s: %w", sub.Group, err)
		}
	}
	return nil
}

// drain waits until the lanes of a topic that takes no more records have read
// and committed all of it. Lanes that stand are not waited for.
func (r *Running) drain(ctx context.Context, topic connector.UUID) error {
	tick := time.NewTicker(rollPoll)
	defer tick.Stop()
	for !r.drained(topic) {
		r.run.Roll("")
		select {
		case <-tick.C:
		case <-r.run.Done():
			return nil // what it had open will be read again, or is lost and listed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (r *Running) drained(topic connector.UUID) bool {
	for _, l := range r.run.Status().Lanes {
		if l.ID.Topic != topic || l.State != lane.Running {
			continue
		}
		for _, p := range l.Partitions {
			if p.Lag() > 0 {
				return false
			}
		}
		for _, o := range l.Outputs {
			if o.OpenRows > 0 {
				return false
			}
		}
	}
	return true
}

// produceBatchBytes is the size of a produced batch: large ones cost the log
// least.
const produceBatchBytes = 256 << 10

// Produce implements control.API.
func (n *Node) Produce(ctx context.Context, topic string, next func(*control.Record) error) (control.Produced, error) {
	var out control.Produced
	t, err := n.findTopic(topic)
	if err != nil {
		return out, err
	}
	if logtopic.Internal(topic) {
		return out, inputError(fmt.Errorf("topic %s is written by Millrace alone", topic))
	}
	start := time.Now()
	p, err := n.client.NewProducer(client.ProducerOptions{BatchBytes: produceBatchBytes})
	if err != nil {
		return out, err
	}
	var failed firstError
	// One callback for all records: a closure a record would cost an allocation.
	done := func(_ client.Result, err error) {
		if err != nil {
			failed.set(err)
		}
	}
	var rec control.Record
	for {
		err := next(&rec)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = n.produceOne(ctx, p, &t, &rec, done)
		}
		if err == nil {
			err = failed.get()
		}
		if err != nil {
			_ = p.Close(ctx) // says the same again, or what follows from it
			return out, err
		}
		out.Records++
		out.Bytes += int64(len(rec.Key) + len(rec.Value))
	}
	if err := p.Close(ctx); err != nil {
		return out, err
	}
	out.Seconds = time.Since(start).Seconds()
	return out, failed.get()
}

func (n *Node) produceOne(ctx context.Context, p *client.Producer, t *topiclog.Topic, rec *control.Record, done func(client.Result, error)) error {
	r := client.ProducerRecord{Topic: t.Name, Partition: client.AnyPartition, Key: rec.Key, Value: rec.Value, TimestampMillis: rec.TimestampMillis}
	if !rec.AnyPartition {
		if rec.Partition < 0 || int(rec.Partition) >= len(t.Partitions) {
			return inputError(fmt.Errorf("topic %s has no partition %d", t.Name, rec.Partition))
		}
		r.Partition = rec.Partition
	}
	for _, h := range rec.Headers {
		r.Headers = append(r.Headers, record.RecordHeader{Key: []byte(h.Key), Value: h.Value})
	}
	return p.Produce(ctx, r, done)
}

// firstError keeps the first error of several goroutines; looking is cheap.
type firstError struct{ err atomic.Pointer[error] }

func (f *firstError) set(err error) { f.err.CompareAndSwap(nil, &err) }

func (f *firstError) get() error {
	if p := f.err.Load(); p != nil {
		return *p
	}
	return nil
}

// partitionLog resolves ranges against a partition.
type partitionLog struct {
	ctx   context.Context
	store *topiclog.Store
	id    topiclog.PartitionID
}

func (l partitionLog) Bounds() (int64, int64, error) {
	st, err := l.store.State(l.id)
	return st.Start, st.StableEnd, err
}

func (l partitionLog) OffsetForTime(t time.Time) (int64, error) {
	o, _, err := l.store.OffsetForTimestamp(l.ctx, l.id, t.UnixMilli())
	return o, err
}

// errLimit ends a consume that has given enough.
var errLimit = errors.New("limit reached")

// Consume implements control.API.
func (n *Node) Consume(ctx context.Context, req control.Consume, f func(*control.Record) error) error {
	t, err := n.findTopic(req.Topic)
	if err != nil {
		return err
	}
	rng, err := readrange.Parse(req.Range, n.opts.Now())
	if err != nil {
		return inputError(err)
	}
	var left = req.Limit
	emit := func(partition int32, r *record.Record) error {
		out := control.Record{Partition: partition, Offset: r.Offset, TimestampMillis: r.Timestamp, Key: r.Key, Value: r.Value}
		hs := r.Headers()
		var h record.RecordHeader
		for hs.Next(&h) {
			out.Headers = append(out.Headers, control.Header{Key: string(h.Key), Value: h.Value})
		}
		if err := f(&out); err != nil {
			return err
		}
		if left--; req.Limit > 0 && left <= 0 {
			return errLimit
		}
		return nil
	}
	var tails []tail
	for _, p := range t.Partitions {
		if len(req.Partitions) > 0 && !slices.Contains(req.Partitions, p.Index) {
			continue
		}
		from, to, err := rng.Resolve(partitionLog{ctx, n.store, p.ID})
		if err != nil {
			return err
		}
		tails = append(tails, tail{p.ID, p.Index, from, to})
	}
	for _, want := range req.Partitions {
		if int(want) >= len(t.Partitions) || want < 0 {
			return inputError(fmt.Errorf("topic %s has no partition %d", t.Name, want))
		}
	}
	if rng.Endless() {
		err = n.follow(ctx, tails, emit)
	} else {
		err = n.readTails(ctx, tails, emit)
	}
	if errors.Is(err, errLimit) {
		return nil
	}
	return err
}

// tail is a stretch of a partition to be read.
type tail struct {
	id       topiclog.PartitionID
	index    int32
	from, to int64
}

func (n *Node) readTails(ctx context.Context, tails []tail, emit func(int32, *record.Record) error) error {
	for _, t := range tails {
		if err := readAll(ctx, n.store, t.id, t.from, t.to, func(r *record.Record) error { return emit(t.index, r) }); err != nil {
			return err
		}
	}
	return nil
}

// follow reads several partitions as they grow, until ctx ends.
func (n *Node) follow(ctx context.Context, tails []tail, emit func(int32, *record.Record) error) error {
	f := n.client.NewFetcher(client.FetcherOptions{})
	defer f.Close()
	index := map[topiclog.PartitionID]int32{}
	next := map[topiclog.PartitionID]int64{}
	for _, t := range tails {
		if err := f.Add(t.id, t.from); err != nil {
			return err
		}
		index[t.id], next[t.id] = t.index, t.from
	}
	var dec record.Decoder
	defer dec.Close()
	for {
		got, err := f.Next(ctx)
		if err != nil {
			return err
		}
		err = client.EachRecord(got.Lease, &dec, next[got.Partition], func(r *record.Record) error {
			return emit(index[got.Partition], r)
		})
		next[got.Partition] = got.NextOffset
		got.Release()
		if err != nil {
			return err
		}
	}
}
