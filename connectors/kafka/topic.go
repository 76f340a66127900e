package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/runtime/connector"
)

// described is the topic as a broker described it.
type described struct {
	id         connector.UUID
	partitions map[int32]led
	internal   bool
	allowed    int32 // operations, as bits; without Describe, as in 0 and math.MinInt32, the broker does not say
	err        error // why there is nothing of the above
}

// led is who leads a partition, and since which epoch.
type led struct {
	leader, epoch int32
	// inSync of replicas have all that the leader has.
	inSync, replicas int
	err              error
}

// describeTopic asks for a topic as it is now. A topic that no broker knows is an
// error only when that stays so for a while.
func describeTopic(ctx context.Context, c *conn, topic string, patience time.Duration) (d described, err error) {
	err = whileUnknown(ctx, patience, func() error {
		d, err = askTopic(ctx, c, topic)
		return err
	})
	return d, err
}

// findOrCreate asks for a topic, and makes it where there is none; creating says so in an
// error. A topic that is new has to be known within patience.
func findOrCreate(ctx context.Context, c *conn, topic string, partitions int32, configs map[string]*string, patience time.Duration, creating string) (described, error) {
	d, err := askTopic(ctx, c, topic)
	if !unknownTopic(err) {
		return d, err
	}
	resp, err := c.admin.CreateTopic(ctx, partitions, -1, configs, topic)
	if err == nil {
		err = resp.Err
	}
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return described{}, c.failed(err, topic, "%s", creating)
	}
	return describeTopic(ctx, c, topic, patience)
}

// whileUnknown asks again for a while where a broker says that there is no such topic:
// each hears of a new one in its own time.
func whileUnknown(ctx context.Context, patience time.Duration, ask func() error) error {
	var deadline <-chan time.Time
	for pause := minPause; ; pause *= 2 {
		err := ask()
		if err == nil || !unknownTopic(err) {
			return err
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
			return ctx.Err()
		case <-deadline:
			again.Stop()
			return err
		case <-again.C:
		}
	}
}

// askTopic asks for a topic once.
func askTopic(ctx context.Context, c *conn, topic string) (described, error) {
	all, err := askTopics(ctx, c, []string{topic})
	if err != nil {
		return described{}, err
	}
	if d := all[topic]; d.err != nil {
		return described{}, c.failed(d.err, topic, "asking for topic %s", topic)
	}
	return all[topic], nil
}

// askTopics asks for topics once, nil: for all there are. The administrative client
// would answer from what it heard some seconds ago.
func askTopics(ctx context.Context, c *conn, names []string) (map[string]described, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, c.client)
	if err == nil && names != nil && len(resp.Topics) != len(names) {
		err = fmt.Errorf("the answer has %d topics", len(resp.Topics))
	}
	if err != nil {
		what := "all topics"
		if names != nil {
			what = "topic " + strings.Join(names, ", ")
		}
		return nil, c.failed(err, "", "asking for %s", what)
	}
	out := make(map[string]described, len(resp.Topics))
	for i := range resp.Topics {
		t := &resp.Topics[i]
		d := described{id: t.TopicID, internal: t.IsInternal, allowed: t.AuthorizedOperations, partitions: map[int32]led{}, err: kerr.ErrorForCode(t.ErrorCode)}
		for _, p := range t.Partitions {
			d.partitions[p.Partition] = led{leader: p.Leader, epoch: p.LeaderEpoch, inSync: len(p.ISR), replicas: len(p.Replicas), err: kerr.ErrorForCode(p.ErrorCode)}
		}
		if t.Topic != nil {
			out[*t.Topic] = d
		}
	}
	return out, nil
}

// unhealthy says what keeps rows out of the topic; empty: nothing that its partitions tell.
func (d described) unhealthy() string {
	for n := range int32(len(d.partitions)) {
		switch p := d.partitions[n]; {
		case p.err != nil:
			return fmt.Sprintf("partition %d: %v", n, p.err)
		case p.inSync < p.replicas:
			return fmt.Sprintf("partition %d has %d of %d replicas in sync, and takes nothing with fewer than the topic's min.insync.replicas", n, p.inSync, p.replicas)
		}
	}
	return ""
}

func unknownTopic(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.InconsistentTopicID)
}
