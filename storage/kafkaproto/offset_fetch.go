package kafkaproto

// OffsetFetch (9), versions 1 to 10: a group's positions.
//
//   - A group or partition without a position is answered with offset -1 and no
//     error, as Kafka does.
//   - From 2 null topics ask for all positions; 5 adds the leader epoch, 6 is
//     flexible, 7 asks for stable offsets: one that a transaction may still change is
//     error 88, to be asked for again. 8 asks for many groups at once. Members of the
//     newer protocol say who they are from 9 on (errors 25, 113). 10 names topics by
//     id; one that is not known is error 100.

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

func serveOffsetFetch(c *call, req *kmsg.OffsetFetchRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
	if c.version >= 8 {
		for _, g := range req.Groups {
			resp.Groups = append(resp.Groups, c.stableOffsets(req.RequireStable, c.groupOffsets(g)))
		}
		return resp
	}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = req.Group
	if req.Topics != nil {
		g.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
	}
	for _, t := range req.Topics {
		gt := kmsg.NewOffsetFetchRequestGroupTopic()
		gt.Topic, gt.Partitions = t.Topic, t.Partitions
		g.Topics = append(g.Topics, gt)
	}
	got := c.stableOffsets(req.RequireStable, c.groupOffsets(g))
	resp.ErrorCode = got.ErrorCode
	for _, t := range got.Topics {
		rt := kmsg.NewOffsetFetchResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetFetchResponseTopicPartition()
			rp.Partition, rp.Offset, rp.LeaderEpoch, rp.Metadata, rp.ErrorCode = p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (c *call) groupOffsets(g kmsg.OffsetFetchRequestGroup) kmsg.OffsetFetchResponseGroup {
	out := kmsg.NewOffsetFetchResponseGroup()
	out.Group = g.Group
	if out.ErrorCode = c.s.groups.mayFetch(&g); out.ErrorCode != codeNone {
		return out
	}
	byID := c.version >= 10
	cursors := map[topiclog.PartitionID]topiclog.Cursor{}
	for _, cur := range c.s.opts.Store.Cursors(g.Group) {
		cursors[cur.Partition] = cur
	}
	if g.Topics == nil {
		for _, t := range c.s.opts.Store.Topics() {
			if len(cursors) == 0 {
				break
			}
			rt := kmsg.NewOffsetFetchResponseGroupTopic()
			rt.Topic, rt.TopicID = t.Name, t.ID
			for _, p := range t.Partitions {
				if cur, ok := cursors[p.ID]; ok {
					rt.Partitions = append(rt.Partitions, position(p.Index, cur))
				}
			}
			if len(rt.Partitions) > 0 {
				out.Topics = append(out.Topics, rt)
			}
		}
		return out
	}
	for _, t := range g.Topics {
		rt := kmsg.NewOffsetFetchResponseGroupTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		ref := topicRef{name: t.Topic, id: t.TopicID, byID: byID}
		topic, code := ref.find(c.s.opts.Store)
		for _, index := range t.Partitions {
			cur := topiclog.Cursor{Offset: -1, LeaderEpoch: -1}
			if id, ok := partitionOf(&topic, index); ok {
				if have, ok := cursors[id]; ok {
					cur = have
				}
			}
			rp := position(index, cur)
			if byID {
				rp.ErrorCode = code
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		out.Topics = append(out.Topics, rt)
	}
	return out
}

// mayFetch checks who asks, if it says that: a member of the newer protocol must be
// at its epoch.
func (gs *groups) mayFetch(g *kmsg.OffsetFetchRequestGroup) int16 {
	if g.MemberID == nil && g.MemberEpoch < 0 {
		return codeNone
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	cg := gs.consumer[g.Group]
	if cg == nil || g.MemberID == nil {
		return codeNone
	}
	return cg.checkConsumer(*g.MemberID, g.MemberEpoch)
}

func position(index int32, cur topiclog.Cursor) kmsg.OffsetFetchResponseGroupTopicPartition {
	p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = index, cur.Offset, cur.LeaderEpoch, &cur.Metadata
	return p
}
