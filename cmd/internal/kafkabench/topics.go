package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// createTopics makes topics as the server's system has them, a few hundred partitions
// a request, and waits until the server has them all. (Kafka's own tool refuses
// options that it does not know.)
func createTopics(ctx context.Context, s *server, partitions int, names ...string) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.RequestTimeoutOverhead(time.Minute))
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	defer c.Close()
	admin := kadm.NewClient(c)
	admin.SetTimeoutMillis(int32(createTime.Milliseconds()))
	configs := map[string]*string{}
	if k, v := topicConfig(s.name); k != "" {
		configs[k] = &v
	}
	atOnce := max(600/partitions, 1)
	for at := 0; at < len(names); at += atOnce {
		part := names[at:min(at+atOnce, len(names))]
		made, err := admin.CreateTopics(ctx, int32(partitions), 1, configs, part...)
		if err == nil {
			err = made.Error()
		}
		if err == nil {
			err = awaitLeaders(ctx, admin, partitions, part)
		}
		if err != nil {
			return fmt.Errorf("making topics: %w", err)
		}
	}
	return nil
}

// createTime bounds how long a server may take for the topics of one request.
const createTime = 2 * time.Minute

// awaitLeaders waits until every partition can be written.
func awaitLeaders(ctx context.Context, admin *kadm.Client, partitions int, names []string) error {
	const pause = 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, createTime)
	defer cancel()
	for {
		got, err := admin.ListEndOffsets(ctx, names...)
		if err != nil && ctx.Err() != nil {
			return err
		}
		ready := 0
		got.Each(func(o kadm.ListedOffset) {
			if o.Err == nil && o.Offset >= 0 {
				ready++
			}
		})
		if ready == partitions*len(names) {
			return nil
		}
		if err := wait(ctx, pause); err != nil {
			return fmt.Errorf("%d of %d partitions can be written: %w", ready, partitions*len(names), err)
		}
	}
}
