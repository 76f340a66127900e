package kafka

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/connector"
)

func TestSinkAcceptance(t *testing.T) {
	conntest.RunSink(t, func(t testing.TB) conntest.World { return newSinkWorld(t) })
}

// TestSinkFaults loses requests and answers of each kind while artefacts are
// published: what Resolve says is what readers see, and the rows are there once
// after another try.
func TestSinkFaults(t *testing.T) {
	hangUp := errors.New("hang up")
	for _, key := range []kmsg.Key{kmsg.InitProducerID, kmsg.AddPartitionsToTxn, kmsg.Produce, kmsg.EndTxn, kmsg.ListOffsets, kmsg.FindCoordinator} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", key.Name(), restart), func(t *testing.T) {
				w := newSinkWorld(t, "properties.default.api.timeout.ms", "3000")
				s := w.sink(1)
				a := attemptOf(1)
				wr, err := s.OpenWriter(w.ctx, a)
				check(t, err)
				first := w.seal(wr, a, 0, conntest.Rows(0, 10))
				check(t, s.Publish(w.ctx, []connector.Artifact{first})...)
				second := w.seal(wr, a, 1, conntest.Rows(10, 10))
				var lost atomic.Int32
				w.cluster.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
					lost.Add(1)
					return nil, hangUp, true
				})
				for _, err := range s.Publish(w.ctx, []connector.Artifact{second}) {
					t.Logf("%d lost, publishing: %v", lost.Load(), err)
				}
				if restart {
					s = w.sink(2)
				}
				w.settled(t, s, attemptOf(2), first, second, restart)
			})
		}
	}
}

// TestSinkLostAnswer commits and loses the answer: the artefact is published, and
// said to be.
func TestSinkLostAnswer(t *testing.T) {
	w := newSinkWorld(t)
	s := w.sink(1)
	a := attemptOf(1)
	wr, err := s.OpenWriter(w.ctx, a)
	check(t, err)
	x := w.seal(wr, a, 0, conntest.Rows(0, 10))
	st := s.lane(transactionalID(s.prefix, a.ID))
	p, err := decodePayload(x.Payload)
	check(t, err)
	rows, err := s.records(st, x.Header.ID, p)
	check(t, err)
	// The process dies between the commit and its note of it.
	check(t, s.transactLane(w.ctx, st, rows, st.record.with(pointOf(x.Header.ID), point{})))
	next := w.sink(2)
	out, err := next.Resolve(w.ctx, []connector.Artifact{x})
	check(t, err)
	if out[0] != connector.Published {
		t.Fatalf("it is %s", out[0])
	}
	check(t, next.Publish(w.ctx, []connector.Artifact{x})...)
	if have := w.Visible(t); !slices.Equal(have, ids(0, 10)) {
		t.Fatalf("visible are %v", have)
	}
}

// TestSinkOpenTransaction leaves a transaction open, as a process does that is
// killed: the next run ends it before it says that nothing was published.
func TestSinkOpenTransaction(t *testing.T) {
	w := newSinkWorld(t)
	s := w.sink(1)
	a := attemptOf(1)
	wr, err := s.OpenWriter(w.ctx, a)
	check(t, err)
	x := w.seal(wr, a, 0, conntest.Rows(0, 10))
	st := s.lane(transactionalID(s.prefix, a.ID))
	p, err := decodePayload(x.Payload)
	check(t, err)
	rows, err := s.records(st, x.Header.ID, p)
	check(t, err)
	check(t, st.client.BeginTransaction())
	r := st.record.with(pointOf(x.Header.ID), point{})
	check(t, produce(w.ctx, st.client, rows, &kgo.Record{Topic: commitsTopic, Partition: s.commits.partition, Key: []byte(laneKeyPrefix + st.txn), Value: r.encode()}))

	next := w.sink(2)
	out, err := next.Resolve(w.ctx, []connector.Artifact{x})
	check(t, err)
	if out[0] != connector.Absent {
		t.Fatalf("it is %s", out[0])
	}
	if err := st.client.EndTransaction(w.ctx, kgo.TryCommit); err == nil {
		t.Fatal("the killed process commits")
	}
	if have := w.Visible(t); len(have) > 0 {
		t.Fatalf("visible are %v", have)
	}
}

