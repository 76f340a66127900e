package logtopic

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/keyvalue"
	"github.com/millrace/millrace/connectors/recordmeta"
	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/connectors/topicset"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/topiclog"
)

// source is one topic being read. It never changes: another topic of the same
// name is another source.
type source struct {
	store  *topiclog.Store
	table  *connector.Table
	layout *keyvalue.Layout
	policy format.Policy
	topic  topiclog.Topic // as it was when the source was opened
	zone   recordmeta.Zone
	known  topicset.Listing
}

var (
	_ connector.Source       = (*source)(nil)
	_ connector.DecodePolicy = (*source)(nil)
	_ connector.CursorMirror = (*source)(nil)
	_ connector.Holder       = (*source)(nil)

	_ connector.StartExplainer = (*source)(nil)
)

// OpenSource implements connector.SourceConnector.
func (c *Connector) OpenSource(_ context.Context, t *connector.Table) (connector.Source, error) {
	l, err := keyvalue.New(t, c.formats, false)
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
	wanted, err := scanrange.TopicsOf(t.Options)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Name, err)
	}
	common := &source{table: t, layout: l, policy: policy, zone: recordmeta.Zone{Location: t.Zone}}
	if name, ok := wanted.One(); ok {
		topic, err := c.topicOf(t, name)
		if err != nil {
			return nil, err
		}
		common.store, common.topic = c.log.Store(), topic
		return common, nil
	}
	if c.log == nil {
		return nil, fmt.Errorf("opening the topics of table %s: no log is open", t.Name)
	}
	common.store = c.log.Store()
	s, err := openSeveral(common, wanted)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Name, err)
	}
	return s, nil
}

// topicOf is the topic that a table names.
func (c *Connector) topicOf(t *connector.Table, name string) (topiclog.Topic, error) {
	if c.log == nil {
		return topiclog.Topic{}, fmt.Errorf("opening topic %s for table %s: no log is open", name, t.Name)
	}
	topic, err := c.log.Store().Topic(name)
	if err != nil {
		return topic, fmt.Errorf("opening topic %s for table %s: %w", name, t.Name, err)
	}
	return topic, nil
}

// current is the topic as it is now; another UUID is another topic.
func (s *source) current() (topiclog.Topic, error) {
	t, err := s.store.TopicByID(s.topic.ID)
	if err != nil {
		return t, fmt.Errorf("topic %s: %w", s.topic.Name, err)
	}
	return t, nil
}

// Partitions implements connector.Source.
func (s *source) Partitions(context.Context) ([]connector.Partition, error) {
	return s.known.List(s.table.Options, func() ([]connector.Partition, error) {
		t, err := s.current()
		if err != nil {
			return nil, err
		}
		return partitionsOf(&t), nil
	})
}

func partitionsOf(t *topiclog.Topic) []connector.Partition {
	out := make([]connector.Partition, len(t.Partitions))
	for i, p := range t.Partitions {
		out[i] = connector.Partition{TopicID: connector.UUID(t.ID), Topic: t.Name, ID: p.Index}
	}
	return out
}

// located is a partition as the store knows it.
type located struct {
	id    topiclog.PartitionID
	state topiclog.PartitionState
}

// locate finds a partition in the topic as it is now.
func (s *source) locate(t *topiclog.Topic, p connector.Partition) (located, error) {
	if topiclog.UUID(p.TopicID) != t.ID || p.ID < 0 || int(p.ID) >= len(t.Partitions) {
		return located{}, fmt.Errorf("partition %d of topic %s: %w", p.ID, p.Topic, topiclog.ErrPartitionNotFound)
	}
	id := t.Partitions[p.ID].ID
	st, err := s.store.State(id)
	if err != nil {
		return located{}, fmt.Errorf("partition %d of topic %s: %w", p.ID, p.Topic, err)
	}
	return located{id, st}, nil
}

// group is the subscription's name, "" for none.
func (s *source) group() string { return s.table.Options.String("properties.group.id") }

// committed are the group's positions.
func (s *source) committed() map[topiclog.PartitionID]int64 {
	out := map[topiclog.PartitionID]int64{}
	if g := s.group(); g != "" {
		for _, c := range s.store.Cursors(g) {
			out[c.Partition] = c.Offset
		}
	}
	return out
}

// Start implements connector.Source.
func (s *source) Start(ctx context.Context, parts []connector.Partition) ([]connector.Position, error) {
	specific, err := scanrange.ParseOffsets(s.table.Options.String("scan.startup.specific-offsets"))
	if err != nil {
		return nil, err
	}
	t, err := s.current()
	if err != nil {
		return nil, err
	}
	mode := s.table.Options.String("scan.startup.mode")
	committed := s.committed()
	out := make([]connector.Position, len(parts))
	for i, p := range parts {
		at, err := s.locate(&t, p)
		if err != nil {
			return nil, err
		}
		offset := at.state.Start
		switch mode {
		case scanrange.Latest:
			offset = at.state.CommittedEnd()
		case scanrange.Group:
			if o, ok := committed[at.id]; ok {
				offset = o
			}
		case scanrange.Specific:
			if o, ok := specific[p.ID]; ok {
				offset = o
			}
		case scanrange.Timestamp:
			if offset, err = s.offsetFor(ctx, at, "scan.startup.timestamp-millis"); err != nil {
				return nil, err
			}
		}
		if offset < at.state.Start || offset > at.state.CommittedEnd() {
			return nil, fmt.Errorf("table %s: 'scan.startup.mode' = '%s': offset %d of topic %s partition %d is outside the log (%d..%d)",
				s.table.Name, mode, offset, p.Topic, p.ID, at.state.Start, at.state.CommittedEnd())
		}
		epoch, err := s.epochAt(at.id, offset)
		if err != nil {
			return nil, err
		}
		out[i] = connector.Position{Partition: p, LeaderEpoch: epoch, Offset: offset}
	}
	return out, nil
}

