package kafkaproto

// DescribeTopicPartitions (75), version 0: topics with their partitions, page by
// page.
//
//   - Topics come in the order of their names; none named means all. A cursor says
//     where the page before ended; the answer has one if there is more.
//   - A page has at most 2,000 partitions. This node leads each and is its only
//     replica, so that the lists of eligible leaders are empty. They may be null by
//     the protocol, but Kafka's own clients fail on that.

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

// maxPagePartitions is Kafka's max.request.partition.size.limit.
const maxPagePartitions = 2000

func serveDescribeTopicPartitions(c *call, req *kmsg.DescribeTopicPartitionsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeTopicPartitionsResponse)
	left := int(min(max(req.ResponsePartitionLimit, 1), maxPagePartitions))
	from, first := "", int32(0)
	if req.Cursor != nil {
		from, first = req.Cursor.Topic, max(req.Cursor.Partition, 0)
	}
	for _, name := range c.pageTopics(req) {
		if name < from {
			continue
		}
		if left == 0 {
			resp.NextCursor = &kmsg.DescribeTopicPartitionsResponseNextCursor{Topic: name}
			break
		}
		start := int32(0)
		if name == from {
			start = first
		}
		rt, next := c.describeTopic(name, start, &left)
		resp.Topics = append(resp.Topics, rt)
		if next >= 0 {
			resp.NextCursor = &kmsg.DescribeTopicPartitionsResponseNextCursor{Topic: name, Partition: next}
			break
		}
	}
	return resp
}

func (c *call) pageTopics(req *kmsg.DescribeTopicPartitionsRequest) []string {
	var names []string
	for _, t := range req.Topics {
		names = append(names, t.Topic)
	}
	if len(req.Topics) == 0 {
		for _, t := range c.s.opts.Store.Topics() {
			names = append(names, t.Name)
		}
	}
	slices.SortFunc(names, strings.Compare)
	return slices.Compact(names)
}

// describeTopic gives a topic's partitions from start on, left at most; next is
// the first one that is left out, or -1.
func (c *call) describeTopic(name string, start int32, left *int) (out kmsg.DescribeTopicPartitionsResponseTopic, next int32) {
	out = kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic = &name
	ref := topicRef{name: name}
	topic, code := ref.find(c.s.opts.Store)
	if code != codeNone {
		if out.ErrorCode = code; !validName(name) {
			out.ErrorCode = codeInvalidTopic
		}
		return out, -1
	}
	out.TopicID, out.IsInternal = topic.ID, internalTopic(name)
	for i := int(start); i < len(topic.Partitions); i++ {
		if *left == 0 {
			return out, int32(i)
		}
		*left--
		out.Partitions = append(out.Partitions, c.describePartition(topic.Partitions[i]))
	}
	return out, -1
}

func (c *call) describePartition(p topiclog.Partition) kmsg.DescribeTopicPartitionsResponseTopicPartition {
	out := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
	self := []int32{c.s.opts.NodeID}
	out.Partition, out.LeaderID, out.Replicas, out.ISR = p.Index, c.s.opts.NodeID, self, self
	out.EligibleLeaderReplicas, out.LastKnownELR = []int32{}, []int32{}
	if st, err := c.s.opts.Store.State(p.ID); err == nil {
		out.LeaderEpoch = st.LeaderEpoch
	}
	return out
}