// TestSinkKeyed carries rows of a keyed stage, which are not read again, in the
// payload: another process publishes them.
func TestSinkKeyed(t *testing.T) {
	w := newSinkWorld(t)
	s := w.sink(1)
	a := attemptOf(1)
	a.ID.Lane, a.ID.Keyed, a.ID.Subtask, a.ID.Manifest = connector.LaneID{}, true, 2, 5
	wr, err := s.OpenWriter(w.ctx, a)
	check(t, err)
	x := w.seal(wr, a, 0, conntest.Rows(0, 10))
	next := w.sink(2)
	out, err := next.Resolve(w.ctx, []connector.Artifact{x})
	check(t, err)
	if out[0] != connector.Sealed {
		t.Fatalf("it is %s", out[0])
	}
	for range 2 {
		check(t, next.Publish(w.ctx, []connector.Artifact{x})...)
	}
	if have := w.Visible(t); !slices.Equal(have, ids(0, 10)) {
		t.Fatalf("visible are %v", have)
	}
}

// TestSinkSettled keeps the lane's record small, and the artefacts in it that
// somebody may ask for.
func TestSinkSettled(t *testing.T) {
	w := newSinkWorld(t)
	s := w.sink(1)
	a := attemptOf(1)
	wr, err := s.OpenWriter(w.ctx, a)
	check(t, err)
	var all []connector.Artifact
	for i := range uint64(6) {
		x := w.seal(wr, a, i, conntest.Rows(int64(i)*10, 10))
		check(t, s.Publish(w.ctx, []connector.Artifact{x})...)
		if i == 3 {
			check(t, s.Settled(w.ctx, x.Header.ID))
		}
		all = append(all, x)
	}
	next := w.sink(2)
	out, err := next.Resolve(w.ctx, all[3:])
	check(t, err)
	if !slices.Equal(out, []connector.Outcome{connector.Published, connector.Published, connector.Published}) {
		t.Fatalf("they are %v", out)
	}
	if n := len(next.lane(transactionalID(s.prefix, a.ID)).record.published); n != 3 {
		t.Fatalf("%d artefacts are remembered, want 3", n)
	}
}

// TestSinkRequestTimeout: requests that say how long the broker may take go by the
// option.
func TestSinkRequestTimeout(t *testing.T) {
	w := newSinkWorld(t, "properties.request.timeout.ms", "700")
	var produced, listed atomic.Int32
	listed.Store(math.MaxInt32)
	w.cluster.Control(func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		switch r := r.(type) {
		case *kmsg.ProduceRequest:
			produced.Store(r.TimeoutMillis)
		case *kmsg.ListOffsetsRequest:
			listed.Store(min(listed.Load(), r.TimeoutMillis)) // the client's own have another one
		}
		return nil, nil, false
	})
	_, err := w.sink(1).OpenWriter(w.ctx, attemptOf(1))
	check(t, err)
	if p, l := produced.Load(), listed.Load(); p != 700 || l != 700 {
		t.Errorf("produced with a time-out of %d ms, listed offsets with %d, want 700", p, l)
	}
}

// TestSinkDirectories: the same job out of another data directory is another
// owner, who may adopt the topic.
func TestSinkDirectories(t *testing.T) {
	w := newSinkWorld(t)
	s := w.sink(5)
	wr, err := s.OpenWriter(w.ctx, attemptOf(1))
	check(t, err)
	x := w.seal(wr, attemptOf(1), 0, conntest.Rows(0, 5))
	other := conntest.OwnerOf(1, 1)
	other.DataDirectory = conntest.UUID(77)
	var owned *connector.OwnedError
	if _, err := w.Open(w.ctx, other); !errors.As(err, &owned) {
		t.Fatalf("another data directory: %v", err)
	}
	other.Adopt = true
	adopted, err := w.Open(w.ctx, other)
	check(t, err)
	defer adopted.Close()
	_, err = adopted.OpenWriter(w.ctx, attemptOf(2))
	check(t, err)
	if err := s.Publish(w.ctx, []connector.Artifact{x})[0]; !errors.Is(err, connector.ErrFenced) {
		t.Fatalf("the former owner publishes: %v", err)
	}
}
