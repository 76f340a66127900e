package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The coordinator answers a commit before the partitions know of it. Where it starts again
// meanwhile, it takes partitions that have no leader yet for deleted ones (Apache Kafka
// 4.3.1), and calls the transaction complete: it hangs in them, and nobody reads on there,
// whatever the timeout. The next transaction of the producer that ends in such a partition
// ends it, too: an abort hides what was committed, a commit shows what was aborted. So what
// hangs is ended the way it was decided before the lane writes anything else.

// txnState is what a coordinator knows of a transactional id.
type txnState struct {
	name     string // of the state, in Kafka's words; empty: the id is unknown
	producer int64
	epoch    int16
	in       kadm.TopicsSet // the partitions of the newest transaction, while it is open
}

// includes reports whether what is open in a partition may be of the newest transaction.
func (x txnState) includes(o openIn) bool {
	_, in := x.in[o.topic][o.partition]
	return in
}

// ended reports whether the coordinator knows how the newest transaction ended.
func (x txnState) ended() bool { return x.name == "CompleteCommit" || x.name == "CompleteAbort" }

func (x txnState) committed() bool { return x.name == "CompleteCommit" }

// stateOf asks the coordinator for the state of a transactional id, until it is done with a
// transaction that is being ended.
func (s *sink) stateOf(ctx context.Context, txn string) (out txnState, err error) {
	err = s.persist(ctx, millis(s.table.Options, keyAPITimeout), func(ctx context.Context) error {
		all, err := s.conn.admin.DescribeTransactions(ctx, txn)
		x := all[txn]
		if err == nil {
			err = x.Err
		}
		switch {
		case is(err, kerr.TransactionalIDNotFound):
			out = txnState{}
			return nil
		case err != nil:
			return sinkFailed(s.conn.failed(err, "", "asking for the state of transactional id %s", txn))
		case x.State == "PrepareCommit", x.State == "PrepareAbort", x.State == "PrepareEpochFence":
			return sinkFailed(s.conn.failed(kerr.ConcurrentTransactions, "", "waiting for the end of the transaction of transactional id %s", txn))
		}
		out = txnState{name: x.State, producer: x.ProducerID, epoch: x.ProducerEpoch, in: x.Topics}
		return nil
	})
	return out, err
}

// openIn is a partition in which a transaction of a producer is open.
type openIn struct {
	producer  int64
	topic     string
	partition int32
	start     int64 // its first offset; -1: the user may not ask, and it may be open or not
	epoch     int16 // of the producer when it wrote there last
	commit    bool  // how it ends, once that is known
}

func (o openIn) String() string {
	return fmt.Sprintf("topic %s partition %d from offset %d on", o.topic, o.partition, o.start)
}

// same reports whether both are the same transaction.
func (o openIn) same(x openIn) bool {
	return o.producer == x.producer && o.topic == x.topic && o.partition == x.partition && o.start == x.start
}

// openOf is where a producer's transaction is open: in the table's topic and in the lane's
// partition of the topic of commits.
func (s *sink) openOf(ctx context.Context, producer int64) (out []openIn, err error) {
	d, err := describeTopic(ctx, s.conn, s.topic, deletedAfter)
	if err != nil {
		return nil, sinkFailed(err)
	}
	var all []int32
	for p := range len(d.partitions) {
		all = append(all, int32(p))
	}
	for _, t := range []struct {
		topic      string
		partitions []int32
	}{{commitsTopic, []int32{s.commits.partition}}, {s.topic, all}} {
		if t.topic == s.topic && d.id != s.id {
			continue // what was open went with the topic that was replaced
		}
		open, err := s.openInTopic(ctx, t.topic, t.partitions, producer)
		if err != nil {
			return nil, err
		}
		out = append(out, open...)
	}
	return out, nil
}

// openInTopic is openOf in one topic. Without the right to ask it gives all partitions.
func (s *sink) openInTopic(ctx context.Context, topic string, partitions []int32, producer int64) (out []openIn, err error) {
	var set kadm.TopicsSet
	set.Add(topic, partitions...)
	all, err := s.conn.admin.DescribeProducers(ctx, set)
	all.EachPartition(func(p kadm.DescribedProducersPartition) {
		if p.Err != nil && err == nil {
			err = p.Err
		}
		for _, x := range p.ActiveProducers {
			if x.ProducerID == producer && x.CurrentTxnStartOffset >= 0 {
				out = append(out, openIn{producer: producer, topic: topic, partition: p.Partition, start: x.CurrentTxnStartOffset, epoch: x.ProducerEpoch})
			}
		}
	})
	var denied *kadm.AuthError
	switch {
	case errors.As(err, &denied), is(err, kerr.TopicAuthorizationFailed):
		out = nil
		for _, p := range partitions {
			out = append(out, openIn{producer: producer, topic: topic, partition: p, start: -1})
		}
		return out, nil
	case err != nil:
		return nil, sinkFailed(s.conn.failed(err, topic, "asking for the open transactions of topic %s", topic))
	}
	return out, nil
}

// undecidedError: a transaction hangs, and nobody knows any more how it was to end.
type undecidedError struct {
	txn string
	at  openIn
}

func (e *undecidedError) Error() string {
	return fmt.Sprintf("%s a transaction of transactional id %s (producer id %d) hangs: the brokers lost its end, and whoever was to end it was killed, so that it is not known any more whether it was committed; nothing is written, because that would decide it. See whether the rows there are missed (read them with read_uncommitted). kafka-transactions.sh abort --topic %s --partition %d --start-offset %d leaves them out",
		e.at, e.txn, e.at.producer, e.at.topic, e.at.partition, e.at.start)
}

