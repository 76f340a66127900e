package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/runtime/connector"
)

// Teller appends single messages to a topic of a cluster, for those who read it. It is safe
// for concurrent use, and holds no connection between messages, which are rare.
type Teller struct {
	topic  string
	values connector.Values
	opts   []kgo.Opt
	access *access
	found  atomic.Bool // the topic was there
}

// NewTeller looks a topic up, or makes it, with one partition and the brokers' own
// settings. properties are those of Java's clients, bootstrap.servers among them; a wrong
// one is a *connector.OptionError with its name. Where nobody answers the first message
// looks for the topic.
func NewTeller(ctx context.Context, topic string, properties map[string]string) (*Teller, error) {
	v, err := resolveProperties(properties, sinkOptions()...)
	if err != nil {
		return nil, err
	}
	t := &Teller{topic: topic, values: v, access: accessOf(v, kmsg.ACLOperationWrite)}
	if t.opts, err = clientOptions(v); err != nil {
		return nil, err
	}
	var again connector.Retryable
	if err = t.find(ctx); err != nil && (!errors.As(err, &again) || !again.Retryable()) {
		return nil, err
	}
	return t, ctx.Err()
}

// find looks the topic up, or makes it.
func (t *Teller) find(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deletedAfter)
	defer cancel()
	c, err := connect(t.values, t.opts, t.access)
	if err != nil {
		return err
	}
	defer c.close()
	d, err := findOrCreate(ctx, c, t.topic, 1, nil, deletedAfter, "creating topic "+t.topic)
	if err == nil {
		err = c.permitted(d, t.topic)
	}
	t.found.Store(err == nil)
	return err
}

// Tell appends a message. When it returns nil all replicas in sync have it; messages of one
// key are in one partition, that of Kafka's own producer. After an error it may be there or
// not.
func (t *Teller) Tell(ctx context.Context, key string, value []byte) error {
	ctx, cancel := context.WithTimeout(ctx, millis(t.values, keyAPITimeout))
	defer cancel()
	if !t.found.Load() {
		if err := t.find(ctx); err != nil {
			return err
		}
	}
	c, err := kgo.NewClient(append(t.opts[:len(t.opts):len(t.opts)], kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProduceRequestTimeout(brokerTime(t.values)),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))...)
	if err != nil {
		return fmt.Errorf("setting up a Kafka client: %w", err)
	}
	defer c.Close()
	if err := c.ProduceSync(ctx, &kgo.Record{Topic: t.topic, Key: []byte(key), Value: value}).FirstErr(); err != nil {
		t.found.Store(false) // it may have been deleted
		return t.access.failed(err, t.topic, "writing to topic %s", t.topic)
	}
	return nil
}
