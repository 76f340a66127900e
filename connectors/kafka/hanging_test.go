package kafka

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/runtime/connector"
)

// TestSinkHangingTransaction loses the end of a transaction as brokers do that start
// again: its commit was answered, the coordinator calls it complete, or aborted, and
// the partitions were never told.
func TestSinkHangingTransaction(t *testing.T) {
	for _, state := range []string{"CompleteCommit", "CompleteAbort"} {
		for _, restart := range []bool{false, true} {
			if state == "CompleteAbort" && !restart {
				continue // who has the answer knows better
			}
			t.Run(fmt.Sprintf("%s, restart %v", state, restart), func(t *testing.T) {
				w := newSinkWorld(t)
				s := w.sink(1)
				all, st, id, epoch := w.lost(s, 2)
				w.hang(st.txn, state, id, epoch)
				if restart {
					s = w.sink(2)
				}
				out, err := s.Resolve(w.ctx, all)
				check(t, err)
				want, rows := connector.Published, ids(0, 20)
				if state == "CompleteAbort" {
					want, rows = connector.Absent, ids(0, 10)
				}
				if have := w.Visible(t); out[0] != connector.Published || out[1] != want || !slices.Equal(have, rows) {
					t.Fatalf("resolved %v, visible are %v", out, have)
				}
			})
		}
	}
}

// loseEnd answers the next EndTxn without ending anything.
func (w *sinkWorld) loseEnd(id int64, epoch int16) {
	w.cluster.ControlKey(int16(kmsg.EndTxn), func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.EndTxnResponse)
		resp.ProducerID, resp.ProducerEpoch = id, epoch
		return resp, nil, true
	})
}

// hang has the coordinator call the transaction that is open complete, and its producer be
// initialized once without ending it.
func (w *sinkWorld) hang(txn, state string, id int64, epoch int16) {
	w.cluster.ControlKey(int16(kmsg.DescribeTransactions), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if !slices.Contains(req.(*kmsg.DescribeTransactionsRequest).TransactionalIDs, txn) {
			return nil, nil, false
		}
		return inState(req, txn, state, id, epoch), nil, true
	})
	w.cluster.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if x := req.(*kmsg.InitProducerIDRequest).TransactionalID; x == nil || *x != txn {
			return nil, nil, false
		}
		return initialized(req, id, epoch), nil, true
	})
}

// inState answers what the coordinator knows of a transactional id.
func inState(req kmsg.Request, txn, state string, id int64, epoch int16) *kmsg.DescribeTransactionsResponse {
	resp := req.ResponseKind().(*kmsg.DescribeTransactionsResponse)
	x := kmsg.NewDescribeTransactionsResponseTransactionState()
	x.TransactionalID, x.State, x.ProducerID, x.ProducerEpoch = txn, state, id, epoch
	resp.TransactionStates = append(resp.TransactionStates, x)
	return resp
}

// initialized answers a producer without ending anything.
func initialized(req kmsg.Request, id int64, epoch int16) *kmsg.InitProducerIDResponse {
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = id, epoch
	return resp
}

// TestSinkGoesOn loses the end of a transaction in the same way, and then the connections of
// the producer that is to go on: it looks first, and writes nothing behind what hangs.
func TestSinkGoesOn(t *testing.T) {
	w := newSinkWorld(t, "sink.partitioner", "fixed")
	s := w.sink(1)
	all, st, id, epoch := w.lost(s, 3)
	w.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		return nil, errors.New("hang up"), true
	})
	var ended atomic.Bool
	w.cluster.ControlKey(int16(kmsg.DescribeTransactions), func(req kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		if ended.Load() || !slices.Contains(req.(*kmsg.DescribeTransactionsRequest).TransactionalIDs, st.txn) {
			return nil, nil, false
		}
		return inState(req, st.txn, "CompleteCommit", id, epoch), nil, true
	})
	var hangs *hangsError
	if err := s.Publish(w.ctx, all[2:])[0]; !errors.As(err, &hangs) || !again(err) || !errors.Is(err, connector.ErrRefused) {
		t.Fatalf("publishing behind what hangs: %v", err)
	}
	if have := w.Visible(t); !slices.Equal(have, ids(0, 10)) {
		t.Fatalf("visible are %v", have)
	}
	w.cluster.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
		ended.Store(true)
		return initialized(req, id, epoch), nil, true
	})
	check(t, s.Publish(w.ctx, all[2:])...)
	if have := w.Visible(t); !slices.Equal(have, ids(0, 30)) {
		t.Fatalf("visible are %v", have)
	}
}

// TestSinkUndecided: a transaction hangs, and its coordinator has forgotten how it ended. The
// lane says so, and does not write, which would decide it.
func TestSinkUndecided(t *testing.T) {
	for name, x := range map[string]struct {
		state string
		later int16 // epochs after the one that hangs
		in    bool  // the transaction that is open has the partition, too
	}{
		"forgotten":                      {"Empty", 1, false},
		"another one has the partition":  {"Ongoing", 1, true},
		"another one is elsewhere":       {"Ongoing", 1, false},
		"another one has the same epoch": {"Ongoing", 0, false}, // before Kafka 4
	} {
		t.Run(name, func(t *testing.T) {
			w := newSinkWorld(t, "properties.default.api.timeout.ms", "1000")
			s := w.sink(1)
			st := s.lane(transactionalID(s.prefix, attemptOf(1).ID))
			c, _ := w.dial(kgo.TransactionalID(st.txn))
			check(t, c.BeginTransaction())
			check(t, c.ProduceSync(w.ctx, &kgo.Record{Topic: w.out, Partition: 1, Value: []byte("{}")}).FirstErr())
			id, epoch, err := c.ProducerID(w.ctx)
			check(t, err)
			w.cluster.ControlKey(int16(kmsg.DescribeTransactions), func(req kmsg.Request) (kmsg.Response, error, bool) {
				w.cluster.KeepControl()
				resp := inState(req, st.txn, x.state, id, epoch+x.later)
				if txn := &resp.TransactionStates[0]; x.in {
					txn.Topics = append(txn.Topics, kmsg.DescribeTransactionsResponseTransactionStateTopic{Topic: w.out, Partitions: []int32{1}})
				}
				return resp, nil, true
			})
			var undecided *undecidedError
			if _, err := s.OpenWriter(w.ctx, attemptOf(1)); !errors.As(err, &undecided) || !again(err) {
				t.Fatalf("opening a writer: %v", err)
			}
			if undecided.at.topic != w.out || undecided.at.partition != 1 || undecided.at.start != 0 {
				t.Errorf("it is said to be %v", undecided.at)
			}
			// Nobody has ended it.
			check(t, c.EndTransaction(w.ctx, kgo.TryCommit))
		})
	}
}

// TestSinkForeignTransaction: a transaction of somebody else that stays open in the topic of
// commits is named by the error.
func TestSinkForeignTransaction(t *testing.T) {
	w := newSinkWorld(t, "properties.default.api.timeout.ms", "1000", "properties.transaction.timeout.ms", "1000")
	s := w.sink(1)
	c, _ := w.dial(kgo.TransactionalID("another-lane"), kgo.TransactionTimeout(time.Minute))
	check(t, c.BeginTransaction())
	check(t, c.ProduceSync(w.ctx, &kgo.Record{Topic: commitsTopic, Partition: s.commits.partition, Key: []byte("k"), Value: []byte("v")}).FirstErr())
	_, err := s.OpenWriter(w.ctx, attemptOf(1))
	if err == nil || !strings.Contains(err.Error(), "another-lane") {
		t.Fatalf("opening a writer: %v", err)
	}
}
