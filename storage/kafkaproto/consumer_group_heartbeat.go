package kafkaproto

// ConsumerGroupHeartbeat (68), versions 0 to 1: a member of a consumer group says
// that it lives, what it subscribes to and owns, and learns what it may read.
//
//   - Epoch 0 joins, with everything said; -1 leaves, -2 leaves to come back (static
//     members). What is null is as before. The answer has the assignment if it
//     changed or the member said everything.
//   - The topics' partitions are shared out by the assignors uniform and range
//     (error 112 for others); consumer_group.go says how a member moves from one
//     assignment to the next.
//   - 1 has the member choose its id, and subscribe by a regular expression, which
//     must match the whole name of a topic and is in the syntax of RE2 (error 128).
//     The store's own topics and those that the member may not describe are not
//     matched.
//   - A group of the older protocol becomes one of the newer when it has no members;
//     while it has some, or is a job's, it is not one: error 69.
//   - Groups live as long as the process: after a restart members are told that they
//     are unknown and join again with their ids; positions are in the store.

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/topiclog"
)

func serveConsumerGroupHeartbeat(c *call, req *kmsg.ConsumerGroupHeartbeatRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ConsumerGroupHeartbeatResponse)
	err := checkHeartbeat(req)
	if err == nil {
		got := c.s.groups.beat(c.beatOf(req))
		err = got.err
		resp.MemberID, resp.MemberEpoch = &got.member, got.epoch
		resp.HeartbeatIntervalMillis = int32(c.s.opts.ConsumerHeartbeat.Milliseconds())
		if got.assigned != nil {
			a := kmsg.NewConsumerGroupHeartbeatResponseAssignment()
			a.Topics = []kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic{}
			for _, p := range got.assigned {
				if n := len(a.Topics); n == 0 || a.Topics[n-1].TopicID != p.topic {
					a.Topics = append(a.Topics, kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic{TopicID: p.topic})
				}
				t := &a.Topics[len(a.Topics)-1]
				t.Partitions = append(t.Partitions, p.index)
			}
			resp.Assignment = &a
		}
	}
	if err != nil {
		resp.MemberID, resp.MemberEpoch, resp.HeartbeatIntervalMillis = nil, 0, 0
	}
	resp.ErrorCode, resp.ErrorMessage = adminCode(err), message(err)
	return resp
}

// checkHeartbeat applies the rules for a request by itself.
func checkHeartbeat(req *kmsg.ConsumerGroupHeartbeatRequest) error {
	empty := func(s *string) bool { return s != nil && *s == "" }
	joins := req.MemberEpoch == 0
	switch {
	case req.Group == "" || len(req.Group) > maxGroupName:
		return coded(codeInvalidRequest, "the group's name must have 1 to %d bytes", maxGroupName)
	case req.MemberID == "" && (!joins || req.Version >= 1):
		return coded(codeInvalidRequest, "the member's id is empty")
	case empty(req.InstanceID), empty(req.RackID):
		return coded(codeInvalidRequest, "the instance id and the rack, if given, are not empty")
	case req.MemberEpoch < memberLeft:
		return coded(codeInvalidRequest, "there is no member epoch %d", req.MemberEpoch)
	case joins && req.RebalanceTimeoutMillis < 0:
		return coded(codeInvalidRequest, "a member that joins gives its rebalance timeout")
	case joins && (req.Topics == nil || len(req.Topics) > 0):
		return coded(codeInvalidRequest, "a member that joins owns no partitions and says so")
	case joins && req.SubscribedTopicNames == nil && req.SubscribedTopicRegex == nil:
		return coded(codeInvalidRequest, "a member that joins says what it subscribes to")
	case req.ServerAssignor != nil && *req.ServerAssignor != assignorUniform && *req.ServerAssignor != assignorRange:
		return coded(codeUnsupportedAssignor, "assignor %q is not supported, %s and %s are", *req.ServerAssignor, assignorUniform, assignorRange)
	}
	return nil
}

func (c *call) beatOf(req *kmsg.ConsumerGroupHeartbeatRequest) *beat {
	b := &beat{group: req.Group, member: req.MemberID, epoch: req.MemberEpoch, instance: req.InstanceID, rack: req.RackID,
		clientID: c.clientID, host: c.clientHost(), rebalance: -1, names: req.SubscribedTopicNames, regex: req.SubscribedTopicRegex, assignor: req.ServerAssignor}
	// The member keeps this, so it must not keep the request.
	who := &call{s: c.s, peer: c.peer}
	b.visible = func(topic string) bool { return who.allowedQuietly(acl.Describe, acl.Topic, topic) }
	if req.RebalanceTimeoutMillis >= 0 {
		b.rebalance = min(time.Duration(req.RebalanceTimeoutMillis)*time.Millisecond, maxSession)
	}
	if req.Topics != nil {
		b.owned = partSet{}
		for _, t := range req.Topics {
			for _, p := range t.Partitions {
				b.owned[topicPart{topiclog.UUID(t.TopicID), p}] = struct{}{}
			}
		}
	}
	return b
}
