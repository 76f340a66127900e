package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/runtime/connector"
)

// described is the topic as a broker described it.
type described struct {
	id         connector.UUID
	partitions map[int32]led
}

// led is who leads a partition, and since which epoch.
type led struct {
	leader, epoch int32
	err           error
}

// describeTopic asks for a topic as it is now. A topic that no broker knows is an
// error only when that stays so for a while.
func describeTopic(ctx context.Context, c *conn, topic string, patience time.Duration) (described, error) {
	var deadline <-chan time.Time
	for pause := minPause; ; pause *= 2 {
		d, err := askTopic(ctx, c, topic)
		if err == nil || !unknownTopic(err) {
			return d, err
		}
		if deadline == nil {
			timer := time.NewTimer(patience)
			defer timer.Stop()
			deadline = timer.C
		}
		again := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			again.Stop()
			return d, ctx.Err()
		case <-deadline:
			again.Stop()
			return d, err
		case <-again.C:
		}
	}
}

// askTopic asks for a topic once. The administrative client would answer from what
// it heard some seconds ago.
func askTopic(ctx context.Context, c *conn, topic string) (described, error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(topic)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, c.client)
	if err == nil && len(resp.Topics) != 1 {
		err = fmt.Errorf("the answer has %d topics", len(resp.Topics))
	}
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		return described{}, failed(err, "asking for topic %s", topic)
	}
	d := described{id: resp.Topics[0].TopicID, partitions: map[int32]led{}}
	for _, p := range resp.Topics[0].Partitions {
		d.partitions[p.Partition] = led{leader: p.Leader, epoch: p.LeaderEpoch, err: kerr.ErrorForCode(p.ErrorCode)}
	}
	return d, nil
}

func unknownTopic(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.InconsistentTopicID)
}
