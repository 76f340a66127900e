package kafkaproto

// AlterPartitionReassignments (45), versions 0 to 1: moves partitions to other
// nodes.
//
//   - Each partition is on this node already: moving it here is done at once,
//     another node is not known (error 39). There is no move to cancel (error 85).
//   - 1 can forbid to change the number of replicas (error 38).

import "github.com/twmb/franz-go/pkg/kmsg"

func serveAlterPartitionReassignments(c *call, req *kmsg.AlterPartitionAssignmentsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.AlterPartitionAssignmentsResponse)
	resp.AllowReplicationFactorChange = req.AllowReplicationFactorChange
	for _, t := range req.Topics {
		rt := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			rp.Partition = p.Partition
			err := c.checkReassignment(t.Topic, p, c.version >= 1 && !req.AllowReplicationFactorChange)
			rp.ErrorCode, rp.ErrorMessage = adminCode(err), message(err)
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (c *call) checkReassignment(topic string, p kmsg.AlterPartitionAssignmentsRequestTopicPartition, fixed bool) error {
	_, code := c.partition(topic, p.Partition)
	switch {
	case code != codeNone:
		return coded(code, "topic %s has no partition %d", topic, p.Partition)
	case p.Replicas == nil:
		return coded(codeNoReassignment, "no reassignment is under way")
	case fixed && len(p.Replicas) != 1:
		return coded(codeInvalidReplication, "%d replicas, the partition has 1", len(p.Replicas))
	case len(p.Replicas) != 1 || p.Replicas[0] != c.s.opts.NodeID:
		return coded(codeInvalidAssignment, "the only node is %d", c.s.opts.NodeID)
	}
	return nil
}
