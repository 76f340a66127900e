package kafka

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors/keyvalue"
	"github.com/millrace/millrace/connectors/recordmeta"
	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/record"
)

// Keys of the sink's options.
const (
	keyGuarantee   = "sink.delivery-guarantee"
	keyTxnPrefix   = "sink.transactional-id-prefix"
	keyTxnTimeout  = "properties.transaction.timeout.ms"
	keyMaxRequest  = "properties.max.request.size"
	keyCompression = "properties.compression.type"
	keyAPITimeout  = "properties.default.api.timeout.ms"

	exactlyOnce = "exactly-once"
	atLeastOnce = "at-least-once"
)

// Rolling of the sink: a transaction costs the brokers some ten milliseconds, and
// readers wait for it.
const (
	rollBytes = 1 << 20
	rollAge   = time.Second
)

// sink writes one topic.
type sink struct {
	table     *connector.Table
	owner     connector.Owner
	opts      []kgo.Opt
	dial      dialFunc
	conn      *conn
	topic     string
	id        connector.UUID // of the topic, when the sink was opened
	enc       *keyvalue.Encoder
	timestamp int // column of the record's timestamp, -1: none
	// partitioner is the option's value; upsert-kafka, which has none, goes by keys.
	partitioner string
	prefix      string
	commits     *commitLog // nil: at-least-once
	// opened is the highest epoch that this process has opened of each lane. It is
	// locked like commits.
	opened map[connector.LaneID]uint64

	mu    sync.Mutex
	lanes map[string]*laneState // by transactional id
}

var (
	_ connector.Sink             = (*sink)(nil)
	_ connector.ReplayableSeals  = (*sink)(nil)
	_ connector.Settler          = (*sink)(nil)
	_ connector.SinkExplainer    = (*sink)(nil)
	_ connector.UnknownExplainer = (*sink)(nil)
	_ connector.SinkConnector    = (*Connector)(nil)
)

// OpenSink implements connector.SinkConnector.
func (c *Connector) OpenSink(ctx context.Context, t *connector.Table, o connector.Owner) (connector.Sink, error) {
	wanted, err := scanrange.TopicsOf(t.Options)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Name, err)
	}
	topic, ok := wanted.One()
	if !ok {
		return nil, fmt.Errorf("table %s: a table that is written has one topic; it names several", t.Name)
	}
	s := &sink{table: t, owner: o, topic: topic, prefix: t.Options.String(keyTxnPrefix),
		partitioner: keyvalue.ByKey, lanes: map[string]*laneState{}, opened: map[connector.LaneID]uint64{}}
	if !c.upsert {
		s.partitioner = t.Options.String(keyvalue.KeyPartitioner)
	}
	if err := s.compile(c); err != nil {
		return nil, err
	}
	if s.opts, err = clientOptions(t.Options); err == nil {
		s.dial, err = dialer(t.Options)
	}
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Name, err)
	}
	who := accessOf(t.Options, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribeConfigs)
	who.txnPrefix = s.prefix
	if s.conn, err = connect(t.Options, s.opts, who); err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Name, err)
	}
	if err := s.persist(ctx, s.patience(), s.connect); err != nil {
		s.conn.close()
		return nil, fmt.Errorf("table %s: %w", t.Name, err)
	}
	return s, nil
}

// compile makes the encoder.
func (s *sink) compile(c *Connector) (err error) {
	t := s.table
	if s.timestamp, err = recordmeta.Written(t); err != nil {
		return err
	}
	l, err := keyvalue.New(t, c.formats, c.upsert)
	if err == nil {
		s.enc, err = l.NewEncoder()
	}
	if err != nil {
		return fmt.Errorf("table %s: %w", t.Name, err)
	}
	return nil
}

// connect looks the topics up and claims the job's records.
func (s *sink) connect(ctx context.Context) error {
	d, err := describeTopic(ctx, s.conn, s.topic, deletedAfter)
	if err == nil {
		err = s.conn.permitted(d, s.topic)
	}
	if err != nil {
		return sinkFailed(err)
	}
	if s.id = d.id; s.id == (connector.UUID{}) {
		return fmt.Errorf("the brokers give topic %s no id: Kafka 3.1 or later is needed", s.topic)
	}
	if s.table.Options.String(keyGuarantee) == atLeastOnce {
		return nil
	}
	if s.commits, err = openCommits(ctx, s.opts, s.conn, s.owner.Job, s.patience()); err != nil {
		return err
	}
	return s.claim(ctx)
}

// patience is longer than what others' transactions may be open for.
func (s *sink) patience() time.Duration {
	return millis(s.table.Options, keyAPITimeout) + millis(s.table.Options, keyTxnTimeout)
}

// producerOptions are those of a lane's producer.
func (s *sink) producerOptions(st *laneState) []kgo.Opt {
	v := s.table.Options
	codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
	place := func(topic string) func(*kgo.Record, int) int {
		return func(r *kgo.Record, n int) int {
			switch {
			case topic == commitsTopic:
				return int(r.Partition)
			case r.Key != nil && s.partitioner == keyvalue.ByKey:
				return record.PartitionOf(r.Key, n)
			}
			return int(r.Partition) % n
		}
	}
	opts := append(s.opts[:len(s.opts):len(s.opts)], kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProduceRequestTimeout(brokerTime(v)),
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(place)),
		kgo.ProducerBatchCompression(codecs[v.String(keyCompression)]), kgo.ProducerBatchMaxBytes(int32(v.Int(keyMaxRequest))),
		kgo.MaxBufferedRecords(1<<20), kgo.ProducerLinger(5*time.Millisecond))
	if s.commits != nil {
		opts = append(opts, kgo.TransactionalID(st.txn), kgo.Dialer(s.connection(st)), kgo.TransactionTimeout(millis(v, keyTxnTimeout)))
	}
	return opts
}

