//go:build services

package kafka

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/runtime/connector"
)

// cluster is three brokers, each of which has every partition; two have to be in sync.
func cluster(t *testing.T, ctx context.Context) *services.Kafka {
	t.Helper()
	k, err := services.StartKafka(ctx, services.KafkaOptions{Dir: t.TempDir(), Brokers: 3, Proxies: true, JVM: services.SmallJVM(160), Properties: quickly(nil)})
	check(t, err)
	t.Cleanup(k.Close)
	return k
}

// inSync waits until all replicas of the world's topic and of those of the brokers are.
func (w *sinkWorld) inSync() {
	w.t.Helper()
	var last string
	w.patiently(func() bool {
		last = ""
		all, err := w.admin.ListTopicsWithInternal(w.ctx, w.out, commitsTopic, "__transaction_state")
		if err != nil {
			last = err.Error()
			return false
		}
		all.EachPartition(func(p kadm.PartitionDetail) {
			if len(p.ISR) < 3 {
				last = fmt.Sprintf("%s/%d: %v in sync of %v", p.Topic, p.Partition, p.ISR, p.Replicas)
			}
		})
		return last == ""
	})
	if last != "" {
		w.t.Fatal(last)
	}
}

// TestClusterLosesBrokers kills one of three brokers in the middle of transactions, so
// that replicas are lost, leaders move, and the coordinator does; then two at once, so
// that there is no quorum. Rows go in as soon as the cluster takes them.
func TestClusterLosesBrokers(t *testing.T) {
	ctx := faultContext(t)
	k := cluster(t, ctx)
	type job struct {
		w             *sinkWorld
		s             *sink
		first, second connector.Artifact
	}
	begin := func(with ...string) *job {
		j := &job{w: brokerWorld(t, ctx, k, with...)}
		j.s, j.first, j.second = j.w.begun()
		return j
	}
	settle := func(j *job, restart bool) {
		t.Helper()
		if restart {
			check(t, j.s.Close())
			j.s = j.w.sink(2)
		}
		j.w.settled(t, j.s, j.w.attempt(2), j.first, j.second, restart)
	}
	published := make(chan error, 2)
	publish := func(j *job) { published <- j.s.Publish(ctx, []connector.Artifact{j.second})[0] }

	stays, restarts, strict, without := begin(), begin(), begin(impatient...), begin(impatient...)
	three := "3"
	_, err := strict.w.admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "min.insync.replicas", Value: &three}}, strict.w.out)
	check(t, err)
	without.w.inSync()
	// Both stand at their commits, and one of the two coordinators dies.
	coordinator := 0
	for _, j := range []*job{stays, restarts} {
		var commits []*services.Spoilt
		for _, b := range k.Brokers {
			commits = append(commits, b.Proxy.Spoil(j.w.clientID(), int16(kmsg.EndTxn), services.RequestHangs))
		}
		go publish(j)
		select {
		case <-commits[0].Came():
			coordinator = 0
		case <-commits[1].Came():
			coordinator = 1
		case <-commits[2].Came():
			coordinator = 2
		case <-ctx.Done():
			t.Fatal("the commit did not come")
		}
	}
	k.Brokers[coordinator].Kill()
	for _, b := range k.Brokers {
		b.Proxy.Mend()
	}
	t.Logf("publishing: %v, %v", <-published, <-published)
	settle(stays, false)
	settle(restarts, true)
	publish(strict)
	if err := <-published; !again(err) || !strings.Contains(err.Error(), "min.insync.replicas") {
		t.Errorf("publishing with two of three replicas: %v", err)
	}
	check(t, k.Brokers[coordinator].Start(ctx))
	settle(strict, false)
	strict.w.inSync()

	others := []*services.KafkaBroker{k.Brokers[(coordinator+1)%3], k.Brokers[(coordinator+2)%3]}
	for _, b := range others {
		b.Kill()
	}
	publish(without)
	if err := <-published; !again(err) {
		t.Errorf("publishing with one of three brokers: %v", err)
	}
	started := make(chan error, len(others))
	for _, b := range others {
		go func() { started <- b.Start(ctx) }()
	}
	check(t, <-started, <-started)
	settle(without, false)
}
