package kafkaproto

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/acl"
)

func guardListOffsets(c *call, req *kmsg.ListOffsetsRequest, serve func() *kmsg.ListOffsetsResponse) *kmsg.ListOffsetsResponse {
	var denied []kmsg.ListOffsetsRequestTopic
	req.Topics, denied = split(req.Topics, func(t *kmsg.ListOffsetsRequestTopic) bool { return c.onTopic(acl.Describe, t.Topic) })
	resp := serve()
	for _, t := range denied {
		rt := kmsg.NewListOffsetsResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewListOffsetsResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, codeTopicDenied
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// guardMetadata leaves topics out of the answer about all of them, and denies
// those that were asked for. To make one that is missing its own permission is
// needed.
func guardMetadata(c *call, req *kmsg.MetadataRequest, serve func() *kmsg.MetadataResponse) *kmsg.MetadataResponse {
	if req.Topics == nil || c.version == 0 && len(req.Topics) == 0 {
		resp := serve()
		resp.Topics = slices.DeleteFunc(resp.Topics, func(t kmsg.MetadataResponseTopic) bool {
			return !c.allowedQuietly(acl.Describe, acl.Topic, *t.Topic)
		})
		c.metadataOperations(req, resp)
		return resp
	}
	kept, denied := split(req.Topics, func(t *kmsg.MetadataRequestTopic) bool {
		if t.Topic == nil {
			return c.onTopicOrID(acl.Describe, "", t.TopicID)
		}
		if !c.onTopic(acl.Describe, *t.Topic) {
			return false
		}
		_, err := c.s.opts.Store.Topic(*t.Topic)
		creates := err != nil && c.s.opts.AutoCreatePartitions > 0 && (c.version < 4 || req.AllowAutoTopicCreation)
		return !creates || c.mayCreate(*t.Topic)
	})
	req.Topics = kept
	resp := fresh[*kmsg.MetadataResponse](req)
	if len(kept) > 0 || c.version > 0 {
		resp = serve()
	} else {
		// An empty list would mean all topics. The brokers are wanted all the same.
		none := ""
		req.Topics = []kmsg.MetadataRequestTopic{{Topic: &none}}
		resp = serve()
		resp.Topics = nil
	}
	for _, t := range denied {
		rt := kmsg.NewMetadataResponseTopic()
		rt.Topic, rt.TopicID, rt.ErrorCode = t.Topic, t.TopicID, codeTopicDenied
		if t.Topic == nil {
			// Whether there is a topic with this id is not told.
			rt.ErrorCode = codeUnknownTopicID
		} else {
			rt.TopicID = [16]byte{}
		}
		resp.Topics = append(resp.Topics, rt)
	}
	c.metadataOperations(req, resp)
	return resp
}

// mayCreate: on the cluster, or for this topic.
func (c *call) mayCreate(topic string) bool {
	return c.allowedQuietly(acl.Create, acl.Cluster, acl.ClusterName) || c.onTopic(acl.Create, topic)
}

func (c *call) metadataOperations(req *kmsg.MetadataRequest, resp *kmsg.MetadataResponse) {
	if req.IncludeClusterAuthorizedOperations {
		resp.AuthorizedOperations = c.clusterOperations()
	}
	for i := range resp.Topics {
		if t := &resp.Topics[i]; req.IncludeTopicAuthorizedOperations && t.ErrorCode == codeNone && t.Topic != nil {
			t.AuthorizedOperations = c.operations(acl.Topic, *t.Topic)
		}
	}
}

// clusterOperations are told to who may describe the cluster; 0 to others, as in
// Kafka.
func (c *call) clusterOperations() int32 {
	if !c.allowedQuietly(acl.Describe, acl.Cluster, acl.ClusterName) {
		return 0
	}
	return c.operations(acl.Cluster, acl.ClusterName)
}

func guardCreateTopics(c *call, req *kmsg.CreateTopicsRequest, serve func() *kmsg.CreateTopicsResponse) *kmsg.CreateTopicsResponse {
	var denied []kmsg.CreateTopicsRequestTopic
	req.Topics, denied = split(req.Topics, func(t *kmsg.CreateTopicsRequestTopic) bool { return c.mayCreate(t.Topic) })
	resp := serve()
	for i := range resp.Topics {
		if t := &resp.Topics[i]; t.ErrorCode == codeNone && !c.allowedQuietly(acl.DescribeConfigs, acl.Topic, t.Topic) {
			t.Configs, t.ConfigErrorCode, t.NumPartitions, t.ReplicationFactor = nil, codeTopicDenied, -1, -1
		}
	}
	for _, t := range denied {
		rt := kmsg.NewCreateTopicsResponseTopic()
		rt.Topic, rt.ErrorCode, rt.ErrorMessage, rt.NumPartitions, rt.ReplicationFactor = t.Topic, codeTopicDenied, &errDenied, -1, -1
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func guardDeleteTopics(c *call, req *kmsg.DeleteTopicsRequest, serve func() *kmsg.DeleteTopicsResponse) *kmsg.DeleteTopicsResponse {
	var names []string
	var denied []kmsg.DeleteTopicsRequestTopic
	req.TopicNames, names = split(req.TopicNames, func(name *string) bool { return c.onTopic(acl.Delete, *name) })
	req.Topics, denied = split(req.Topics, func(t *kmsg.DeleteTopicsRequestTopic) bool {
		if t.Topic == nil {
			return c.onTopicOrID(acl.Delete, "", t.TopicID)
		}
		return c.onTopic(acl.Delete, *t.Topic)
	})
	for i := range names {
		denied = append(denied, kmsg.DeleteTopicsRequestTopic{Topic: &names[i]})
	}
	resp := serve()
	for _, t := range denied {
		rt := kmsg.NewDeleteTopicsResponseTopic()
		rt.Topic, rt.TopicID, rt.ErrorCode, rt.ErrorMessage = t.Topic, t.TopicID, codeTopicDenied, &errDenied
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func guardDeleteRecords(c *call, req *kmsg.DeleteRecordsRequest, serve func() *kmsg.DeleteRecordsResponse) *kmsg.DeleteRecordsResponse {
	var denied []kmsg.DeleteRecordsRequestTopic
	req.Topics, denied = split(req.Topics, func(t *kmsg.DeleteRecordsRequestTopic) bool { return c.onTopic(acl.Delete, t.Topic) })
	resp := serve()
	for _, t := range denied {
		rt := kmsg.NewDeleteRecordsResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewDeleteRecordsResponseTopicPartition()
			rp.Partition, rp.LowWatermark, rp.ErrorCode = p.Partition, -1, codeTopicDenied
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func guardOffsetForLeaderEpoch(c *call, req *kmsg.OffsetForLeaderEpochRequest, serve func() *kmsg.OffsetForLeaderEpochResponse) *kmsg.OffsetForLeaderEpochResponse {
	var denied []kmsg.OffsetForLeaderEpochRequestTopic
	req.Topics, denied = split(req.Topics, func(t *kmsg.OffsetForLeaderEpochRequestTopic) bool { return c.onTopic(acl.Describe, t.Topic) })
	resp := serve()
	for _, t := range denied {
		rt := kmsg.NewOffsetForLeaderEpochResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			rp.Partition, rp.LeaderEpoch, rp.EndOffset, rp.ErrorCode = p.Partition, -1, -1, codeTopicDenied
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func guardCreatePartitions(c *call, req *kmsg.CreatePartitionsRequest, serve func() *kmsg.CreatePartitionsResponse) *kmsg.CreatePartitionsResponse {
	var denied []kmsg.CreatePartitionsRequestTopic
	req.Topics, denied = split(req.Topics, func(t *kmsg.CreatePartitionsRequestTopic) bool { return c.onTopic(acl.Alter, t.Topic) })
	resp := serve()
	for _, t := range denied {
		rt := kmsg.NewCreatePartitionsResponseTopic()
		rt.Topic, rt.ErrorCode, rt.ErrorMessage = t.Topic, codeTopicDenied, &errDenied
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func guardDescribeProducers(c *call, req *kmsg.DescribeProducersRequest, serve func() *kmsg.DescribeProducersResponse) *kmsg.DescribeProducersResponse {
	var denied []kmsg.DescribeProducersRequestTopic
	req.Topics, denied = split(req.Topics, func(t *kmsg.DescribeProducersRequestTopic) bool { return c.onTopic(acl.Read, t.Topic) })
	resp := serve()
	for _, t := range denied {
		rt := kmsg.NewDescribeProducersResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewDescribeProducersResponseTopicPartition()
			rp.Partition, rp.ErrorCode, rp.ErrorMessage = p, codeTopicDenied, &errDenied
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func guardDescribeTopicPartitions(c *call, req *kmsg.DescribeTopicPartitionsRequest, serve func() *kmsg.DescribeTopicPartitionsResponse) *kmsg.DescribeTopicPartitionsResponse {
	all := len(req.Topics) == 0
	var denied []kmsg.DescribeTopicPartitionsRequestTopic
	req.Topics, denied = split(req.Topics, func(t *kmsg.DescribeTopicPartitionsRequestTopic) bool { return c.onTopic(acl.Describe, t.Topic) })
	resp := fresh[*kmsg.DescribeTopicPartitionsResponse](req)
	if all || len(req.Topics) > 0 {
		resp = serve()
	}
	if all {
		resp.Topics = slices.DeleteFunc(resp.Topics, func(t kmsg.DescribeTopicPartitionsResponseTopic) bool {
			return t.Topic != nil && !c.allowedQuietly(acl.Describe, acl.Topic, *t.Topic)
		})
	}
	for i := range resp.Topics {
		if t := &resp.Topics[i]; t.ErrorCode == codeNone && t.Topic != nil {
			t.AuthorizedOperations = c.operations(acl.Topic, *t.Topic)
		}
	}
	for _, t := range denied {
		rt := kmsg.NewDescribeTopicPartitionsResponseTopic()
		rt.Topic, rt.ErrorCode = kmsg.StringPtr(t.Topic), codeTopicDenied
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}
