package kafkaproto

// OffsetForLeaderEpoch (23), versions 2 to 4: where a leader epoch ended, so that a
// client can see whether its position was made from records that are gone.
//
//   - The answer names the latest epoch with records that is not after the one
//     asked for, and the offset after its last record; -1 and -1 for an epoch from
//     the future.
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

// endOfEpoch finds where an epoch ended in the epochs that have records; the
// current one needs none to be known. The end is that of its last record, not the
// start of the next: offsets in between were jumped over when an unclean end took
// records away, and a client that stands there must learn of it.
func endOfEpoch(history []topiclog.EpochRange, epoch int32, st topiclog.PartitionState) (int32, int64) {
	if epoch == st.LeaderEpoch || len(history) == 0 {
		return epoch, st.HighWatermark
	}
	// Older than anything known: it ended where the known ones begin.
	found, end := epoch, history[0].Start
	for _, r := range history {
		if r.LeaderEpoch > epoch {
			break
		}
		found, end = r.LeaderEpoch, r.End
	}
	return found, end
}
