package kafka

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/keyvalue"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// TestSinkRecords: keys and partitions are those that Kafka's own producer gives
// (murmur2 of the key), values are the format's, timestamps the column's.
func TestSinkRecords(t *testing.T) {
	w := newWorld(t)
	w.topic("keyed", 5, nil)
	for name, with := range map[string][]string{exactlyOnce: nil, atLeastOnce: {keyGuarantee, atLeastOnce, keyCompression, "zstd"}} {
		t.Run(name, func(t *testing.T) {
			cols := columns(field("id", types.NewBigInt()), field("at", types.NewTimestampLTZ(3)))
			cols[1].Metadata = "timestamp"
			table := w.table("keyed", cols, with...)
			table.PrimaryKey = []int{0}
			s, err := w.conn.OpenSink(w.ctx, table, conntest.OwnerOf(1, 1))
			check(t, err)
			defer s.Close()
			a := attemptOf(1)
			wr, err := s.OpenWriter(w.ctx, a)
			check(t, err)
			b := new(batch.Batch)
			b.Reset(table.Schema(nil))
			for i := range b.Cols {
				b.Cols[i].Reset(b.Schema.Fields[i].Type, 20)
			}
			for i := range 20 {
				b.Cols[0].I64[i], b.Cols[1].I64[i] = int64(i), int64(1_700_000_000_000+i)*b.Cols[1].Type.UnitsPerSecond()/1000
			}
			b.Len = 20
			x := (&sinkWorld{world: w}).seal(wr, a, 0, b)
			before := len(w.committed("keyed"))
			check(t, s.Publish(w.ctx, []connector.Artifact{x})...)
			have := w.committed("keyed")
			if len(have) != before+20 {
				t.Fatalf("%d records after %d", len(have), before)
			}
			official := kgo.StickyKeyPartitioner(nil).ForTopic("keyed")
			for _, r := range have {
				var row struct{ ID int64 }
				check(t, json.Unmarshal(r.Value, &row))
				if want := fmt.Sprintf(`{"id":%d}`, row.ID); string(r.Key) != want || string(r.Value) != want || r.Timestamp.UnixMilli() != 1_700_000_000_000+row.ID {
					t.Errorf("record %s %s at %s", r.Key, r.Value, r.Timestamp)
				}
				if want := official.Partition(&kgo.Record{Key: r.Key}, 5); int(r.Partition) != want {
					t.Errorf("key %s is in partition %d, want %d", r.Key, r.Partition, want)
				}
			}
		})
	}
}

// TestSinkFixed: with partitioner fixed the rows of a lane are in one partition, whatever
// their keys, those of a subtask in the one of its number.
func TestSinkFixed(t *testing.T) {
	w := newWorld(t)
	for topic, keyed := range map[string]bool{"lane": false, "subtask": true} {
		w.topic(topic, 3, nil)
		table := w.table(topic, conntest.Columns(), keyvalue.KeyPartitioner, keyvalue.Fixed)
		table.PrimaryKey = []int{0}
		s, err := w.conn.OpenSink(w.ctx, table, conntest.OwnerOf(1, 1))
		check(t, err)
		defer s.Close()
		a := attemptOf(1)
		if keyed {
			a.ID.Keyed, a.ID.Subtask, a.ID.Manifest, a.ID.Lane = true, 5, 1, connector.LaneID{}
		}
		wr, err := s.OpenWriter(w.ctx, a)
		check(t, err)
		for i := range uint64(3) {
			x := (&sinkWorld{world: w}).seal(wr, a, i, conntest.Rows(int64(i)*10, 10))
			check(t, s.Publish(w.ctx, []connector.Artifact{x})...)
		}
		want := keyvalue.FixedPlace(a.ID) % 3
		if keyed && want != 2 {
			t.Errorf("subtask 5 goes to partition %d of 3", want)
		}
		have := w.committed(topic)
		for _, r := range have {
			if r.Partition != want {
				t.Errorf("%s: a record is in partition %d, want %d", topic, r.Partition, want)
			}
		}
		if len(have) != 30 {
			t.Errorf("%s: %d records", topic, len(have))
		}
	}
}

