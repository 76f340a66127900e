package kafkaproto

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/acl"
)

func guardOffsetCommit(c *call, req *kmsg.OffsetCommitRequest, serve func() *kmsg.OffsetCommitResponse) *kmsg.OffsetCommitResponse {
	code, denied := codeTopicDenied, []kmsg.OffsetCommitRequestTopic(nil)
	resp := fresh[*kmsg.OffsetCommitResponse](req)
	if !c.onGroup(acl.Read, req.Group) {
		code, denied = codeGroupDenied, req.Topics
	} else {
		req.Topics, denied = split(req.Topics, func(t *kmsg.OffsetCommitRequestTopic) bool {
			return c.onTopicOrID(acl.Read, t.Topic, t.TopicID)
		})
		resp = serve()
	}
	for _, t := range denied {
		rt := kmsg.NewOffsetCommitResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetCommitResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, code
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// guardOffsetFetch denies groups, and topics that are asked for; from an answer
// about all topics it leaves them out.
func guardOffsetFetch(c *call, req *kmsg.OffsetFetchRequest, serve func() *kmsg.OffsetFetchResponse) *kmsg.OffsetFetchResponse {
	if c.version < 8 {
		return c.guardOneOffsetFetch(req, serve)
	}
	var denied []kmsg.OffsetFetchRequestGroup
	req.Groups, denied = split(req.Groups, func(g *kmsg.OffsetFetchRequestGroup) bool { return c.onGroup(acl.Describe, g.Group) })
	// What is denied of each group, in the order of the groups.
	topics := make([][]kmsg.OffsetFetchRequestGroupTopic, len(req.Groups))
	all := map[string]bool{}
	for i := range req.Groups {
		g := &req.Groups[i]
		if g.Topics == nil {
			all[g.Group] = true
			continue
		}
		g.Topics, topics[i] = split(g.Topics, func(t *kmsg.OffsetFetchRequestGroupTopic) bool {
			return c.onTopicOrID(acl.Describe, t.Topic, t.TopicID)
		})
	}
	resp := serve()
	for i := range resp.Groups {
		g := &resp.Groups[i]
		if all[g.Group] {
			g.Topics = slices.DeleteFunc(g.Topics, func(t kmsg.OffsetFetchResponseGroupTopic) bool {
				return !c.allowedQuietly(acl.Describe, acl.Topic, c.topicName(t.Topic, t.TopicID))
			})
		}
		if i >= len(topics) || g.ErrorCode != codeNone {
			continue
		}
		for _, t := range topics[i] {
			rt := kmsg.NewOffsetFetchResponseGroupTopic()
			rt.Topic, rt.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				rp := kmsg.NewOffsetFetchResponseGroupTopicPartition()
				rp.Partition, rp.Offset, rp.LeaderEpoch, rp.ErrorCode = p, -1, -1, codeTopicDenied
				rt.Partitions = append(rt.Partitions, rp)
			}
			g.Topics = append(g.Topics, rt)
		}
	}
	for _, g := range denied {
		rg := kmsg.NewOffsetFetchResponseGroup()
		rg.Group, rg.ErrorCode = g.Group, codeGroupDenied
		resp.Groups = append(resp.Groups, rg)
	}
	return resp
}

func (c *call) guardOneOffsetFetch(req *kmsg.OffsetFetchRequest, serve func() *kmsg.OffsetFetchResponse) *kmsg.OffsetFetchResponse {
	all := req.Topics == nil
	var denied []kmsg.OffsetFetchRequestTopic
	code := codeTopicDenied
	resp := fresh[*kmsg.OffsetFetchResponse](req)
	if !c.onGroup(acl.Describe, req.Group) {
		// Before version 2 there is no code but the partitions'.
		code, denied, resp.ErrorCode = codeGroupDenied, req.Topics, codeGroupDenied
	} else {
		if !all {
			req.Topics, denied = split(req.Topics, func(t *kmsg.OffsetFetchRequestTopic) bool { return c.onTopic(acl.Describe, t.Topic) })
		}
		resp = serve()
		if all {
			resp.Topics = slices.DeleteFunc(resp.Topics, func(t kmsg.OffsetFetchResponseTopic) bool {
				return !c.allowedQuietly(acl.Describe, acl.Topic, t.Topic)
			})
		}
	}
	for _, t := range denied {
		rt := kmsg.NewOffsetFetchResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetFetchResponseTopicPartition()
			rp.Partition, rp.Offset, rp.LeaderEpoch, rp.ErrorCode = p, -1, -1, code
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func guardFindCoordinator(c *call, req *kmsg.FindCoordinatorRequest, serve func() *kmsg.FindCoordinatorResponse) *kmsg.FindCoordinatorResponse {
	allowed := func(key *string) bool {
		if req.CoordinatorType == 1 {
			return c.onTransaction(acl.Describe, *key)
		}
		return c.onGroup(acl.Describe, *key)
	}
	code := codeGroupDenied
	if req.CoordinatorType == 1 {
		code = codeTransactionDenied
	}
	if c.version < 4 {
		if allowed(&req.CoordinatorKey) {
			return serve()
		}
		resp := fresh[*kmsg.FindCoordinatorResponse](req)
		resp.ErrorCode, resp.ErrorMessage, resp.NodeID, resp.Port = code, &errDenied, -1, -1
		return resp
	}
	var denied []string
	req.CoordinatorKeys, denied = split(req.CoordinatorKeys, allowed)
	resp := serve()
	for _, key := range denied {
		rc := kmsg.NewFindCoordinatorResponseCoordinator()
		rc.Key, rc.ErrorCode, rc.ErrorMessage, rc.NodeID, rc.Port = key, code, &errDenied, -1, -1
		resp.Coordinators = append(resp.Coordinators, rc)
	}
	return resp
}

func guardJoinGroup(c *call, req *kmsg.JoinGroupRequest, serve func() *kmsg.JoinGroupResponse) *kmsg.JoinGroupResponse {
	if c.onGroup(acl.Read, req.Group) {
		return serve()
	}
	resp := fresh[*kmsg.JoinGroupResponse](req)
	resp.ErrorCode, resp.Generation, resp.MemberID = codeGroupDenied, -1, req.MemberID
	if c.version < 7 {
		resp.Protocol = kmsg.StringPtr("")
	}
	return resp
}

func guardHeartbeat(c *call, req *kmsg.HeartbeatRequest, serve func() *kmsg.HeartbeatResponse) *kmsg.HeartbeatResponse {
	if c.onGroup(acl.Read, req.Group) {
		return serve()
	}
	resp := fresh[*kmsg.HeartbeatResponse](req)
	resp.ErrorCode = codeGroupDenied
	return resp
}

func guardLeaveGroup(c *call, req *kmsg.LeaveGroupRequest, serve func() *kmsg.LeaveGroupResponse) *kmsg.LeaveGroupResponse {
	if c.onGroup(acl.Read, req.Group) {
		return serve()
	}
	resp := fresh[*kmsg.LeaveGroupResponse](req)
	resp.ErrorCode = codeGroupDenied
	return resp
}

func guardSyncGroup(c *call, req *kmsg.SyncGroupRequest, serve func() *kmsg.SyncGroupResponse) *kmsg.SyncGroupResponse {
	if c.onGroup(acl.Read, req.Group) {
		return serve()
	}
	resp := fresh[*kmsg.SyncGroupResponse](req)
	resp.ErrorCode, resp.MemberAssignment = codeGroupDenied, []byte{}
	return resp
}

func guardDescribeGroups(c *call, req *kmsg.DescribeGroupsRequest, serve func() *kmsg.DescribeGroupsResponse) *kmsg.DescribeGroupsResponse {
	var denied []string
	req.Groups, denied = split(req.Groups, func(g *string) bool { return c.onGroup(acl.Describe, *g) })
	resp := serve()
	for i := range resp.Groups {
		if g := &resp.Groups[i]; req.IncludeAuthorizedOperations && g.ErrorCode == codeNone {
			g.AuthorizedOperations = c.operations(acl.Group, g.Group)
		}
	}
	for _, name := range denied {
		g := kmsg.NewDescribeGroupsResponseGroup()
		g.Group, g.ErrorCode, g.ErrorMessage = name, codeGroupDenied, &errDenied
		resp.Groups = append(resp.Groups, g)
	}
	return resp
}

func guardListGroups(c *call, _ *kmsg.ListGroupsRequest, serve func() *kmsg.ListGroupsResponse) *kmsg.ListGroupsResponse {
	resp := serve()
	if !c.allowedQuietly(acl.Describe, acl.Cluster, acl.ClusterName) {
		resp.Groups = slices.DeleteFunc(resp.Groups, func(g kmsg.ListGroupsResponseGroup) bool {
			return !c.allowedQuietly(acl.Describe, acl.Group, g.Group)
		})
	}
	return resp
}

func guardDeleteGroups(c *call, req *kmsg.DeleteGroupsRequest, serve func() *kmsg.DeleteGroupsResponse) *kmsg.DeleteGroupsResponse {
	var denied []string
	req.Groups, denied = split(req.Groups, func(g *string) bool { return c.onGroup(acl.Delete, *g) })
	resp := serve()
	for _, name := range denied {
		g := kmsg.NewDeleteGroupsResponseGroup()
		g.Group, g.ErrorCode = name, codeGroupDenied
		resp.Groups = append(resp.Groups, g)
	}
	return resp
}

func guardOffsetDelete(c *call, req *kmsg.OffsetDeleteRequest, serve func() *kmsg.OffsetDeleteResponse) *kmsg.OffsetDeleteResponse {
	if !c.onGroup(acl.Delete, req.Group) {
		resp := fresh[*kmsg.OffsetDeleteResponse](req)
		resp.ErrorCode = codeGroupDenied
		return resp
	}
	var denied []kmsg.OffsetDeleteRequestTopic
	req.Topics, denied = split(req.Topics, func(t *kmsg.OffsetDeleteRequestTopic) bool { return c.onTopic(acl.Read, t.Topic) })
	resp := serve()
	for _, t := range denied {
		rt := kmsg.NewOffsetDeleteResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetDeleteResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, codeTopicDenied
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func guardConsumerGroupHeartbeat(c *call, req *kmsg.ConsumerGroupHeartbeatRequest, serve func() *kmsg.ConsumerGroupHeartbeatResponse) *kmsg.ConsumerGroupHeartbeatResponse {
	code := codeNone
	switch {
	case !c.onGroup(acl.Read, req.Group):
		code = codeGroupDenied
	case slices.ContainsFunc(req.SubscribedTopicNames, func(t string) bool { return !c.onTopic(acl.Describe, t) }):
		code = codeTopicDenied
	default:
		return serve()
	}
	resp := fresh[*kmsg.ConsumerGroupHeartbeatResponse](req)
	resp.ErrorCode, resp.ErrorMessage = code, &errDenied
	return resp
}

func guardConsumerGroupDescribe(c *call, req *kmsg.ConsumerGroupDescribeRequest, serve func() *kmsg.ConsumerGroupDescribeResponse) *kmsg.ConsumerGroupDescribeResponse {
	var denied []string
	req.Groups, denied = split(req.Groups, func(g *string) bool { return c.onGroup(acl.Describe, *g) })
	resp := serve()
	for i := range resp.Groups {
		g := &resp.Groups[i]
		if g.ErrorCode != codeNone {
			continue
		}
		if req.IncludeAuthorizedOperations {
			g.AuthorizedOperations = c.operations(acl.Group, g.Group)
		}
		if hidden := c.hiddenTopic(g); hidden {
			name := g.Group
			*g = kmsg.NewConsumerGroupDescribeResponseGroup()
			g.Group, g.ErrorCode, g.ErrorMessage = name, codeTopicDenied, &errDenied
		}
	}
	for _, name := range denied {
		g := kmsg.NewConsumerGroupDescribeResponseGroup()
		g.Group, g.ErrorCode, g.ErrorMessage = name, codeGroupDenied, &errDenied
		resp.Groups = append(resp.Groups, g)
	}
	return resp
}

// hiddenTopic: a group's members read a topic that the client may not know of.
func (c *call) hiddenTopic(g *kmsg.ConsumerGroupDescribeResponseGroup) bool {
	hidden := func(topic string) bool { return !c.allowedQuietly(acl.Describe, acl.Topic, topic) }
	for i := range g.Members {
		m := &g.Members[i]
		if slices.ContainsFunc(m.SubscribedTopics, hidden) {
			return true
		}
		for _, a := range []*kmsg.Assignment{&m.Assignment, &m.TargetAssignment} {
			for _, t := range a.TopicPartitions {
				if hidden(t.Topic) {
					return true
				}
			}
		}
	}
	return false
}
