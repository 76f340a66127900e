//go:build services

package kafka

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/runtime/connector"
)

// brokerJob is a job that stands at a step of its cycle when the broker is killed.
type brokerJob struct {
	name          string
	w             *sinkWorld
	s             *sink
	first, second connector.Artifact
	ended         bool // the process has ended, too
	// end ends what it is doing, done is closed when it is over; nil: it does nothing.
	end  context.CancelFunc
	done chan struct{}
	err  error
}

// does lets the job do something in a goroutine.
func (j *brokerJob) does(ctx context.Context, f func(context.Context) error) {
	ctx, j.end = context.WithCancel(ctx)
	j.done = make(chan struct{})
	go func() {
		defer close(j.done)
		j.err = f(ctx)
	}()
}

func (j *brokerJob) publishes(ctx context.Context) error {
	return j.s.Publish(ctx, []connector.Artifact{j.second})[0]
}

// TestBrokerKilledAtEachStep kills a real broker while jobs stand at each step of an
// artefact's cycle, on either side of each request, and starts it again; the jobs go on,
// or are started again: every row is there once.
func TestBrokerKilledAtEachStep(t *testing.T) {
	ctx := faultContext(t)
	const between kmsg.Key = -1
	steps := []struct {
		name string
		key  kmsg.Key // between: none
		do   func(*brokerJob, context.Context) error
	}{
		{"before it is published", between, nil},
		{"fenced", kmsg.InitProducerID, func(j *brokerJob, ctx context.Context) error {
			_, err := j.s.OpenWriter(ctx, j.w.attempt(2))
			return err
		}},
		{"sent", kmsg.Produce, (*brokerJob).publishes},
		{"committed", kmsg.EndTxn, (*brokerJob).publishes},
		{"after it was published", between, (*brokerJob).publishes},
	}
	var all []*brokerJob
	broker := shared.Brokers[0]
	for _, step := range steps {
		hows := []services.Wrong{services.RequestHangs, services.ReplyHangs}
		if step.key == between {
			hows = hows[:1]
		}
		for _, how := range hows {
			for _, ended := range []bool{false, true} {
				j := &brokerJob{name: fmt.Sprintf("%s, %s, process ended %v", step.name, how, ended), ended: ended}
				if step.key == between {
					j.name = fmt.Sprintf("%s, process ended %v", step.name, ended)
				}
				j.w = brokerWorld(t, ctx, shared)
				j.s, j.first, j.second = j.w.begun()
				all = append(all, j)
				switch {
				case step.do == nil:
				case step.key == between:
					check(t, step.do(j, ctx))
				default:
					spoilt := broker.Proxy.Spoil(j.w.clientID(), int16(step.key), how)
					j.does(ctx, func(ctx context.Context) error { return step.do(j, ctx) })
					came(t, ctx, spoilt, j.name)
				}
			}
		}
	}
	broker.Kill()
	for _, j := range all {
		if j.ended && j.done != nil {
			j.end()
			<-j.done
		}
	}
	check(t, broker.Start(ctx))
	for _, j := range all {
		t.Run(j.name, func(t *testing.T) {
			j.w.t = t
			if j.done != nil && !j.ended {
				<-j.done
				t.Logf("after %v: %v", j.name, j.err)
				j.end()
			}
			if j.ended {
				check(t, j.s.Close())
				j.s = j.w.sink(2)
			}
			j.w.settled(t, j.s, j.w.attempt(3), j.first, j.second, j.ended)
		})
	}
}

// TestBrokerUpsert is upserts on a real broker, which is killed between the two
// processes.
func TestBrokerUpsert(t *testing.T) {
	ctx := faultContext(t)
	w := &world{t: t, ctx: ctx, addrs: []string{shared.Brokers[0].Addr}}
	w.client, w.admin = w.dial()
	w.upserts(t, func() {
		shared.Brokers[0].Kill()
		check(t, shared.Brokers[0].Start(ctx))
	})
}
