package kafkaproto

// AlterReplicaLogDirs (34), versions 1 to 2: moves partitions between the
// directories of a node.
//
//   - There is one data directory: a partition is there already, another directory
//     is error 57. 2 is flexible.

import "github.com/twmb/franz-go/pkg/kmsg"

func serveAlterReplicaLogDirs(c *call, req *kmsg.AlterReplicaLogDirsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.AlterReplicaLogDirsResponse)
	for _, d := range req.Dirs {
		for _, t := range d.Topics {
			rt := kmsg.NewAlterReplicaLogDirsResponseTopic()
			rt.Topic = t.Topic
			for _, index := range t.Partitions {
				rp := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
				rp.Partition = index
				if _, code := c.partition(t.Topic, index); code != codeNone {
					rp.ErrorCode = code
				} else if d.Dir != c.s.opts.Store.Dir() {
					rp.ErrorCode = codeLogDirNotFound
				}
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
	}
	return resp
}
