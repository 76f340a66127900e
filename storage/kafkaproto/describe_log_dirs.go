package kafkaproto

// DescribeLogDirs (35), versions 1 to 4: the data directory with the sizes of the
// partitions in it.
//
//   - null topics ask for all; what does not exist is left out, as Kafka does.
//   - A size is that of the record batches that can be read. Files are shared by
//     partitions, so the sizes do not add up to the files'.
//   - 2 is flexible, 3 adds an error for the whole, 4 the space: how much is free;
//     the total is not known (-1).

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

func serveDescribeLogDirs(c *call, req *kmsg.DescribeLogDirsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeLogDirsResponse)
	dir := kmsg.NewDescribeLogDirsResponseDir()
	dir.Dir = c.s.opts.Store.Dir()
	if free, err := c.s.opts.Store.FreeBytes(); err == nil {
		dir.UsableBytes = free
	}
	if req.Topics == nil {
		for _, t := range c.s.opts.Store.Topics() {
			dir.Topics = append(dir.Topics, c.topicSizes(&t, nil))
		}
	}
	for _, rt := range req.Topics {
		ref := topicRef{name: rt.Topic}
		if t, code := ref.find(c.s.opts.Store); code == codeNone {
			dir.Topics = append(dir.Topics, c.topicSizes(&t, rt.Partitions))
		}
	}
	resp.Dirs = append(resp.Dirs, dir)
	return resp
}

// topicSizes lists the partitions wanted, all if only is nil.
func (c *call) topicSizes(t *topiclog.Topic, only []int32) kmsg.DescribeLogDirsResponseDirTopic {
	out := kmsg.NewDescribeLogDirsResponseDirTopic()
	out.Topic = t.Name
	for _, p := range t.Partitions {
		if only != nil && !slices.Contains(only, p.Index) {
			continue
		}
		rp := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		rp.Partition = p.Index
		if st, err := c.s.opts.Store.State(p.ID); err == nil {
			rp.Size = st.SizeBytes
		}
		out.Partitions = append(out.Partitions, rp)
	}
	return out
}
