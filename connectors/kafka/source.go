package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/keyvalue"
	"github.com/millrace/millrace/connectors/recordmeta"
	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/connectors/topicset"
	"github.com/millrace/millrace/runtime/connector"
)

// source is one topic being read. It never changes: another topic of the same
// name is another source.
type source struct {
	table  *connector.Table
	layout *keyvalue.Layout
	upsert bool // read from the earliest record on
	policy format.Policy
	zone   recordmeta.Zone
	opts   []kgo.Opt
	conn   *conn
	topic  string
	id     connector.UUID
	// patience is how long a topic may be unknown to the brokers before it
	// counts as deleted: one that has just started knows none.
	patience time.Duration
	known    topicset.Listing
}

var (
	_ connector.Source         = (*source)(nil)
	_ connector.DecodePolicy   = (*source)(nil)
	_ connector.CursorMirror   = (*source)(nil)
	_ connector.StartExplainer = (*source)(nil)
)

const deletedAfter = 5 * time.Second

// OpenSource implements connector.SourceConnector.
func (c *Connector) OpenSource(ctx context.Context, t *connector.Table) (connector.Source, error) {
	s, err := c.prepare(t)
	if err != nil {
		return nil, err
	}
	wanted, err := scanrange.TopicsOf(t.Options)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Name, err)
	}
	who := accessOf(s.table.Options, kmsg.ACLOperationRead)
	who.group = s.group()
	if s.conn, err = connect(s.table.Options, s.opts, who); err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Name, err)
	}
	if name, ok := wanted.One(); ok {
		if err = s.enter(ctx, name); err == nil {
			return s, nil
		}
	} else {
		var all *several
		if all, err = openSeveral(ctx, s, wanted); err == nil {
			return all, nil
		}
	}
	s.conn.close()
	return nil, fmt.Errorf("table %s: %w", t.Name, err)
}

// prepare makes a source that has no topic and no connection yet.
func (c *Connector) prepare(t *connector.Table) (*source, error) {
	l, err := keyvalue.New(t, c.formats, c.upsert)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Name, err)
	}
	policy, err := l.Policy()
	if err != nil {
		return nil, err
	}
	if err := recordmeta.Check(t); err != nil {
		return nil, err
	}
	s := &source{table: t, layout: l, upsert: c.upsert, policy: policy, zone: recordmeta.Zone{Location: t.Zone}, patience: deletedAfter}
	if s.opts, err = clientOptions(t.Options); err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Name, err)
	}
	return s, nil
}

// enter looks the source's topic up.
func (s *source) enter(ctx context.Context, topic string) error {
	s.topic = topic
	now, err := s.describe(ctx)
	if err == nil {
		err = s.conn.permitted(now, topic)
	}
	if err != nil {
		return err
	}
	return s.found(now)
}

// found takes the topic that the name stands for now.
func (s *source) found(now described) error {
	if s.id = now.id; s.id == (connector.UUID{}) {
		return fmt.Errorf("the brokers give topic %s no id: Kafka 3.1 or later is needed", s.topic)
	}
	return nil
}

// describe asks for the topic as it is now.
func (s *source) describe(ctx context.Context) (described, error) {
	return describeTopic(ctx, s.conn, s.topic, s.patience)
}

// current is the topic as it is now, if it is still the same one.
func (s *source) current(ctx context.Context) (described, error) {
	t, err := s.describe(ctx)
	if err == nil && t.id != s.id {
		err = s.conn.failed(kerr.UnknownTopicID, s.topic, "topic %s was deleted and created again", s.topic)
	}
	return t, err
}

// Partitions implements connector.Source.
func (s *source) Partitions(ctx context.Context) ([]connector.Partition, error) {
	return s.known.List(s.table.Options, func() ([]connector.Partition, error) {
		t, err := s.current(ctx)
		if err != nil {
			return nil, err
		}
		return s.partitions(t), nil
	})
}

// partitions are those of the topic as it was described.
func (s *source) partitions(t described) []connector.Partition {
	out := make([]connector.Partition, 0, len(t.partitions))
	for _, p := range slices.Sorted(maps.Keys(t.partitions)) {
		out = append(out, connector.Partition{TopicID: s.id, Topic: s.topic, ID: p})
	}
	return out
}

// bounds are what there is of each partition: from its first offset to the last
// stable one, behind which are open transactions.
type bounds struct{ start, stable, end kadm.ListedOffsets }

func (s *source) bounds(ctx context.Context) (bounds, error) {
	var b bounds
	var err error
	if b.start, err = s.list(s.conn.admin.ListStartOffsets(ctx, s.topic)); err != nil {
		return b, err
	}
	if b.stable, err = s.list(s.conn.admin.ListCommittedOffsets(ctx, s.topic)); err != nil {
		return b, err
	}
	b.end, err = s.list(s.conn.admin.ListEndOffsets(ctx, s.topic))
	return b, err
}

func (s *source) list(l kadm.ListedOffsets, err error) (kadm.ListedOffsets, error) {
	if err != nil {
		return nil, s.conn.failed(err, s.topic, "listing the offsets of topic %s", s.topic)
	}
	return l, nil
}

// at is an offset of one partition from a list.
func (s *source) at(l kadm.ListedOffsets, p connector.Partition) (kadm.ListedOffset, error) {
	o, ok := l.Lookup(s.topic, p.ID)
	if !ok {
		o.Err = kerr.UnknownTopicOrPartition
	}
	if o.Err != nil {
		return o, s.conn.failed(o.Err, s.topic, "listing the offsets of topic %s partition %d", s.topic, p.ID)
	}
	return o, nil
}

// sameTopic refuses partitions of another topic, e.g. one of the same name that
// was there before.
func (s *source) sameTopic(ctx context.Context, parts []connector.Partition) error {
	if _, err := s.current(ctx); err != nil {
		return err
	}
	for _, p := range parts {
		if p.TopicID != s.id {
			return fmt.Errorf("partition %d of topic %s belongs to topic id %s, which is gone", p.ID, p.Topic, p.TopicID)
		}
	}
	return nil
}

// DecodeErrors implements connector.DecodePolicy.
func (s *source) DecodeErrors() (connector.OnError, func(string) bool) {
	return s.policy.DecodeErrors()
}

// MirrorCursor implements connector.CursorMirror: for lag alone.
func (s *source) MirrorCursor(ctx context.Context, next []connector.Position) error {
	g := s.group()
	if g == "" {
		return nil
	}
	var os kadm.Offsets
	for _, p := range next {
		if p.Partition.TopicID == s.id {
			os.AddOffset(s.topic, p.Partition.ID, p.Offset, p.LeaderEpoch)
		}
	}
	res, err := s.conn.admin.CommitOffsets(ctx, g, os)
	if err == nil {
		err = res.Error()
	}
	if err != nil {
		return s.conn.failed(err, s.topic, "committing the offsets of group %s", g)
	}
	return nil
}

// Close implements connector.Source.
func (s *source) Close() error {
	s.conn.close()
	return nil
}
