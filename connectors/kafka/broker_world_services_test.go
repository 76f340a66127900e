//go:build services

package kafka

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/runtime/connector"
)

// shared is the broker of all tests of the package that need one alone.
var shared *services.Kafka

func TestMain(m *testing.M) {
	os.Exit(services.Main(m, 5*time.Minute, func(ctx context.Context, dir string) (_ *services.Kafka, err error) {
		shared, err = services.StartKafka(ctx, services.KafkaOptions{Dir: dir, Proxies: true, Properties: quickly(map[string]string{"inter.broker.listener.name": "PROXIED"})})
		return shared, err
	}))
}

// quickly are settings of brokers that notice soon: one that was killed is let in again
// when its session is over, and transactions are looked at for their time-out.
func quickly(more map[string]string) map[string]string {
	p := map[string]string{"broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "500",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
	for k, v := range more {
		p[k] = v
	}
	return p
}

// brokerPatience is how long a job may take to go on after a fault.
const brokerPatience = 2 * time.Minute

var jobs atomic.Int32

// jobOf is a job's id. Nobody reads past another job's open transaction in the topic of
// commits, so that 16 jobs in a row each have a partition of it for themselves.
func jobOf(n int32) connector.UUID {
	id := conntest.UUID(1)
	for binary.BigEndian.PutUint32(id[1:], uint32(n)); commitsPartition(id) != n%commitsPartitions; id[5]++ {
		if id[5] == 255 {
			id[6]++
		}
	}
	return id
}

// brokerWorld is a topic of a real broker with the sink in front of it, which comes
// through the proxy under a client id of its own. No other test has its job.
func brokerWorld(t *testing.T, ctx context.Context, k *services.Kafka, with ...string) *sinkWorld {
	t.Helper()
	n := jobs.Add(1)
	w := &sinkWorld{world: &world{t: t, ctx: ctx, addrs: strings.Split(k.ProxyAddrs(), ","), conn: New(jsonfmt.Format{})},
		with: append([]string{"properties.client.id", fmt.Sprintf("job-%d", n)}, with...), out: fmt.Sprintf("out-%d", n), job: jobOf(n), patience: brokerPatience}
	w.client, w.admin = w.dial()
	_, err := w.admin.CreateTopic(ctx, 3, -1, nil, w.out)
	check(t, err)
	return w
}

// clientID is what the world's sinks are called at the proxy.
func (w *sinkWorld) clientID() string { return w.with[1] }

// attempt is one of the world's job.
func (w *sinkWorld) attempt(epoch uint64) connector.Attempt {
	a := attemptOf(epoch)
	a.ID.Job = w.job
	return a
}

// lane is the state of the world's lane.
func (w *sinkWorld) lane(s *sink) *laneState {
	return s.lane(transactionalID(s.prefix, w.attempt(1).ID))
}

// begun is a sink with a first artefact that was published, and a second one to come.
func (w *sinkWorld) begun(opts ...kgo.Opt) (s *sink, first, second connector.Artifact) {
	w.t.Helper()
	s = w.sink(1)
	a := w.attempt(1)
	wr, err := s.OpenWriter(w.ctx, a)
	check(w.t, err)
	if st := w.lane(s); len(opts) > 0 { // another producer in place of the lane's
		st.drop()
		st.client, err = kgo.NewClient(append(s.producerOptions(st), opts...)...)
		check(w.t, err)
	}
	first = w.seal(wr, a, 0, conntest.Rows(0, 10))
	check(w.t, s.Publish(w.ctx, []connector.Artifact{first})...)
	return s, first, w.seal(wr, a, 1, conntest.Rows(10, 10))
}

// came waits until the proxy has spoilt a request.
func came(t *testing.T, ctx context.Context, spoilt *services.Spoilt, what string) {
	t.Helper()
	select {
	case <-spoilt.Came():
	case <-ctx.Done():
		t.Fatalf("%s: it did not come", what)
	}
}
