package kafka

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/runtime/connector"
)

// The topic of commits; its format is docs/format/kafka-commits.md.
const (
	commitsTopic = "__millrace_commits"
	// commitsPartitions is fixed: a job's records are found by it.
	commitsPartitions = 16

	jobKeyPrefix  = "mr1/job/"
	laneKeyPrefix = "mr1/lane/"
)

var errEncoding = errors.New("unknown encoding")

// commitsError says why the topic of commits cannot be relied on.
type commitsError struct{ why string }

func (e *commitsError) Error() string { return "topic " + commitsTopic + " " + e.why }

// Retryable implements connector.Retryable: somebody has to do something.
func (e *commitsError) Retryable() bool { return false }

// commitLog is what a job has read of the topic of commits. It is locked by sem.
type commitLog struct {
	opts      []kgo.Opt
	conn      *conn
	id        connector.UUID
	job       connector.UUID
	partition int32
	wait      time.Duration // for open transactions of others
	sem       chan struct{}

	next  int64 // offset to read on from
	owner jobRecord
	lanes map[string]laneRecord // by transactional id
}

// openCommits finds the topic, or makes it.
func openCommits(ctx context.Context, opts []kgo.Opt, c *conn, job connector.UUID, wait time.Duration) (*commitLog, error) {
	set := func(s string) *string { return &s }
	// Small segments, since the newest is never compacted and jobs that start
	// read all of it.
	configs := map[string]*string{"cleanup.policy": set("compact"), "segment.bytes": set("16777216"), "min.cleanable.dirty.ratio": set("0.1")}
	d, err := findOrCreate(ctx, c, commitsTopic, commitsPartitions, configs, wait,
		fmt.Sprintf("creating topic %s (%d partitions, cleanup.policy=compact)", commitsTopic, commitsPartitions))
	if err != nil {
		return nil, sinkFailed(err)
	}
	if n := len(d.partitions); n < commitsPartitions {
		return nil, &commitsError{fmt.Sprintf("has %d partitions and needs %d: add some, or delete it while no job writes, and it is created again", n, commitsPartitions)}
	}
	if err := checkCommitsConfig(ctx, c); err != nil {
		return nil, err
	}
	return &commitLog{opts: opts, conn: c, id: d.id, job: job, partition: commitsPartition(job), wait: wait,
		sem: make(chan struct{}, 1), lanes: map[string]laneRecord{}}, nil
}

// commitsPartition is where a job's records are.
func commitsPartition(job connector.UUID) int32 {
	h := fnv.New32a()
	h.Write(job[:])
	return int32(h.Sum32() % commitsPartitions)
}

// checkCommitsConfig refuses a topic that forgets: what it has forgotten would be
// published again.
func checkCommitsConfig(ctx context.Context, c *conn) error {
	got, err := topicConfig(ctx, c, commitsTopic, "cleanup.policy")
	if err != nil {
		return sinkFailed(err)
	}
	if got != "compact" {
		return &commitsError{fmt.Sprintf("has cleanup.policy=%s: records that it removes would be published twice; set it to compact", got)}
	}
	return nil
}

// topicConfig is one setting of a topic.
func topicConfig(ctx context.Context, c *conn, topic, key string) (string, error) {
	var r kadm.ResourceConfig
	err := whileUnknown(ctx, deletedAfter, func() error {
		rs, err := c.admin.DescribeTopicConfigs(ctx, topic)
		if err == nil {
			r, err = rs.On(topic, nil)
		}
		if err == nil {
			err = r.Err
		}
		return err
	})
	if err != nil {
		return "", c.failed(err, topic, "asking for the settings of topic %s", topic)
	}
	for _, x := range r.Configs {
		if x.Key == key && x.Value != nil {
			return *x.Value, nil
		}
	}
	return "", fmt.Errorf("topic %s has no setting %s", topic, key)
}

func (l *commitLog) jobKey() []byte { return []byte(jobKeyPrefix + hex.EncodeToString(l.job[:])) }

func (l *commitLog) lock(ctx context.Context) error {
	select {
	case l.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *commitLog) unlock() { <-l.sem }

// refresh reads up to the end as it is now: every transaction that ended before
// the call is known after it. It waits for those of other lanes that are open.
func (l *commitLog) refresh(ctx context.Context) error {
	return l.readTo(ctx, l.conn.admin.ListEndOffsets)
}

// refreshStable reads what can be read without waiting.
func (l *commitLog) refreshStable(ctx context.Context) error {
	return l.readTo(ctx, l.conn.admin.ListCommittedOffsets)
}

func (l *commitLog) readTo(ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error)) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	d, err := describeTopic(ctx, l.conn, commitsTopic, deletedAfter)
	if err != nil {
		return sinkFailed(err)
	}
	if d.id != l.id {
		return &commitsError{"was deleted and created again while a job was writing: what the job has published cannot be told any more"}
	}
	ends, err := list(ctx, commitsTopic)
	if err == nil {
		err = ends.Error()
	}
	end, ok := ends.Lookup(commitsTopic, l.partition)
	if err == nil && !ok {
		err = fmt.Errorf("partition %d is not in the answer", l.partition)
	}
	if err != nil {
		return sinkFailed(l.conn.failed(err, commitsTopic, "asking for the end of topic %s", commitsTopic))
	}
	if end.Offset <= l.next {
		return nil
	}
	return l.read(ctx, end.Offset)
}

