package kafkaproto

// WriteTxnMarkers (27), versions 1 to 2: ends a producer's transaction in some
// partitions without its coordinator: for tools that end what hangs.
//
//   - A partition where the producer has no open transaction gets no marker and no
//     error. A marker of an older epoch is error 47, of an older coordinator 52.
//   - Both versions are flexible; 2 adds which rules the transaction followed, which
//     does not matter here.

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

func serveWriteTxnMarkers(c *call, req *kmsg.WriteTxnMarkersRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
	for i := range req.Markers {
		m := &req.Markers[i]
		rm := kmsg.NewWriteTxnMarkersResponseMarker()
		rm.ProducerID = m.ProducerID
		for _, t := range m.Topics {
			rt := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
			rt.Topic = t.Topic
			ref := topicRef{name: t.Topic}
			topic, code := ref.find(c.s.opts.Store)
			for _, index := range t.Partitions {
				rp := kmsg.NewWriteTxnMarkersResponseMarkerTopicPartition()
				rp.Partition = index
				if id, ok := partitionOf(&topic, index); code != codeNone || !ok {
					rp.ErrorCode = codeUnknownTopic
				} else {
					rp.ErrorCode = c.writeMarker(id, m)
				}
				rt.Partitions = append(rt.Partitions, rp)
			}
			rm.Topics = append(rm.Topics, rt)
		}
		resp.Markers = append(resp.Markers, rm)
	}
	return resp
}

func (c *call) writeMarker(id topiclog.PartitionID, m *kmsg.WriteTxnMarkersRequestMarker) int16 {
	err := c.s.opts.Store.AppendMarker(context.Background(), id, identity(m.ProducerID, m.ProducerEpoch), m.Committed, m.CoordinatorEpoch)
	if errors.Is(err, topiclog.ErrCoordinatorEpoch) {
		return codeCoordinatorFenced
	}
	return codeOf(err)
}
