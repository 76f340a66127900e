package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors/conntest/services"
	githubevents "github.com/millrace/millrace/examples/github-events"
)

// servers are what both systems read from and write to.
type servers struct {
	kafka *services.Kafka
	hdfs  *services.HDFS
	// brokerThen and hdfsThen are the servers' times when mark was called.
	brokerThen, hdfsThen time.Duration
}

func (c *config) startServers(ctx context.Context) (*servers, error) {
	s := &servers{}
	var err error
	if s.hdfs, err = services.StartHDFS(ctx, services.HDFSOptions{Dir: filepath.Join(c.dir, "hdfs")}); err != nil {
		return nil, err
	}
	s.kafka, err = services.StartKafka(ctx, services.KafkaOptions{Dir: filepath.Join(c.dir, "kafka"), JVM: []string{"-Xmx512m", "-XX:+UseSerialGC"},
		// The events have their own times, which are long ago.
		Properties: map[string]string{"log.retention.ms": "-1"}})
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *servers) close() {
	if s.kafka != nil {
		s.kafka.Close()
	}
	s.hdfs.Close()
}

// url is a directory of the cluster.
func (s *servers) url(dir string) string { return "hdfs://" + s.hdfs.Addresses[0] + dir }

// fill writes the shipped events, as often as it takes, into a topic for each type of
// event, one partition each; counts are the events of each topic.
func (s *servers) fill(ctx context.Context, events int) (counts map[string]int, err error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(s.kafka.Addrs()), kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(100), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(20*time.Millisecond), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return nil, fmt.Errorf("producing events: %w", err)
	}
	defer c.Close()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	counts = map[string]int{}
	err = githubevents.Generate(githubevents.Options{Events: events}, func(e githubevents.Event) error {
		counts[e.Topic]++
		r := &kgo.Record{Topic: e.Topic, Value: slices.Clone(e.Value), Timestamp: time.UnixMilli(e.TimestampMillis)}
		c.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				fail(err)
			}
		})
		return context.Cause(ctx)
	})
	if err == nil {
		err = c.Flush(ctx)
	}
	if err := errors.Join(err, context.Cause(ctx)); err != nil {
		return nil, fmt.Errorf("producing events: %w", err)
	}
	for _, topic := range githubevents.Topics {
		if counts[topic] == 0 {
			return nil, fmt.Errorf("%d events have none of type %s: ask for more", events, topic)
		}
	}
	return counts, nil
}

// mark begins a measurement of the servers.
func (s *servers) mark() (err error) {
	s.brokerThen, s.hdfsThen, err = s.usage()
	return err
}

// since is what the servers have taken since mark.
func (s *servers) since() (broker, hdfs time.Duration, err error) {
	broker, hdfs, err = s.usage()
	return broker - s.brokerThen, hdfs - s.hdfsThen, err
}

func (s *servers) usage() (broker, hdfs time.Duration, err error) {
	broker, _, err = s.kafka.Brokers[0].Usage()
	for _, p := range []*services.Process{s.hdfs.NameNodes[0], s.hdfs.DataNodes[0]} {
		cpu, _, perr := p.Usage()
		hdfs, err = hdfs+cpu, errors.Join(err, perr)
	}
	return broker, hdfs, err
}
