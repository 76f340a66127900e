package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// mend is a transaction that ends what hangs.
type mend struct {
	producer int64
	epoch    int16
	commit   bool
}

// mends reports whether what is open at the coordinator is a mend of this lane that was cut.
func (st *laneState) mends(x txnState) bool {
	return st.mend != nil && st.mend.producer == x.producer && st.mend.epoch == x.epoch
}

// endMend ends a mend that was cut the way it was to end.
func (s *sink) endMend(ctx context.Context, st *laneState) error {
	err := s.withNamed(func(c *kgo.Client) error { return s.endTxn(ctx, c, st.txn, st.mend) })
	if err != nil {
		return sinkFailed(s.conn.failed(err, "", "ending the transaction of transactional id %s", st.txn))
	}
	return nil
}

// endHanging ends transactions that hang: another one of the same producer with these
// partitions and the same end gives them the marker that is missing. The producer has to be
// initialized, and nothing written by it.
func (s *sink) endHanging(ctx context.Context, c *kgo.Client, st *laneState, hanging []openIn) error {
	if len(hanging) == 0 {
		return nil
	}
	id, epoch, err := c.ProducerID(ctx)
	if err == nil && id != hanging[0].producer {
		err = fmt.Errorf("producer id %d is %d now", hanging[0].producer, id)
	}
	for _, commit := range []bool{true, false} {
		in := map[string][]int32{}
		for _, o := range hanging {
			if o.commit == commit {
				in[o.topic] = append(in[o.topic], o.partition)
			}
		}
		if err == nil && len(in) > 0 {
			st.mend = &mend{id, epoch, commit}
			err = s.endAgain(ctx, st.txn, st.mend, in)
		}
	}
	if err != nil {
		return sinkFailed(s.conn.failed(err, "", "ending the transaction of transactional id %s that hangs in %v, since the brokers lost its end", st.txn, hanging))
	}
	return nil
}

// withNamed calls f with a client of the protocol in which clients name the partitions of a
// transaction themselves.
func (s *sink) withNamed(f func(c *kgo.Client) error) error {
	v := kversion.Stable()
	v.SetMaxKeyVersion(int16(kmsg.AddPartitionsToTxn), 3)
	v.SetMaxKeyVersion(int16(kmsg.EndTxn), 4)
	c, err := kgo.NewClient(append(s.opts[:len(s.opts):len(s.opts)], kgo.MaxVersions(v))...)
	if err != nil {
		return fmt.Errorf("setting up a Kafka client: %w", err)
	}
	defer c.Close()
	return f(c)
}

// endAgain is a transaction without records.
func (s *sink) endAgain(ctx context.Context, txn string, m *mend, in map[string][]int32) error {
	return s.withNamed(func(c *kgo.Client) error {
		if err := s.addPartitions(ctx, c, txn, m, in); err != nil {
			return err
		}
		return s.endTxn(ctx, c, txn, m)
	})
}

func (s *sink) addPartitions(ctx context.Context, c *kgo.Client, txn string, m *mend, in map[string][]int32) error {
	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch = txn, m.producer, m.epoch
	for topic, partitions := range in {
		t := kmsg.NewAddPartitionsToTxnRequestTopic()
		t.Topic, t.Partitions = topic, partitions
		add.Topics = append(add.Topics, t)
	}
	// The one before it may be being ended still.
	return s.persist(ctx, millis(s.table.Options, keyAPITimeout), func(ctx context.Context) error {
		added, err := add.RequestWith(ctx, c)
		if err != nil {
			return sinkFailed(err)
		}
		for _, t := range added.Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return sinkFailed(s.conn.failed(err, t.Topic, "adding topic %s partition %d", t.Topic, p.Partition))
				}
			}
		}
		return nil
	})
}

func (s *sink) endTxn(ctx context.Context, c *kgo.Client, txn string, m *mend) error {
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = txn, m.producer, m.epoch, m.commit
	ended, err := end.RequestWith(ctx, c)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(ended.ErrorCode)
}