// Retryable implements connector.Retryable: somebody else may just be ending it.
func (e *undecidedError) Retryable() bool { return true }

// mixedError: behind a transaction that was committed, and hangs, the next one has begun in
// the same partition. One marker ends both.
type mixedError struct {
	txn string
	at  openIn
}

func (e *mixedError) Error() string {
	return fmt.Sprintf("%s a transaction of transactional id %s (producer id %d) hangs: it was committed, the brokers lost its end, and the next one has begun behind it. Neither a commit nor an abort is right for both; the brokers abort them after the transaction timeout, which hides the committed rows from there on (read them with read_uncommitted)",
		e.at, e.txn, e.at.producer)
}

// Retryable implements connector.Retryable: whoever tries again finds them aborted.
func (e *mixedError) Retryable() bool { return false }

// decides reports how a transaction that hangs has to end, of what the lane knows itself.
func (st *laneState) decides(o openIn) (commit, known bool) {
	for _, h := range st.hanging {
		if h.same(o) {
			return h.commit, true
		}
	}
	return true, st.ending.covers(o)
}

// leftovers ends what is open under a lane's transactional id at its coordinator, and gives
// what hangs in partitions. The coordinator has to be asked before a producer is
// initialized, which makes it forget.
func (s *sink) leftovers(ctx context.Context, st *laneState) (hanging []openIn, x txnState, err error) {
	if x, err = s.stateOf(ctx, st.txn); err != nil || x.name == "" {
		return nil, x, err
	}
	open, err := s.openOf(ctx, x.producer)
	if err != nil {
		return nil, x, err
	}
	if x.name == "Ongoing" {
		end := s.fence
		if st.mends(x) {
			end = s.endMend
		} else if err := st.endable(x, open); err != nil {
			return nil, x, err
		}
		if err := end(ctx, st); err != nil {
			return nil, x, err
		}
		if x, err = s.stateOf(ctx, st.txn); err == nil {
			open, err = s.openOf(ctx, x.producer)
		}
		if err != nil {
			return nil, x, err
		}
	}
	for _, o := range open {
		var known bool
		switch o.commit, known = st.decides(o); {
		case known:
		case x.ended():
			o.commit = x.committed()
		case o.start < 0:
			continue // as a rule nothing is open
		default:
			return nil, x, &undecidedError{st.txn, o}
		}
		hanging = append(hanging, o)
	}
	return hanging, x, nil
}

// endable says why a transaction that is open at the coordinator must not be aborted: what
// hangs in its partitions would be, too, and of others it would not be known any more how
// they ended.
func (st *laneState) endable(x txnState, open []openIn) error {
	for _, o := range open {
		commit, known := st.decides(o)
		switch {
		case o.start < 0:
		case !known && (!x.includes(o) || o.epoch < x.epoch):
			// It is of an earlier one: each has an epoch of its own (Kafka 4).
			return &undecidedError{st.txn, o}
		case known && commit && x.includes(o):
			return &mixedError{st.txn, o}
		}
	}
	return nil
}

// fence has the coordinator abort the transaction that is open under a transactional id. It
// says so by its state.
func (s *sink) fence(ctx context.Context, st *laneState) error {
	return s.persist(ctx, millis(s.table.Options, keyAPITimeout), func(ctx context.Context) error {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = &st.txn, int32(s.table.Options.Int(keyTxnTimeout))
		resp, err := req.RequestWith(ctx, s.conn.client)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if err != nil && !is(err, kerr.ConcurrentTransactions) { // it is being aborted
			return sinkFailed(s.conn.failed(err, "", "ending the transaction of transactional id %s", st.txn))
		}
		return nil
	})
}

// ended is a lane's new producer, with nothing open of those before it.
func (s *sink) ended(ctx context.Context, st *laneState) (*kgo.Client, error) {
	if s.commits == nil {
		return s.producer(ctx, st)
	}
	hanging, _, err := s.leftovers(ctx, st)
	if err != nil {
		return nil, err
	}
	st.hanging = hanging // from now on the coordinator does not know how it ends
	st.ending.forget()
	c, err := s.producer(ctx, st)
	if err != nil || len(hanging) == 0 {
		return c, err
	}
	err = s.endHanging(ctx, c, st, hanging)
	c.Close()
	if err != nil {
		return nil, err
	}
	st.hanging, st.mend = nil, nil
	// Its next transaction must not begin before that one's end is everywhere.
	return s.producer(ctx, st)
}

// endOpen fences an earlier run's lane, ends what it left open, and what hangs of it in
// the topics of commits and of this table. The coordinator is made to remember how
// its newest transaction ended: the topics of other tables are their own sinks' business.
func (s *sink) endOpen(ctx context.Context, txn string) error {
	st := newLane(txn)
	hanging, was, err := s.leftovers(ctx, st)
	if err != nil {
		return err
	}
	c, err := s.producer(ctx, st)
	if err != nil {
		return err
	}
	defer c.Close()
	if len(hanging) > 0 || !was.ended() {
		return s.endHanging(ctx, c, st, hanging)
	}
	id, epoch, err := c.ProducerID(ctx)
	if err != nil || id != was.producer {
		return err
	}
	if err := s.endAgain(ctx, txn, &mend{id, epoch, was.committed()}, map[string][]int32{commitsTopic: {s.commits.partition}}); err != nil {
		return sinkFailed(s.conn.failed(err, "", "ending the transactions of transactional id %s", txn))
	}
	return nil
}
