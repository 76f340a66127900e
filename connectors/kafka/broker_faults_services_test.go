//go:build services

package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/runtime/connector"
)

// impatient are options of a job that notices soon when nobody answers.
var impatient = []string{"properties.request.timeout.ms", "2000", "properties.default.api.timeout.ms", "6000", "properties.transaction.timeout.ms", "8000"}

func faultContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestBrokerConnectionFaults spoils requests of each kind between the job and a real
// broker: lost before they arrive, cut in the middle, answered in vain, never answered;
// with and without a restart of the job. What Resolve says is what readers see, and the
// rows are there once after another try.
func TestBrokerConnectionFaults(t *testing.T) {
	ctx := faultContext(t)
	hows := []services.Wrong{services.RequestLost, services.RequestCut, services.ReplyLost, services.RequestHangs, services.ReplyHangs}
	for _, key := range []kmsg.Key{kmsg.InitProducerID, kmsg.Produce, kmsg.EndTxn, kmsg.ListOffsets} {
		for i, how := range hows {
			restart := i%2 == int(key)%2
			t.Run(fmt.Sprintf("%s, %s, restart %v", key.Name(), how, restart), func(t *testing.T) {
				t.Parallel()
				w := brokerWorld(t, ctx, shared, impatient...)
				s, first, second := w.begun()
				spoilt := shared.Brokers[0].Proxy.Spoil(w.clientID(), int16(key), how)
				t.Logf("publishing: %v", s.Publish(ctx, []connector.Artifact{second})[0])
				if restart {
					check(t, s.Close())
					s = w.sink(2)
				}
				w.settled(t, s, w.attempt(2), first, second, restart)
				if key == kmsg.InitProducerID || key == kmsg.ListOffsets {
					// What is not asked for when all goes well, a restart asks for.
					_, err := w.sink(3).OpenWriter(ctx, w.attempt(9))
					check(t, err)
				}
				came(t, ctx, spoilt, "the request")
			})
		}
	}
}

// TestBrokerHangs stops a real broker for longer than jobs have patience: publishing ends
// with an error, and every row is there once when the broker goes on, whether the jobs
// are started again or not.
func TestBrokerHangs(t *testing.T) {
	ctx := faultContext(t)
	var worlds []*sinkWorld
	var sinks []*sink
	var firsts, seconds []connector.Artifact
	for range 2 {
		w := brokerWorld(t, ctx, shared, impatient...)
		s, first, second := w.begun()
		worlds, sinks, firsts, seconds = append(worlds, w), append(sinks, s), append(firsts, first), append(seconds, second)
	}
	shared.Brokers[0].Pause()
	published := make(chan error, len(sinks))
	for i, s := range sinks {
		go func() { published <- s.Publish(ctx, seconds[i:i+1])[0] }()
	}
	for range sinks {
		if err := <-published; !again(err) {
			t.Errorf("publishing while nobody answers: %v", err)
		}
	}
	shared.Brokers[0].Resume()
	check(t, sinks[1].Close())
	worlds[0].settled(t, sinks[0], worlds[0].attempt(2), firsts[0], seconds[0], false)
	worlds[1].settled(t, worlds[1].sink(2), worlds[1].attempt(2), firsts[1], seconds[1], true)
}