// ExplainStart implements connector.StartExplainer.
func (s *source) ExplainStart(parts []connector.Partition) []string {
	mode, group := s.table.Options.String("scan.startup.mode"), s.group()
	out := slices.Repeat([]string{"'scan.startup.mode' = '" + mode + "'"}, len(parts))
	if mode != scanrange.Group {
		return out
	}
	t, err := s.current()
	if err != nil {
		return out // Start has said so
	}
	committed := s.committed()
	for i, p := range parts {
		at, err := s.locate(&t, p)
		_, known := committed[at.id]
		switch {
		case err != nil || known:
		case group == "":
			out[i] = "warning: no 'scan.startup.mode', so the earliest record"
		default:
			out[i] = fmt.Sprintf("warning: group %q has no position here, so the earliest record", group)
		}
	}
	return out
}

// offsetFor is the first offset with a record at or after the time in an option,
// the durable end when there is none.
func (s *source) offsetFor(ctx context.Context, at located, key string) (int64, error) {
	o, _, err := s.store.OffsetForTimestamp(ctx, at.id, s.table.Options.Int(key))
	if err != nil {
		return 0, fmt.Errorf("table %s: looking up %q: %w", s.table.Name, key, err)
	}
	return min(max(o, at.state.Start), at.state.CommittedEnd()), nil
}

// epochAt is the leader epoch of a position: the first one whose end it does not
// pass, so that Check finds it right. -1: no record was ever written.
func (s *source) epochAt(id topiclog.PartitionID, offset int64) (int32, error) {
	history, err := s.store.EpochHistory(id)
	if err != nil {
		return 0, err
	}
	epoch := int32(-1)
	for _, h := range history {
		epoch = h.LeaderEpoch
		if h.End >= offset {
			break
		}
	}
	return epoch, nil
}

// End implements connector.Source.
func (s *source) End(ctx context.Context, parts []connector.Partition) ([]int64, error) {
	specific, err := scanrange.ParseOffsets(s.table.Options.String("scan.bounded.specific-offsets"))
	if err != nil {
		return nil, err
	}
	t, err := s.current()
	if err != nil {
		return nil, err
	}
	mode := s.table.Options.String("scan.bounded.mode")
	committed := s.committed()
	out := make([]int64, len(parts))
	for i, p := range parts {
		at, err := s.locate(&t, p)
		if err != nil {
			return nil, err
		}
		end := at.state.CommittedEnd()
		switch mode {
		case scanrange.Latest:
		case scanrange.Group:
			// Without a committed position there is nothing to read up to.
			end = min(committed[at.id], end)
		case scanrange.Timestamp:
			if end, err = s.offsetFor(ctx, at, "scan.bounded.timestamp-millis"); err != nil {
				return nil, err
			}
		case scanrange.Specific:
			o, ok := specific[p.ID]
			if ok && o > end {
				return nil, fmt.Errorf("table %s: 'scan.bounded.specific-offsets': offset %d of topic %s partition %d is behind the log's end %d",
					s.table.Name, o, p.Topic, p.ID, end)
			}
			if ok {
				end = o
			}
		default:
			end = connector.Unbounded
		}
		out[i] = end
	}
	return out, nil
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
	t, err := s.current()
	if err != nil {
		return err
	}
	cursors := make([]topiclog.Cursor, 0, len(next))
	for _, p := range next {
		at, err := s.locate(&t, p.Partition)
		if err != nil {
			return err
		}
		cursors = append(cursors, topiclog.Cursor{Partition: at.id, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch})
	}
	return s.store.CommitCursors(ctx, g, cursors)
}

// Hold implements connector.Holder.
func (s *source) Hold(ctx context.Context, name string, from []connector.Position) error {
	holds, err := s.holds(name, from)
	if err != nil {
		return err
	}
	return s.store.SetHolds(ctx, name, holds)
}

func (s *source) holds(name string, from []connector.Position) ([]topiclog.Hold, error) {
	t, err := s.current()
	if err != nil {
		return nil, err
	}
	holds := make([]topiclog.Hold, 0, len(from))
	for _, p := range from {
		at, err := s.locate(&t, p.Partition)
		if err != nil {
			return nil, err
		}
		holds = append(holds, topiclog.Hold{Name: name, Partition: at.id, Offset: p.Offset})
	}
	return holds, nil
}

// Close implements connector.Source.
func (s *source) Close() error { return nil }
