package kafkaproto

// DescribeQuorum (55), versions 0 to 2: who votes on the cluster's metadata.
//
//   - This node alone. Its metadata is not a log with offsets that clients could
//     read: they are 0. Another topic is error 3.
//   - 1 adds times, 2 the nodes' addresses and the error's text.

import "github.com/twmb/franz-go/pkg/kmsg"

const metadataTopic = "__cluster_metadata"

func serveDescribeQuorum(c *call, req *kmsg.DescribeQuorumRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeQuorumResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewDescribeQuorumResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewDescribeQuorumResponseTopicPartition()
			rp.Partition = p.Partition
			if t.Topic != metadataTopic || p.Partition != 0 {
				rp.ErrorCode, rp.LeaderID, rp.LeaderEpoch, rp.HighWatermark = codeUnknownTopic, -1, -1, -1
				rp.ErrorMessage = message(coded(codeUnknownTopic, "nobody votes on %s partition %d", t.Topic, p.Partition))
			} else {
				voter := kmsg.NewDescribeQuorumResponseTopicPartitionReplicaState()
				voter.ReplicaID, voter.ReplicaDirectoryID = c.s.opts.NodeID, c.s.opts.Store.ID()
				rp.LeaderID = c.s.opts.NodeID
				rp.CurrentVoters = append(rp.CurrentVoters, voter)
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	n := kmsg.NewDescribeQuorumResponseNode()
	n.NodeID = c.s.opts.NodeID
	host, port := c.s.address(c.conn)
	l := kmsg.NewDescribeQuorumResponseNodeListener()
	l.Name, l.Host, l.Port = "PLAINTEXT", host, uint16(port)
	n.Listeners = append(n.Listeners, l)
	resp.Nodes = append(resp.Nodes, n)
	return resp
}