// lane is the state of a lane, made when it is first asked for.
func (s *sink) lane(txn string) *laneState {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.lanes[txn]
	if st == nil {
		st = newLane(txn)
		s.lanes[txn] = st
	}
	return st
}

// MaxEpoch implements connector.Sink. It does not wait for transactions that the
// lane itself may have left open: there is nothing of it behind them.
func (s *sink) MaxEpoch(ctx context.Context, lane connector.LaneID) (uint64, error) {
	if s.commits == nil {
		return 0, nil // the ledger knows every epoch
	}
	if err := s.commits.refreshStable(ctx); err != nil {
		return 0, err
	}
	if err := s.commits.lock(ctx); err != nil {
		return 0, err
	}
	defer s.commits.unlock()
	high := s.opened[lane]
	for _, r := range s.commits.lanes {
		if !r.keyed && r.lane == lane {
			high = max(high, r.high.epoch)
		}
	}
	return high, nil
}

// Roll implements connector.Sink.
func (s *sink) Roll() connector.RollPolicy {
	return connector.RollPolicy{Bytes: rollBytes, Age: rollAge}
}

// ReplayableSeals implements connector.ReplayableSeals.
func (s *sink) ReplayableSeals() bool { return true }

// ExplainSink implements connector.SinkExplainer.
func (s *sink) ExplainSink() []string {
	if s.commits == nil {
		return []string{"at-least-once, as '" + keyGuarantee + "' says: after a failure rows can be there twice"}
	}
	return []string{fmt.Sprintf("exactly-once: one transaction an artefact, which also names the artefact in topic %s", commitsTopic)}
}

// ExplainUnknown implements connector.UnknownExplainer.
func (s *sink) ExplainUnknown(connector.Artifact) string {
	return "topic " + commitsTopic + " is not the one in which the rows would have been noted: it was deleted; look whether they are in topic " + s.topic
}

// Close implements connector.Sink.
func (s *sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.lanes {
		// A publisher that is still at it ends with an error.
		select {
		case st.sem <- struct{}{}:
			st.drop()
			st.unlock()
		default:
		}
	}
	s.conn.close()
	return nil
}

// OpenWriter implements connector.Sink.
func (s *sink) OpenWriter(ctx context.Context, a connector.Attempt) (connector.Writer, error) {
	st := s.lane(transactionalID(s.prefix, a.ID))
	if err := st.lock(ctx); err != nil {
		return nil, err
	}
	defer st.unlock()
	if _, err := s.same(ctx); err != nil {
		return nil, err
	}
	at := pointOf(a.ID).attempt()
	if err := s.take(ctx, st, a.ID, at); err != nil {
		return nil, err
	}
	st.opened, st.high = true, at
	limit, err := s.recordLimit(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{s: s, st: st, at: at, limit: maxHeld, recordLimit: limit}
	if a.MemoryBytes > 0 {
		w.limit = min(w.limit, a.MemoryBytes)
	}
	return w, nil
}

// take makes an attempt the lane's newest one, durably.
func (s *sink) take(ctx context.Context, st *laneState, id connector.ArtifactID, at point) error {
	if st.opened && !st.high.before(at) {
		return fmt.Errorf("lane epoch %d, now %d: %w", at.epoch, st.high.epoch, connector.ErrFenced)
	}
	if s.commits == nil {
		return nil
	}
	if err := s.initialize(ctx, st); err != nil {
		return err
	}
	r := st.record
	if r.high != (point{}) && !r.high.before(at) {
		return fmt.Errorf("lane epoch %d, now %d: %w", at.epoch, r.high.epoch, connector.ErrFenced)
	}
	r.job, r.table, r.keyed, r.high = id.Job, id.Table, id.Keyed, at
	if id.Keyed {
		r.subtask = id.Subtask
	} else {
		r.lane = id.Lane
	}
	if err := s.transactLane(ctx, st, nil, r); err != nil {
		return err
	}
	if err := s.commits.lock(ctx); err != nil {
		return err
	}
	defer s.commits.unlock()
	if !id.Keyed {
		s.opened[id.Lane] = max(s.opened[id.Lane], at.epoch)
	}
	return nil
}

// recordLimit is how many bytes a record may have.
func (s *sink) recordLimit(ctx context.Context) (int, error) {
	limit := int(s.table.Options.Int(keyMaxRequest))
	text, err := topicConfig(ctx, s.conn, s.topic, "max.message.bytes")
	if err != nil {
		return 0, sinkFailed(err)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("reading max.message.bytes of topic %s: %w", s.topic, err)
	}
	return min(limit, n) - record.HeaderSize - 64, nil
}

// Settled implements connector.Settler: the next transaction leaves out what is
// settled.
func (s *sink) Settled(ctx context.Context, id connector.ArtifactID) error {
	st := s.lane(transactionalID(s.prefix, id))
	if err := st.lock(ctx); err != nil {
		return err
	}
	defer st.unlock()
	at := pointOf(id)
	if !st.settled.before(at) {
		return nil
	}
	st.settled = at
	for p := range st.sealed {
		if p.before(at) {
			delete(st.sealed, p)
		}
	}
	for p := range st.discarded {
		if p.before(at) {
			delete(st.discarded, p)
		}
	}
	return nil
}
