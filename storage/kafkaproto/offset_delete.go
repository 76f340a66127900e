package kafkaproto

// OffsetDelete (47), version 0: forgets positions of a group.
//
//   - A group that is not known is error 69, one that a job reads by error 68.
//   - While consumers are members, positions of the topics that they subscribe to
//     stay (error 86). Members of another kind of protocol keep all (error 68).

import (
	"context"
	"maps"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

func serveOffsetDelete(c *call, req *kmsg.OffsetDeleteRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetDeleteResponse)
	subscribed, code := c.mayForget(req.Group)
	if resp.ErrorCode = code; code != codeNone {
		return resp
	}
	var gone []topiclog.Cursor
	var places [][2]int
	for i, t := range req.Topics {
		rt := kmsg.NewOffsetDeleteResponseTopic()
		rt.Topic = t.Topic
		for j, p := range t.Partitions {
			rp := kmsg.NewOffsetDeleteResponseTopicPartition()
			rp.Partition = p.Partition
			id, code := c.partition(t.Topic, p.Partition)
			switch {
			case code != codeNone:
				rp.ErrorCode = code
			case subscribed(t.Topic):
				rp.ErrorCode = codeGroupSubscribedToTopic
			default:
				gone, places = append(gone, topiclog.Cursor{Partition: id, Offset: -1}), append(places, [2]int{i, j})
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	if len(gone) > 0 {
		if err := c.s.opts.Store.CommitCursors(context.Background(), req.Group, gone); err != nil {
			for _, at := range places {
				resp.Topics[at[0]].Partitions[at[1]].ErrorCode = commitCode(err)
			}
		}
	}
	return resp
}

// mayForget says whether positions of a group may go, and of which topics not.
func (c *call) mayForget(name string) (subscribed func(topic string) bool, code int16) {
	none := func(string) bool { return false }
	store := c.s.opts.Store
	if name == "" {
		return none, codeInvalidGroupID
	}
	if subscribedByJob(store, name) {
		return none, codeNonEmptyGroup
	}
	gs := c.s.groups
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if cg := gs.consumer[name]; cg != nil && len(cg.members) > 0 {
		topics := maps.Clone(cg.topics)
		return func(topic string) bool { _, ok := topics[topic]; return ok }, codeNone
	}
	g := gs.byName[name]
	switch {
	case g == nil || len(g.members) == 0:
		if len(store.Cursors(name)) == 0 && g == nil {
			return none, codeGroupNotFound
		}
		return none, codeNone
	case g.protocolType != consumerProtocol:
		return none, codeNonEmptyGroup
	}
	topics := g.subscribedTopics()
	return func(topic string) bool { return topics[topic] }, codeNone
}

// consumerProtocol is the type of protocol by which consumers share partitions.
const consumerProtocol = "consumer"

// subscribedTopics are those that any member asked for; it needs the mutex of
// groups. Metadata that is not a consumer's counts as none.
func (g *group) subscribedTopics() map[string]bool {
	topics := map[string]bool{}
	for _, m := range g.members {
		for _, p := range m.protocols {
			var md kmsg.ConsumerMemberMetadata
			if md.ReadFrom(p.metadata) != nil {
				continue
			}
			for _, t := range md.Topics {
				topics[t] = true
			}
		}
	}
	return topics
}
