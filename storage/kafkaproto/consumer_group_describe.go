package kafkaproto

// ConsumerGroupDescribe (69), versions 0 to 1: groups of the newer protocol with
// their epochs and their members' assignments.
//
//   - A group that is not known, or of the older protocol, is error 69.
//   - 1 adds the kind of a member: all are of the newer protocol.

import "github.com/twmb/franz-go/pkg/kmsg"

const memberTypeConsumer = 1

func serveConsumerGroupDescribe(c *call, req *kmsg.ConsumerGroupDescribeRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ConsumerGroupDescribeResponse)
	gs := c.s.groups
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for _, name := range req.Groups {
		rg := kmsg.NewConsumerGroupDescribeResponseGroup()
		rg.Group, rg.Members = name, []kmsg.ConsumerGroupDescribeResponseGroupMember{}
		switch g := gs.consumer[name]; {
		case name == "":
			rg.ErrorCode, rg.State = codeInvalidGroupID, "Dead"
		case g == nil:
			rg.ErrorCode, rg.ErrorMessage, rg.State = codeGroupNotFound, message(coded(codeGroupNotFound, "there is no consumer group %s", name)), "Dead"
		default:
			g.describe(&rg)
		}
		resp.Groups = append(resp.Groups, rg)
	}
	return resp
}

// describe needs the mutex of groups.
func (g *consumerGroup) describe(out *kmsg.ConsumerGroupDescribeResponseGroup) {
	out.State, out.Epoch, out.AssignmentEpoch, out.AssignorName = string(g.state()), g.epoch, g.assignmentEpoch, g.assignor
	names := map[[16]byte]string{}
	for _, t := range g.topics {
		names[t.id] = t.name
	}
	for _, m := range g.inOrder() {
		rm := kmsg.NewConsumerGroupDescribeResponseGroupMember()
		rm.MemberID, rm.InstanceID, rm.RackID, rm.MemberEpoch, rm.ClientID, rm.ClientHost = m.id, m.instance, m.rack, m.epoch, m.clientID, m.host
		rm.SubscribedTopics = append([]string{}, m.names...)
		if m.regex != "" {
			rm.SubscribedTopicRegex = &m.regex
		}
		rm.MemberType = memberTypeConsumer
		rm.Assignment, rm.TargetAssignment = describedAssignment(m.assigned, names), describedAssignment(m.target, names)
		out.Members = append(out.Members, rm)
	}
}

func describedAssignment(parts partSet, names map[[16]byte]string) kmsg.Assignment {
	a := kmsg.NewAssignment()
	a.TopicPartitions = []kmsg.AssignmentTopicPartition{}
	for _, p := range parts.sorted() {
		if n := len(a.TopicPartitions); n == 0 || a.TopicPartitions[n-1].TopicID != p.topic {
			tp := kmsg.NewAssignmentTopicPartition()
			tp.TopicID, tp.Topic = p.topic, names[p.topic]
			a.TopicPartitions = append(a.TopicPartitions, tp)
		}
		t := &a.TopicPartitions[len(a.TopicPartitions)-1]
		t.Partitions = append(t.Partitions, p.index)
	}
	return a
}