// read takes records in until the position is end.
func (l *commitLog) read(ctx context.Context, end int64) error {
	from := kgo.NewOffset().AtStart()
	if l.next > 0 {
		from = kgo.NewOffset().At(l.next)
	}
	opts := append(l.opts[:len(l.opts):len(l.opts)], kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{commitsTopic: {l.partition: from}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))
	c, err := kgo.NewClient(opts...)
	if err != nil {
		return fmt.Errorf("setting up a Kafka client: %w", err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, l.wait)
	defer cancel()
	for l.next < end {
		fs := c.PollFetches(ctx)
		for _, e := range fs.Errors() {
			if errors.Is(e.Err, context.DeadlineExceeded) {
				return &waitError{from: l.next, end: end, partition: l.partition, holder: l.holder()}
			}
			return sinkFailed(l.conn.failed(e.Err, commitsTopic, "reading topic %s", commitsTopic))
		}
		for it := fs.RecordIter(); !it.Done(); {
			r := it.Next()
			if err := l.take(r); err != nil {
				return fmt.Errorf("topic %s partition %d offset %d: %w", commitsTopic, r.Partition, r.Offset, err)
			}
			l.next = r.Offset + 1
		}
	}
	return nil
}

// take takes one record in.
func (l *commitLog) take(r *kgo.Record) error {
	if r.Attrs.IsControl() {
		return nil
	}
	key := string(r.Key)
	switch txn, isLane := strings.CutPrefix(key, laneKeyPrefix); {
	case key == string(l.jobKey()):
		job, err := decodeJobRecord(r.Value)
		if err != nil {
			return err
		}
		l.owner = job
	case isLane:
		lane, err := decodeLaneRecord(r.Value)
		if err != nil {
			return err
		}
		if lane.job == l.job {
			l.lanes[txn] = lane
		}
	}
	return nil
}

// state is what is known of the job and of a lane.
func (l *commitLog) state(ctx context.Context, txn string) (jobRecord, laneRecord, error) {
	if err := l.lock(ctx); err != nil {
		return jobRecord{}, laneRecord{}, err
	}
	defer l.unlock()
	return l.owner, l.lanes[txn], nil
}

// all is what is known of the job, and the transactional ids of its lanes.
func (l *commitLog) all(ctx context.Context) (jobRecord, []string, error) {
	if err := l.lock(ctx); err != nil {
		return jobRecord{}, nil, err
	}
	defer l.unlock()
	return l.owner, slices.Collect(maps.Keys(l.lanes)), nil
}

// waitError: the transactions of others are open for too long.
type waitError struct {
	from, end int64
	partition int32
	holder    string // whose transaction it is; empty: the brokers do not say
}

func (e *waitError) Error() string {
	who := e.holder
	if who == "" {
		who = "another lane"
	}
	return fmt.Sprintf("topic %s partition %d is readable to offset %d of %d: a transaction of %s is open, the broker ends it after 'properties.transaction.timeout.ms'; one that stays longer hangs: start the job that wrote it, or see kafka-transactions.sh find-hanging (abort hides its rows)",
		commitsTopic, e.partition, e.from, e.end, who)
}

// Retryable implements connector.Retryable.
func (e *waitError) Retryable() bool { return true }

// holder names whose transaction has been open for longest in the partition.
func (l *commitLog) holder() string {
	// What was waited for is over, and the context with it.
	ctx, cancel := context.WithTimeout(context.Background(), abortTimeout)
	defer cancel()
	var set kadm.TopicsSet
	set.Add(commitsTopic, l.partition)
	all, err := l.conn.admin.DescribeProducers(ctx, set)
	if err != nil {
		return ""
	}
	oldest := kadm.DescribedProducer{CurrentTxnStartOffset: -1}
	all.EachProducer(func(p kadm.DescribedProducer) {
		if at := p.CurrentTxnStartOffset; at >= 0 && (oldest.CurrentTxnStartOffset < 0 || at < oldest.CurrentTxnStartOffset) {
			oldest = p
		}
	})
	if oldest.CurrentTxnStartOffset < 0 {
		return ""
	}
	// Without an answer the producer id alone has to do.
	txns, _ := l.conn.admin.ListTransactions(ctx, []int64{oldest.ProducerID}, nil)
	for txn := range txns {
		return fmt.Sprintf("transactional id %s (producer id %d)", txn, oldest.ProducerID)
	}
	return fmt.Sprintf("producer id %d", oldest.ProducerID)
}
