package kafka

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/connector"
)

// lost is a lane with n artefacts. Two are published, and the brokers lost the end of the
// second.
func (w *sinkWorld) lost(s *sink, n uint64) (all []connector.Artifact, st *laneState, id int64, epoch int16) {
	w.t.Helper()
	a := attemptOf(1)
	wr, err := s.OpenWriter(w.ctx, a)
	check(w.t, err)
	for i := range n {
		all = append(all, w.seal(wr, a, i, conntest.Rows(int64(i)*10, 10)))
	}
	check(w.t, s.Publish(w.ctx, all[:1])...)
	st = s.lane(transactionalID(s.prefix, a.ID))
	id, epoch, err = st.client.ProducerID(w.ctx)
	check(w.t, err)
	w.loseEnd(id, epoch)
	check(w.t, s.Publish(w.ctx, all[1:2])...)
	if have := w.Visible(w.t); !slices.Equal(have, ids(0, 10)) {
		w.t.Fatalf("visible are %v", have)
	}
	return all, st, id, epoch
}

// TestSinkMendIsCut: the transaction that ends what hangs is begun, and its own end does not
// come through. An abort of it would hide what was committed.
func TestSinkMendIsCut(t *testing.T) {
	w := newSinkWorld(t)
	s := w.sink(1)
	all, st, id, epoch := w.lost(s, 2)
	w.hang(st.txn, "CompleteCommit", id, epoch)
	var cut atomic.Bool
	w.cluster.ControlKey(int16(kmsg.EndTxn), func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.EndTxnResponse)
		resp.ErrorCode = kerr.UnknownServerError.Code
		cut.Store(true)
		return resp, nil, true
	})
	if _, err := s.Resolve(w.ctx, all); err == nil || !cut.Load() {
		t.Fatalf("ending what hangs: %v, cut: %v", err, cut.Load())
	}
	out, err := s.Resolve(w.ctx, all)
	check(t, err)
	if have := w.visible(t, 20); out[1] != connector.Published || !slices.Equal(have, ids(0, 20)) {
		t.Fatalf("resolved %v, visible are %v", out, have)
	}
}

// TestSinkMixed: behind a committed transaction that hangs the coordinator has another one
// open in the same partition. The lane aborts neither, and says what will be hidden.
func TestSinkMixed(t *testing.T) {
	w := newSinkWorld(t)
	s := w.sink(1)
	all, st, id, epoch := w.lost(s, 2)
	var mixed *mixedError
	if _, err := s.Resolve(w.ctx, all); !errors.As(err, &mixed) || again(err) || !strings.Contains(err.Error(), "read_uncommitted") {
		t.Fatalf("resolving: %v", err)
	}
	check(t, s.withNamed(func(c *kgo.Client) error { return s.endTxn(w.ctx, c, st.txn, &mend{id, epoch, true}) }))
	if have := w.visible(t, 20); !slices.Equal(have, ids(0, 20)) {
		t.Fatalf("visible are %v", have)
	}
}

// TestSinkFoundBetween: that a transaction hangs is found while none is under way. The next one
// writes nothing, over connections that live neither.
func TestSinkFoundBetween(t *testing.T) {
	w := newSinkWorld(t)
	s := w.sink(1)
	a := attemptOf(1)
	wr, err := s.OpenWriter(w.ctx, a)
	check(t, err)
	first, second := w.seal(wr, a, 0, conntest.Rows(0, 10)), w.seal(wr, a, 1, conntest.Rows(10, 10))
	check(t, s.Publish(w.ctx, []connector.Artifact{first})...)
	st := s.lane(transactionalID(s.prefix, a.ID))
	st.ending.found(&hangsError{st.txn, nil})
	var wrote atomic.Int32
	w.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		wrote.Add(1)
		return nil, nil, false
	})
	var hangs *hangsError
	if err := s.Publish(w.ctx, []connector.Artifact{second})[0]; !errors.As(err, &hangs) || !errors.Is(err, connector.ErrRefused) || wrote.Load() != 0 {
		t.Fatalf("publishing behind what hangs: %v, after %d requests", err, wrote.Load())
	}
	check(t, s.Publish(w.ctx, []connector.Artifact{second})...)
	if have := w.visible(t, 20); wrote.Load() == 0 || !slices.Equal(have, ids(0, 20)) {
		t.Fatalf("visible are %v", have)
	}
}

// TestRightsThatBrokersDoNotTell: whoever was told of a topic may describe it; an answer
// without that right says nothing of the others.
func TestRightsThatBrokersDoNotTell(t *testing.T) {
	c := &conn{access: &access{principal: "User:u", needs: []kmsg.ACLOperation{kmsg.ACLOperationWrite}}}
	for allowed, told := range map[int32]bool{math.MinInt32: false, 0: false, 1 << kmsg.ACLOperationDescribe: true,
		1<<kmsg.ACLOperationDescribe | 1<<kmsg.ACLOperationWrite: false} {
		if err := c.permitted(described{allowed: allowed}, "t"); (err != nil) != told || told && !errors.Is(err, kerr.TopicAuthorizationFailed) {
			t.Errorf("operations %x: %v", allowed, err)
		}
	}
}
