package kafkaproto

// OffsetForLeaderEpoch (23), versions 2 to 4: where a leader epoch ended, so that a
// client can see whether its position was made from records that are gone.
//
//   - The answer names the latest epoch with records that is not after the one
//     asked for, and the offset at which the next one begins; -1 and -1 for an
//     epoch from the future.
//   - Clients check the leader epoch that they believe in (errors 74, 75). 3 adds
//     the follower that asks, 4 is flexible.

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

func serveOffsetForLeaderEpoch(c *call, req *kmsg.OffsetForLeaderEpochRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewOffsetForLeaderEpochResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			rp.Partition, rp.LeaderEpoch, rp.EndOffset = p.Partition, -1, -1
			id, code := c.partition(t.Topic, p.Partition)
			if rp.ErrorCode = code; code == codeNone {
				c.epochEnd(id, p, &rp)
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (c *call) epochEnd(id topiclog.PartitionID, p kmsg.OffsetForLeaderEpochRequestTopicPartition, out *kmsg.OffsetForLeaderEpochResponseTopicPartition) {
	st, err := c.s.opts.Store.State(id)
	if err != nil {
		out.ErrorCode = codeOf(err)
		return
	}
	if out.ErrorCode = checkEpoch(p.CurrentLeaderEpoch, st.LeaderEpoch); out.ErrorCode != codeNone || p.LeaderEpoch < 0 || p.LeaderEpoch > st.LeaderEpoch {
		return
	}
	history, err := c.s.opts.Store.EpochHistory(id)
	if err != nil {
		out.ErrorCode = codeOf(err)
		return
	}
	out.LeaderEpoch, out.EndOffset = endOfEpoch(history, p.LeaderEpoch, st)
}

// endOfEpoch applies Kafka's rule to the epochs that have records. The current
// one needs none to be known.
func endOfEpoch(history []topiclog.EpochRange, epoch int32, st topiclog.PartitionState) (int32, int64) {
	if epoch == st.LeaderEpoch {
		return epoch, st.HighWatermark
	}
	found := int32(-1)
	for _, r := range history {
		if r.LeaderEpoch > epoch {
			if found < 0 {
				// Older than anything known: it ended where the known ones begin.
				found = epoch
			}
			return found, r.Start
		}
		found = r.LeaderEpoch
	}
	if found < 0 {
		// There are no records of any epoch.
		found = epoch
	}
	return found, st.HighWatermark
}
