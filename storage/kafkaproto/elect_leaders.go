package kafkaproto

// ElectLeaders (43), versions 0 to 2: makes preferred replicas leaders.
//
//   - This node leads every partition and is its preferred replica: there is
//     nothing to elect (error 84). Asked for all partitions (null), the answer
//     lists those that changed: none.
//   - 1 adds the kind of election, 2 is flexible.

import "github.com/twmb/franz-go/pkg/kmsg"

func serveElectLeaders(c *call, req *kmsg.ElectLeadersRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ElectLeadersResponse)
	if c.version >= 1 && (req.ElectionType < 0 || req.ElectionType > 1) {
		resp.ErrorCode = codeInvalidRequest
		return resp
	}
	for _, t := range req.Topics {
		rt := kmsg.NewElectLeadersResponseTopic()
		rt.Topic = t.Topic
		for _, index := range t.Partitions {
			rp := kmsg.NewElectLeadersResponseTopicPartition()
			rp.Partition = index
			err := coded(codeElectionNotNeeded, "the preferred replica leads already")
			if _, code := c.partition(t.Topic, index); code != codeNone {
				err = coded(code, "topic %s has no partition %d", t.Topic, index)
			}
			rp.ErrorCode, rp.ErrorMessage = adminCode(err), message(err)
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}
