package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// decision is how the newest transaction of a transactional id ended.
type decision struct {
	ended    bool // as the coordinator says
	commit   bool
	producer int64
}

// decided asks the coordinator how a lane's newest transaction ended. It has to be asked
// before a producer is initialized, which makes it forget.
func (s *sink) decided(ctx context.Context, txn string) (d decision, err error) {
	err = s.persist(ctx, millis(s.table.Options, keyAPITimeout), func(ctx context.Context) error {
		all, err := s.conn.admin.DescribeTransactions(ctx, txn)
		x := all[txn]
		if err == nil {
			err = x.Err
		}
		switch {
		case is(err, kerr.TransactionalIDNotFound):
			return nil
		case err != nil:
			return sinkFailed(failed(err, "asking for the state of transactional id %s", txn))
		case x.State == "PrepareCommit", x.State == "PrepareAbort":
			return sinkFailed(failed(kerr.ConcurrentTransactions, "waiting for the end of the transaction of transactional id %s", txn))
		}
		d = decision{ended: x.State == "CompleteCommit" || x.State == "CompleteAbort", commit: x.State == "CompleteCommit", producer: x.ProducerID}
		return nil
	})
	return d, err
}

// hanging are the partitions of a topic in which a producer's transaction is open.
// Without the right to ask they are all that are given.
func (s *sink) hanging(ctx context.Context, topic string, partitions []int32, producer int64) ([]int32, error) {
	var set kadm.TopicsSet
	set.Add(topic, partitions...)
	all, err := s.conn.admin.DescribeProducers(ctx, set)
	var out []int32
	all.EachPartition(func(p kadm.DescribedProducersPartition) {
		if p.Err != nil && err == nil {
			err = p.Err
		}
		for _, x := range p.ActiveProducers {
			if x.ProducerID == producer && x.CurrentTxnStartOffset >= 0 {
				out = append(out, p.Partition)
			}
		}
	})
	var denied *kadm.AuthError
	switch {
	case errors.As(err, &denied), is(err, kerr.TopicAuthorizationFailed):
		return partitions, nil
	case err != nil:
		return nil, sinkFailed(failed(err, "asking for the open transactions of topic %s", topic))
	}
	return out, nil
}

// endHanging ends a transaction whose end the brokers lost. The coordinator answers a
// commit before the partitions know of it. Where it starts again meanwhile, it takes
// partitions that have no leader yet for deleted ones (Apache Kafka 4.3.1), and calls
// the transaction complete: nobody reads on in them, whatever the timeout. Another
// transaction of the same producer with these partitions and the same end gives them
// the marker that is missing. The lane's producer has to be initialized, and nothing
// written by it.
func (s *sink) endHanging(ctx context.Context, c *kgo.Client, txn string, was decision) (mended bool, err error) {
	if !was.ended {
		return false, nil
	}
	d, err := describeTopic(ctx, s.conn, s.topic, deletedAfter)
	if err != nil {
		return false, sinkFailed(err)
	}
	var all []int32
	for p := range len(d.partitions) {
		all = append(all, int32(p))
	}
	in := map[string][]int32{}
	for topic, partitions := range map[string][]int32{commitsTopic: {s.commits.partition}, s.topic: all} {
		open, err := s.hanging(ctx, topic, partitions, was.producer)
		if err != nil {
			return false, err
		}
		if len(open) > 0 {
			in[topic] = open
		}
	}
	if len(in) == 0 {
		return false, nil
	}
	id, epoch, err := c.ProducerID(ctx)
	if err == nil && id != was.producer {
		err = fmt.Errorf("producer id %d is %d now", was.producer, id)
	}
	if err == nil {
		err = s.endAgain(ctx, txn, id, epoch, in, was.commit)
	}
	if err != nil {
		return false, sinkFailed(failed(err, "ending the transaction of transactional id %s that hangs in %v, since the brokers lost its end", txn, in))
	}
	return true, nil
}

// endAgain is a transaction without records. The requests are those of the protocol in
// which a client names the partitions itself.
func (s *sink) endAgain(ctx context.Context, txn string, id int64, epoch int16, in map[string][]int32, commit bool) error {
	v := kversion.Stable()
	v.SetMaxKeyVersion(int16(kmsg.AddPartitionsToTxn), 3)
	v.SetMaxKeyVersion(int16(kmsg.EndTxn), 4)
	c, err := kgo.NewClient(append(s.opts[:len(s.opts):len(s.opts)], kgo.MaxVersions(v))...)
	if err != nil {
		return fmt.Errorf("setting up a Kafka client: %w", err)
	}
	defer c.Close()
	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch = txn, id, epoch
	for topic, partitions := range in {
		t := kmsg.NewAddPartitionsToTxnRequestTopic()
		t.Topic, t.Partitions = topic, partitions
		add.Topics = append(add.Topics, t)
	}
	added, err := add.RequestWith(ctx, c)
	if err != nil {
		return err
	}
	for _, t := range added.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("topic %s partition %d: %w", t.Topic, p.Partition, err)
			}
		}
	}
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = txn, id, epoch, commit
	ended, err := end.RequestWith(ctx, c)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(ended.ErrorCode)
}

// ended is a lane's new producer, with nothing open of those before it.
func (s *sink) ended(ctx context.Context, st *laneState) (*kgo.Client, error) {
	if s.commits == nil {
		return s.producer(ctx, st.txn)
	}
	was, err := s.decided(ctx, st.txn)
	if err != nil {
		return nil, err
	}
	if !st.was.ended || was.ended || was.producer != st.was.producer {
		st.was = was // else an earlier try made the coordinator forget
	}
	c, err := s.producer(ctx, st.txn)
	if err != nil {
		return nil, err
	}
	mended, err := s.endHanging(ctx, c, st.txn, st.was)
	if err != nil {
		c.Close()
		return nil, err
	}
	st.was = decision{}
	if mended {
		// Its next transaction must not begin before that one's end is everywhere.
		c.Close()
		return s.producer(ctx, st.txn)
	}
	return c, nil
}

// endOpen fences an earlier run's lane, ends what it left open, and what hangs of it in
// the topics of commits and of this table. The coordinator is made to remember how
// its newest transaction ended: the topics of other tables are their own sinks' business.
func (s *sink) endOpen(ctx context.Context, txn string) error {
	was, err := s.decided(ctx, txn)
	if err != nil {
		return err
	}
	c, err := s.producer(ctx, txn)
	if err != nil {
		return err
	}
	defer c.Close()
	mended, err := s.endHanging(ctx, c, txn, was)
	if err != nil || mended || !was.ended {
		return err
	}
	id, epoch, err := c.ProducerID(ctx)
	if err != nil || id != was.producer {
		return err
	}
	if err := s.endAgain(ctx, txn, id, epoch, map[string][]int32{commitsTopic: {s.commits.partition}}, was.commit); err != nil {
		return sinkFailed(failed(err, "ending the transactions of transactional id %s", txn))
	}
	return nil
}
