package kafka

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/connector"
)

// TestSinkHangingTransaction loses the end of a transaction as brokers do that start
// again: its commit was answered, the coordinator calls it complete, or aborted, and
// the partitions were never told.
func TestSinkHangingTransaction(t *testing.T) {
	for _, state := range []string{"CompleteCommit", "CompleteAbort"} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", state, restart), func(t *testing.T) {
				w := newSinkWorld(t)
				s := w.sink(1)
				a := attemptOf(1)
				wr, err := s.OpenWriter(w.ctx, a)
				check(t, err)
				first := w.seal(wr, a, 0, conntest.Rows(0, 10))
				check(t, s.Publish(w.ctx, []connector.Artifact{first})...)
				second := w.seal(wr, a, 1, conntest.Rows(10, 10))
				st := s.lane(transactionalID(s.prefix, a.ID))
				id, epoch, err := st.client.ProducerID(w.ctx)
				check(t, err)
				w.cluster.ControlKey(int16(kmsg.EndTxn), func(req kmsg.Request) (kmsg.Response, error, bool) {
					resp := req.ResponseKind().(*kmsg.EndTxnResponse)
					resp.ProducerID, resp.ProducerEpoch = id, epoch
					return resp, nil, true
				})
				check(t, s.Publish(w.ctx, []connector.Artifact{second})...)
				if have := w.Visible(t); !slices.Equal(have, ids(0, 10)) {
					t.Fatalf("visible are %v", have)
				}
				w.cluster.ControlKey(int16(kmsg.DescribeTransactions), func(req kmsg.Request) (kmsg.Response, error, bool) {
					if !slices.Contains(req.(*kmsg.DescribeTransactionsRequest).TransactionalIDs, st.txn) {
						return nil, nil, false
					}
					resp := req.ResponseKind().(*kmsg.DescribeTransactionsResponse)
					x := kmsg.NewDescribeTransactionsResponseTransactionState()
					x.TransactionalID, x.State, x.ProducerID, x.ProducerEpoch = st.txn, state, id, epoch
					resp.TransactionStates = append(resp.TransactionStates, x)
					return resp, nil, true
				})
				w.cluster.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
					if x := req.(*kmsg.InitProducerIDRequest).TransactionalID; x == nil || *x != st.txn {
						return nil, nil, false
					}
					resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
					resp.ProducerID, resp.ProducerEpoch = id, epoch
					return resp, nil, true
				})
				if restart {
					s = w.sink(2)
				}
				out, err := s.Resolve(w.ctx, []connector.Artifact{first, second})
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
