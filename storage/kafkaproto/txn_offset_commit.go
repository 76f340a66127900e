package kafkaproto

// TxnOffsetCommit (28), versions 0 to 5: a group's positions that become visible
// when the producer's transaction is committed.
//
//   - From 3, which is flexible, a member says in which generation it is (errors 22,
//     25, 82); without that anybody may.
//   - Before 5 the group must have been added to the transaction (error 48); from 5 it
//     is by this request. The producer's errors are those of AddPartitionsToTxn.
//   - 2 adds the leader epoch, 4 an error code.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

func serveTxnOffsetCommit(c *call, req *kmsg.TxnOffsetCommitRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.TxnOffsetCommitResponse)
	since, code := c.mayCommitInTxn(req)
	var cursors []topiclog.Cursor
	var places [][2]int // of the cursors in the response
	for i, t := range req.Topics {
		rt := kmsg.NewTxnOffsetCommitResponseTopic()
		rt.Topic = t.Topic
		ref := topicRef{name: t.Topic}
		topic, missing := ref.find(c.s.opts.Store)
		for j, p := range t.Partitions {
			rp := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			rp.Partition = p.Partition
			id, ok := partitionOf(&topic, p.Partition)
			switch {
			case code != codeNone:
				rp.ErrorCode = code
			case missing != codeNone || !ok:
				rp.ErrorCode = codeUnknownTopic
			case since != nil && !hadSince(since, topicPart{topic.ID, p.Partition}, req.Generation):
				rp.ErrorCode = codeIllegalGeneration
			case p.Metadata != nil && len(*p.Metadata) > maxCommitMetadata:
				rp.ErrorCode = codeOffsetMetadataTooLarge
			case p.Offset < 0:
				rp.ErrorCode = codeInvalidRequest
			default:
				cur := topiclog.Cursor{Partition: id, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch}
				if p.Metadata != nil {
					cur.Metadata = *p.Metadata
				}
				cursors, places = append(cursors, cur), append(places, [2]int{i, j})
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	if len(cursors) == 0 {
		return resp
	}
	err := c.s.opts.Store.CommitCursorsInTransaction(context.Background(), req.TransactionalID, identity(req.ProducerID, req.ProducerEpoch),
		req.Group, cursors, c.version >= versionOffsetCommitJoins)
	for _, at := range places {
		resp.Topics[at[0]].Partitions[at[1]].ErrorCode = transactionCode(err, c.version >= 3)
	}
	return resp
}

// mayCommitInTxn is mayCommit for a transaction. Every version may come from a member
// of the newer protocol, and none knows error 113 (stale member epoch).
func (c *call) mayCommitInTxn(req *kmsg.TxnOffsetCommitRequest) (since map[topicPart]int32, code int16) {
	switch {
	case req.Group == "" || len(req.Group) > maxGroupName:
		return nil, codeInvalidGroupID
	case subscribedByJob(c.s.opts.Store, req.Group):
		return nil, codeUnknownMemberID
	case c.version < 3 || req.Generation < 0 && req.MemberID == "" && req.InstanceID == nil:
		return nil, codeNone
	}
	const newest = 9 // of OffsetCommit: the first that members of the newer protocol use
	since, code = c.s.groups.mayCommit(newest, req.Group, req.MemberID, req.InstanceID, req.Generation)
	if code == codeStaleMemberEpoch {
		code = codeIllegalGeneration
	}
	return since, code
}
