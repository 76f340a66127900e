package kafkaproto

// OffsetCommit (8), versions 2 to 10: stores a group's positions, durably.
//
//   - A group's members commit in their generation (errors 22, 25, 27, 82); with
//     generation -1 anybody may while there are no members. The group of a job has
//     one, the job, and takes no commits.
//   - 6 adds the leader epoch, 7 static members, 8 is flexible. Members of
//     the newer protocol commit from 9 on, at their epoch (error 113). 10 names
//     topics by id. The retention time
//     of 2 to 4 is not used: see offset_expiry.go.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

// maxCommitMetadata is Kafka's offset.metadata.max.bytes.
const maxCommitMetadata = 4096

// maxGroupName is the store's bound, in bytes.
const maxGroupName = 1 << 10

func serveOffsetCommit(c *call, req *kmsg.OffsetCommitRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
	var since map[topicPart]int32
	code := codeNone
	switch {
	case req.Group == "" || len(req.Group) > maxGroupName:
		code = codeInvalidGroupID
	case subscribedByJob(c.s.opts.Store, req.Group):
		// A job is the group's only member; it does not commit this way.
		code = codeUnknownMemberID
	default:
		since, code = c.s.groups.mayCommit(c.version, req.Group, req.MemberID, req.InstanceID, req.Generation)
	}
	// The place of each cursor in the response, for the outcome of the commit.
	type place struct{ topic, partition int }
	var cursors []topiclog.Cursor
	var places []place
	for i, t := range req.Topics {
		rt := kmsg.NewOffsetCommitResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		ref := topicRef{name: t.Topic, id: t.TopicID, byID: c.version >= 10}
		topic, missing := ref.find(c.s.opts.Store)
		for j, p := range t.Partitions {
			rp := kmsg.NewOffsetCommitResponseTopicPartition()
			rp.Partition = p.Partition
			id, ok := partitionOf(&topic, p.Partition)
			switch {
			case code != codeNone:
				rp.ErrorCode = code
			case missing != codeNone:
				rp.ErrorCode = missing
			case !ok:
				rp.ErrorCode = codeUnknownTopic
			case since != nil && !hadSince(since, topicPart{topic.ID, p.Partition}, req.Generation):
				rp.ErrorCode = codeStaleMemberEpoch
			case p.Metadata != nil && len(*p.Metadata) > maxCommitMetadata:
				rp.ErrorCode = codeOffsetMetadataTooLarge
			case p.Offset < 0:
				// The store would forget the position; the protocol has another key
				// for that.
				rp.ErrorCode = codeInvalidRequest
			default:
				cur := topiclog.Cursor{Partition: id, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch}
				if p.Metadata != nil {
					cur.Metadata = *p.Metadata
				}
				cursors, places = append(cursors, cur), append(places, place{i, j})
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	if len(cursors) > 0 {
		if err := c.s.opts.Store.CommitCursors(context.Background(), req.Group, cursors); err != nil {
			c.s.opts.Logger.Error("committing offsets failed", "group", req.Group, "error", err)
			for _, at := range places {
				resp.Topics[at.topic].Partitions[at.partition].ErrorCode = commitCode(err)
			}
		}
	}
	return resp
}

// hadSince says that a partition was a member's own at an epoch.
func hadSince(since map[topicPart]int32, p topicPart, epoch int32) bool {
	from, ok := since[p]
	return ok && from <= epoch
}

// commitCode is codeOf in what clients of OffsetCommit know and retry on.
func commitCode(err error) int16 {
	if code := codeOf(err); code != codeStorageError {
		return code
	}
	return codeCoordinatorNotAvailable
}
