package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// toldMaxBatch is the largest message: a partition may have many files.
const toldMaxBatch = 64 << 20

// toldTopic is a topic of messages to those who read tables: of manifests, or of
// complete partitions. It may be used from any goroutine.
type toldTopic struct {
	node *Node
	name string

	mu      sync.Mutex
	topic   topiclog.Topic
	builder record.Builder
}

// jsonTopic opens such a topic, or makes it. A message is durable when the function
// that it returns does.
func (n *Node) jsonTopic(ctx context.Context, name string) (func(ctx context.Context, key string, value []byte) error, error) {
	t := &toldTopic{node: n, name: name}
	if err := t.open(ctx); err != nil {
		return nil, err
	}
	return t.write, nil
}

func (t *toldTopic) open(ctx context.Context) (err error) {
	t.topic, err = ownTopic(ctx, t.node.store, t.name, map[string]string{"max.message.bytes": fmt.Sprint(toldMaxBatch)})
	return err
}

// write appends a message. The topic may have been deleted, and made again, since it
// was opened: then the message goes into the one that has its name now, which is made
// where there is none. What the old one was told is gone with it, by whoever deleted it.
func (t *toldTopic) write(ctx context.Context, key string, value []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.append(ctx, key, value)
	if isGone(err) {
		if log := t.node.opts.Log; log != nil {
			log.Warn("topic was deleted while a job tells it of its tables; what it was told before is gone", "topic", t.name)
		}
		if err = t.open(ctx); err == nil {
			err = t.append(ctx, key, value)
		}
	}
	if err != nil && ctx.Err() == nil {
		return &toldError{err}
	}
	return err
}

// append appends to the topic as it was opened.
func (t *toldTopic) append(ctx context.Context, key string, value []byte) error {
	t.builder.Reset()
	if err := t.builder.Append(t.node.opts.Now().UnixMilli(), []byte(key), value, nil); err != nil {
		return err
	}
	batch, err := t.builder.Build()
	if err != nil {
		return err
	}
	id := t.topic.Partitions[0].ID
	res, err := t.node.store.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch, Trusted: true})
	if err != nil {
		return err
	}
	return onDisk(ctx, t.node.store, id, res.LastOffset)
}

// isGone reports a topic that is deleted, or being so.
func isGone(err error) bool {
	return errors.Is(err, topiclog.ErrPartitionNotFound) || errors.Is(err, topiclog.ErrTopicNotFound) || errors.Is(err, topiclog.ErrTopicClosing)
}

// toldError is a message that could not be appended.
type toldError struct{ err error }

func (e *toldError) Error() string { return e.err.Error() }
func (e *toldError) Unwrap() error { return e.err }

// Retryable implements connector.Retryable: but for what only a person, or opening the
// log again, can mend.
func (e *toldError) Retryable() bool {
	for _, final := range []error{topiclog.ErrFenced, topiclog.ErrClosed, topiclog.ErrTooLarge, topiclog.ErrInvalidBatch, topiclog.ErrInvalidTopic, topiclog.ErrDamaged, topiclog.ErrFormat} {
		if errors.Is(e.err, final) {
			return false
		}
	}
	return true
}

// onDisk waits until a record survives a power cut: a topic that was there before may
// acknowledge earlier (millrace.durability = os).
func onDisk(ctx context.Context, store *topiclog.Store, id topiclog.PartitionID, offset int64) error {
	for {
		st, err := store.State(id)
		if err != nil || st.DurableEnd > offset {
			return err
		}
		l, err := store.Fetch(ctx, topiclog.FetchRequest{Partition: id, Offset: offset, MaxBytes: 1, MaxWait: time.Minute,
			Isolation: topiclog.Uncommitted, Durable: true})
		if err != nil {
			return err
		}
		l.Release()
	}
}
