package logtopic

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/connectors/keyvalue"
	"github.com/millrace/millrace/connectors/recordmeta"
	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// Rolling of the log sink: small artefacts, so that readers see rows soon.
const (
	rollBytes = 512 << 10
	rollAge   = time.Second
)

// sink appends to one topic.
type sink struct {
	store       *topiclog.Store
	lanes       *registry
	owner       connector.Owner
	table       *connector.Table
	topic       topiclog.Topic // as it was when the sink was opened
	enc         *keyvalue.Encoder
	partitioner string
	timestamp   int // column of the record's timestamp, -1: none
}

var (
	_ connector.Sink            = (*sink)(nil)
	_ connector.ReplayableSeals = (*sink)(nil)
	_ connector.Settler         = (*sink)(nil)
)

// OpenSink implements connector.SinkConnector.
func (c *Connector) OpenSink(_ context.Context, t *connector.Table, o connector.Owner) (connector.Sink, error) {
	at, err := recordmeta.Written(t)
	if err != nil {
		return nil, err
	}
	s := &sink{lanes: &c.lanes, owner: o, table: t, timestamp: at}
	l, err := keyvalue.New(t, c.formats, false)
	if err == nil {
		s.enc, err = l.NewEncoder()
	}
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Name, err)
	}
	s.partitioner = t.Options.String(keyvalue.KeyPartitioner)
	wanted, err := scanrange.TopicsOf(t.Options)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Name, err)
	}
	name, ok := wanted.One()
	if !ok {
		return nil, fmt.Errorf("table %s: a table that is written has one topic; it names several", t.Name)
	}
	if s.topic, err = c.topicOf(t, name); err != nil {
		return nil, err
	}
	s.store = c.log.Store()
	if err := s.lanes.claim(s.topic.ID, s.topic.Name, o); err != nil {
		return nil, err
	}
	return s, nil
}

// MaxEpoch implements connector.Sink: of this process. The ledger, which is in
// the same log, knows every epoch that was opened before.
func (s *sink) MaxEpoch(ctx context.Context, lane connector.LaneID) (uint64, error) {
	return s.lanes.maxEpoch(ctx, s.topic.ID, s.owner.Job, lane)
}

// Roll implements connector.Sink.
func (s *sink) Roll() connector.RollPolicy {
	return connector.RollPolicy{Bytes: rollBytes, Age: rollAge}
}

// ReplayableSeals implements connector.ReplayableSeals.
func (s *sink) ReplayableSeals() bool { return true }

// Close implements connector.Sink.
func (s *sink) Close() error { return nil }

// OpenWriter implements connector.Sink. It waits for an append of the attempt
// before that is under way.
func (s *sink) OpenWriter(ctx context.Context, a connector.Attempt) (connector.Writer, error) {
	if err := s.lanes.fenced(s.topic.ID, s.owner); err != nil {
		return nil, err
	}
	// Another attempt may see partitions that were added; an open one does not.
	topic, err := s.store.TopicByID(s.topic.ID)
	if err != nil {
		return nil, fmt.Errorf("opening topic %s for table %s: %w", s.topic.Name, s.table.Name, err)
	}
	st := s.lanes.lane(s.topic.ID, laneKeyOf(a.ID))
	if err := st.lock(ctx); err != nil {
		return nil, err
	}
	defer st.unlock()
	at := pointOf(a.ID).attempt()
	if st.opened && !st.high.before(at) {
		return nil, fmt.Errorf("lane epoch %d, now %d: %w", at.epoch, st.high.epoch, connector.ErrFenced)
	}
	st.opened, st.previous, st.high = true, st.high, at
	// What the attempt before the last one sealed was resolved by the last one,
	// or can be made again.
	for p := range st.sealed {
		if p.before(st.previous) {
			delete(st.sealed, p)
		}
	}
	w := &writer{s: s, st: st, at: at, topic: topic, open: make([]openPartition, len(topic.Partitions)), limit: maxHeld}
	if a.MemoryBytes > 0 {
		w.limit = min(w.limit, a.MemoryBytes)
	}
	if s.partitioner == keyvalue.Fixed {
		w.turn = int(keyvalue.FixedPlace(a.ID)) % len(w.open)
	}
	codec := record.None
	if name := topic.Settings.Compression; name != "producer" {
		if codec, err = record.ParseCodec(name); err != nil {
			return nil, fmt.Errorf("topic %s: %w", topic.Name, err)
		}
	}
	for i := range w.open {
		w.open[i].builder.Codec = codec
	}
	w.batchBytes = min(batchBytes, topic.Settings.MaxMessageBytes)
	return w, nil
}