// TestSinkLarge finds rows above max.message.bytes before they are taken, and
// refuses an artefact that has become too large.
func TestSinkLarge(t *testing.T) {
	w := newSinkWorld(t)
	w.topic("small", 1, map[string]string{"max.message.bytes": "2000"})
	table := w.table("small", columns(field("id", types.NewBigInt()), field("name", types.NewString())))
	s, err := w.conn.OpenSink(w.ctx, table, conntest.OwnerOf(1, 1))
	check(t, err)
	defer s.Close()
	wr, err := s.OpenWriter(w.ctx, attemptOf(1))
	check(t, err)
	b := new(batch.Batch)
	b.Reset(table.Schema(nil))
	for i := range b.Cols {
		b.Cols[i].Reset(b.Schema.Fields[i].Type, 3)
	}
	for _, n := range []int{10, 2000, 1000} {
		v := &b.Cols[1]
		v.Data = append(v.Data, strings.Repeat("x", n)...)
		v.Offsets = append(v.Offsets, int32(len(v.Data)))
	}
	b.Len = 3
	bad := wr.(connector.RowChecker).Check(b, nil, nil)
	if len(bad) != 1 || bad[0].Row != 1 || bad[0].Code != batch.CodeSinkRefused {
		t.Fatalf("bad rows are %v", bad)
	}
	x := w.seal(wr, attemptOf(1), 0, conntest.Rows(0, 1))
	w.cluster.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		return producedWith(req.(*kmsg.ProduceRequest), kerr.MessageTooLarge), nil, true
	})
	if err := s.Publish(w.ctx, []connector.Artifact{x})[0]; !errors.Is(err, connector.ErrRefused) || !errors.Is(err, kerr.MessageTooLarge) {
		t.Fatalf("publishing: %v", err)
	}
}

// producedWith answers a produce request with an error for every partition.
func producedWith(req *kmsg.ProduceRequest, e *kerr.Error) *kmsg.ProduceResponse {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, e.Code
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// TestSinkClasses: which failures are worth another try, and what they say.
func TestSinkClasses(t *testing.T) {
	for _, x := range []struct {
		key   kmsg.Key
		err   *kerr.Error
		retry bool
		says  string
	}{
		{kmsg.Produce, kerr.TopicAuthorizationFailed, false, "the user needs Write"},
		{kmsg.InitProducerID, kerr.TransactionalIDAuthorizationFailed, false, "sink.transactional-id-prefix"},
		{kmsg.InitProducerID, kerr.InvalidTransactionTimeout, false, "transaction.max.timeout.ms"},
		{kmsg.Produce, kerr.InvalidProducerEpoch, true, "ended the transaction"},
		{kmsg.EndTxn, kerr.ProducerFenced, true, "ended the transaction"},
	} {
		t.Run(x.err.Message, func(t *testing.T) {
			w := newSinkWorld(t, "properties.default.api.timeout.ms", "3000")
			s := w.sink(1)
			a := attemptOf(1)
			wr, err := s.OpenWriter(w.ctx, a)
			check(t, err)
			art := w.seal(wr, a, 0, conntest.Rows(0, 5))
			w.cluster.ControlKey(int16(x.key), func(req kmsg.Request) (kmsg.Response, error, bool) {
				w.cluster.KeepControl()
				switch req := req.(type) {
				case *kmsg.ProduceRequest:
					return producedWith(req, x.err), nil, true
				case *kmsg.InitProducerIDRequest:
					resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
					resp.ErrorCode = x.err.Code
					return resp, nil, true
				case *kmsg.EndTxnRequest:
					resp := req.ResponseKind().(*kmsg.EndTxnResponse)
					resp.ErrorCode = x.err.Code
					return resp, nil, true
				}
				return nil, nil, false
			})
			if x.key == kmsg.InitProducerID {
				_, err = s.OpenWriter(w.ctx, attemptOf(2))
			} else {
				err = s.Publish(w.ctx, []connector.Artifact{art})[0]
			}
			var r connector.Retryable
			if !errors.As(err, &r) || r.Retryable() != x.retry || !errors.Is(err, x.err) || !strings.Contains(err.Error(), x.says) {
				t.Fatalf("the error is %v", err)
			}
		})
	}
}