// TestBrokerEndsTransaction: the broker has ended a transaction that took too long before
// its commit comes, and somebody else has taken the transactional id. The lane says so,
// looks, and goes on; a run of the job that has lost does not.
func TestBrokerEndsTransaction(t *testing.T) {
	ctx := faultContext(t)
	t.Run("after its time-out", func(t *testing.T) {
		w := brokerWorld(t, ctx, shared, "properties.request.timeout.ms", "4000")
		s, first, second := w.begun(kgo.TransactionTimeout(time.Second))
		// Between the rows and their commit the job asks for the topic.
		spoilt := shared.Brokers[0].Proxy.Spoil(w.clientID(), int16(kmsg.Metadata), services.ReplyHangs)
		published := make(chan error, 1)
		go func() { published <- s.Publish(ctx, []connector.Artifact{second})[0] }()
		came(t, ctx, spoilt, "asking for the topic")
		if err := <-published; !outrun(err) || !again(err) {
			t.Errorf("committing after the time-out: %v", err)
		}
		w.settled(t, s, w.attempt(2), first, second, false)
	})
	t.Run("for another producer", func(t *testing.T) {
		w := brokerWorld(t, ctx, shared)
		s, first, second := w.begun()
		other, _ := w.dial(kgo.TransactionalID(w.lane(s).txn))
		_, _, err := other.ProducerID(ctx)
		check(t, err)
		if err := s.Publish(ctx, []connector.Artifact{second})[0]; !outrun(err) || !again(err) {
			t.Errorf("publishing with a producer that is fenced: %v", err)
		}
		w.settled(t, s, w.attempt(2), first, second, false)
	})
	t.Run("for a later run", func(t *testing.T) {
		w := brokerWorld(t, ctx, shared, "properties.request.timeout.ms", "4000")
		s, first, second := w.begun()
		spoilt := shared.Brokers[0].Proxy.Spoil(w.clientID(), int16(kmsg.EndTxn), services.RequestHangs)
		published := make(chan error, 1)
		go func() { published <- s.Publish(ctx, []connector.Artifact{second})[0] }()
		came(t, ctx, spoilt, "the commit")
		next := w.sink(2)
		if err := <-published; err == nil {
			t.Error("a run that was fenced has committed")
		}
		if _, err := s.Resolve(ctx, []connector.Artifact{second}); !errors.Is(err, connector.ErrFenced) {
			t.Errorf("a run that was fenced looks: %v", err)
		}
		w.settled(t, next, w.attempt(2), first, second, true)
	})
}

// TestBrokerTopicReplaced: the topic is deleted, then made again, while a job writes to
// it. Nothing is made or written until the job is started again.
func TestBrokerTopicReplaced(t *testing.T) {
	ctx := faultContext(t)
	w := brokerWorld(t, ctx, shared, impatient...)
	s, _, second := w.begun()
	_, err := w.admin.DeleteTopics(ctx, w.out)
	check(t, err)
	if err := s.Publish(ctx, []connector.Artifact{second})[0]; !unknownTopic(err) {
		t.Errorf("publishing to a topic that was deleted: %v", err)
	}
	_, err = w.admin.CreateTopic(ctx, 3, -1, nil, w.out)
	check(t, err) // the job has not made it
	var replaced *replacedError
	w.patiently(func() bool {
		err = s.Publish(ctx, []connector.Artifact{second})[0]
		return !again(err)
	})
	if !errors.As(err, &replaced) || !errors.Is(err, connector.ErrRefused) {
		t.Errorf("publishing to a topic made again: %v", err)
	}
	if _, err := s.OpenWriter(ctx, w.attempt(2)); !errors.As(err, &replaced) {
		t.Errorf("writing on to a topic made again: %v", err)
	}
	out, err := s.Resolve(ctx, []connector.Artifact{second})
	check(t, err)
	if have := w.Visible(t); out[0] == connector.Published || len(have) > 0 {
		t.Errorf("it is %s, visible are %v", out[0], have)
	}
	check(t, s.Close())
	next := w.sink(2)
	wr, err := next.OpenWriter(ctx, w.attempt(3))
	check(t, err)
	check(t, next.Publish(ctx, []connector.Artifact{w.seal(wr, w.attempt(3), 0, conntest.Rows(0, 20))})...)
	if have := w.visible(t, 20); !slices.Equal(have, ids(0, 20)) {
		t.Errorf("the new topic has %v", have)
	}
}

// TestBrokerLowersLimit lowers max.message.bytes of a topic below what was sealed: the
// broker refuses it, and the rows go in after somebody has raised it.
func TestBrokerLowersLimit(t *testing.T) {
	ctx := faultContext(t)
	w := brokerWorld(t, ctx, shared)
	s, first, second := w.begun()
	set := func(bytes string) {
		t.Helper()
		_, err := w.admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "max.message.bytes", Value: &bytes}}, w.out)
		check(t, err)
	}
	set("100")
	if err := s.Publish(ctx, []connector.Artifact{second})[0]; !errors.Is(err, kerr.MessageTooLarge) || !errors.Is(err, connector.ErrRefused) {
		t.Errorf("publishing what is too large: %v", err)
	}
	set("1048576")
	w.settled(t, s, w.attempt(2), first, second, false)
}
