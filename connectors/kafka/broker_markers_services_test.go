//go:build services

package kafka

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/connector"
)

// TestBrokerLosesMarkers: a real coordinator answers a commit, and is told that the
// partitions know of it when they do not, as a broker alone finds when it was killed in
// between. The rows are there once, whether the job is started again, or goes on and its
// next transaction is one that is aborted.
func TestBrokerLosesMarkers(t *testing.T) {
	ctx := faultContext(t)
	proxy := shared.Brokers[0].Proxy
	lost := func(t *testing.T, w *sinkWorld, s *sink, a connector.Artifact) {
		t.Helper()
		// The partitions are still being told of the end of the one before it.
		_, err := s.stateOf(ctx, w.lane(s).txn)
		check(t, err)
		markers := proxy.AnswerFor(int16(kmsg.WriteTxnMarkers), markersWritten)
		check(t, s.Publish(ctx, []connector.Artifact{a})...)
		came(t, ctx, markers, "the end of the transaction")
		_, err = s.stateOf(ctx, w.lane(s).txn)
		check(t, err)
		if have := w.Visible(t); !slices.Equal(have, ids(0, 10)) {
			t.Fatalf("visible are %v: the partitions know of the end", have)
		}
	}
	t.Run("the process ends", func(t *testing.T) {
		w := brokerWorld(t, ctx, shared)
		s, first, second := w.begun()
		lost(t, w, s, second)
		check(t, s.Close())
		s = w.sink(2)
		out, err := s.Resolve(ctx, []connector.Artifact{first, second})
		check(t, err)
		if have := w.visible(t, 20); out[1] != connector.Published || !slices.Equal(have, ids(0, 20)) {
			t.Fatalf("resolved %v, visible are %v", out, have)
		}
	})
	t.Run("the process goes on", func(t *testing.T) {
		w := brokerWorld(t, ctx, shared, "sink.partitioner", "fixed")
		set := func(bytes string) {
			t.Helper()
			_, err := w.admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "max.message.bytes", Value: &bytes}}, w.out)
			check(t, err)
		}
		s, a := w.sink(1), w.attempt(1)
		wr, err := s.OpenWriter(ctx, a)
		check(t, err)
		first, second, third := w.seal(wr, a, 0, conntest.Rows(0, 10)), w.seal(wr, a, 1, conntest.Rows(10, 10)), w.seal(wr, a, 2, conntest.Rows(20, 10))
		check(t, s.Publish(ctx, []connector.Artifact{first})...)
		lost(t, w, s, second)
		// The next transaction will be refused by the topic, and be aborted.
		set("100")
		proxy.Mend() // the broker is connected to again
		var hangs *hangsError
		if err := s.Publish(ctx, []connector.Artifact{third})[0]; !errors.As(err, &hangs) || !errors.Is(err, connector.ErrRefused) {
			t.Fatalf("publishing behind what hangs: %v", err)
		}
		if err := s.Publish(ctx, []connector.Artifact{third})[0]; !tooLarge(err) {
			t.Fatalf("publishing what is too large: %v", err)
		}
		out, err := s.Resolve(ctx, []connector.Artifact{first, second, third})
		check(t, err)
		if have := w.visible(t, 20); out[1] != connector.Published || out[2] != connector.Sealed || !slices.Equal(have, ids(0, 20)) {
			t.Fatalf("resolved %v, visible are %v", out, have)
		}
		set("1048576")
		w.patiently(func() bool {
			err = s.Publish(ctx, []connector.Artifact{third})[0]
			return !again(err)
		})
		check(t, err)
		if have := w.visible(t, 30); !slices.Equal(have, ids(0, 30)) {
			t.Fatalf("visible are %v", have)
		}
	})
}

// markersWritten is the answer to a WriteTxnMarkers request as if it had been done.
func markersWritten(frame []byte) ([]byte, error) {
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.SetVersion(int16(binary.BigEndian.Uint16(frame[6:])))
	header := 14 + max(int(int16(binary.BigEndian.Uint16(frame[12:]))), 0) + 1 // no tags
	if len(frame) < header || !req.IsFlexible() {
		return nil, errors.New("this is no request of Kafka 4")
	}
	if err := req.ReadFrom(frame[header:]); err != nil {
		return nil, err
	}
	resp := req.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
	for _, m := range req.Markers {
		rm := kmsg.NewWriteTxnMarkersResponseMarker()
		rm.ProducerID = m.ProducerID
		for _, t := range m.Topics {
			rt := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
			rt.Topic = t.Topic
			for _, n := range t.Partitions {
				rp := kmsg.NewWriteTxnMarkersResponseMarkerTopicPartition()
				rp.Partition = n
				rt.Partitions = append(rt.Partitions, rp)
			}
			rm.Topics = append(rm.Topics, rt)
		}
		resp.Markers = append(resp.Markers, rm)
	}
	out := append(make([]byte, 4), frame[8:12]...)
	out = resp.AppendTo(append(out, 0))
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out, nil
}
