package kafkaproto

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/acl"
)

func guardDescribeACLs(c *call, req *kmsg.DescribeACLsRequest, serve func() *kmsg.DescribeACLsResponse) *kmsg.DescribeACLsResponse {
	if c.onCluster(acl.Describe) {
		return serve()
	}
	resp := fresh[*kmsg.DescribeACLsResponse](req)
	resp.ErrorCode, resp.ErrorMessage = codeClusterDenied, &errDenied
	return resp
}

func guardCreateACLs(c *call, req *kmsg.CreateACLsRequest, serve func() *kmsg.CreateACLsResponse) *kmsg.CreateACLsResponse {
	if c.onCluster(acl.Alter) {
		return serve()
	}
	resp := fresh[*kmsg.CreateACLsResponse](req)
	for range req.Creations {
		r := kmsg.NewCreateACLsResponseResult()
		r.ErrorCode, r.ErrorMessage = codeClusterDenied, &errDenied
		resp.Results = append(resp.Results, r)
	}
	return resp
}

func guardDeleteACLs(c *call, req *kmsg.DeleteACLsRequest, serve func() *kmsg.DeleteACLsResponse) *kmsg.DeleteACLsResponse {
	if c.onCluster(acl.Alter) {
		return serve()
	}
	resp := fresh[*kmsg.DeleteACLsResponse](req)
	for range req.Filters {
		r := kmsg.NewDeleteACLsResponseResult()
		r.ErrorCode, r.ErrorMessage = codeClusterDenied, &errDenied
		resp.Results = append(resp.Results, r)
	}
	return resp
}

// onConfigs asks about the options of a resource.
func (c *call) onConfigs(op acl.Operation, t kmsg.ConfigResourceType, name string) bool {
	switch t {
	case kmsg.ConfigResourceTypeTopic:
		return c.onTopic(op, name)
	case kmsg.ConfigResourceTypeGroupConfig:
		return c.onGroup(op, name)
	}
	return c.onCluster(op)
}

func guardDescribeConfigs(c *call, req *kmsg.DescribeConfigsRequest, serve func() *kmsg.DescribeConfigsResponse) *kmsg.DescribeConfigsResponse {
	var denied []kmsg.DescribeConfigsRequestResource
	req.Resources, denied = split(req.Resources, func(r *kmsg.DescribeConfigsRequestResource) bool {
		return c.onConfigs(acl.DescribeConfigs, r.ResourceType, r.ResourceName)
	})
	resp := serve()
	for _, d := range denied {
		r := kmsg.NewDescribeConfigsResponseResource()
		r.ResourceType, r.ResourceName, r.ErrorMessage = d.ResourceType, d.ResourceName, &errDenied
		r.ErrorCode = configsCode(d.ResourceType)
		resp.Resources = append(resp.Resources, r)
	}
	return resp
}

// configsCode is the code with which options of a kind of resource are denied.
func configsCode(t kmsg.ConfigResourceType) int16 {
	switch t {
	case kmsg.ConfigResourceTypeTopic:
		return codeTopicDenied
	case kmsg.ConfigResourceTypeGroupConfig:
		return codeGroupDenied
	}
	return codeClusterDenied
}

func guardAlterConfigs(c *call, req *kmsg.AlterConfigsRequest, serve func() *kmsg.AlterConfigsResponse) *kmsg.AlterConfigsResponse {
	var denied []kmsg.AlterConfigsRequestResource
	req.Resources, denied = split(req.Resources, func(r *kmsg.AlterConfigsRequestResource) bool {
		return c.onConfigs(acl.AlterConfigs, r.ResourceType, r.ResourceName)
	})
	resp := serve()
	for _, d := range denied {
		r := kmsg.NewAlterConfigsResponseResource()
		r.ResourceType, r.ResourceName, r.ErrorCode, r.ErrorMessage = d.ResourceType, d.ResourceName, configsCode(d.ResourceType), &errDenied
		resp.Resources = append(resp.Resources, r)
	}
	return resp
}

func guardIncrementalAlterConfigs(c *call, req *kmsg.IncrementalAlterConfigsRequest, serve func() *kmsg.IncrementalAlterConfigsResponse) *kmsg.IncrementalAlterConfigsResponse {
	var denied []kmsg.IncrementalAlterConfigsRequestResource
	req.Resources, denied = split(req.Resources, func(r *kmsg.IncrementalAlterConfigsRequestResource) bool {
		return c.onConfigs(acl.AlterConfigs, r.ResourceType, r.ResourceName)
	})
	resp := serve()
	for _, d := range denied {
		r := kmsg.NewIncrementalAlterConfigsResponseResource()
		r.ResourceType, r.ResourceName, r.ErrorCode, r.ErrorMessage = d.ResourceType, d.ResourceName, configsCode(d.ResourceType), &errDenied
		resp.Resources = append(resp.Resources, r)
	}
	return resp
}

func guardListConfigResources(c *call, req *kmsg.ListConfigResourcesRequest, serve func() *kmsg.ListConfigResourcesResponse) *kmsg.ListConfigResourcesResponse {
	if c.onCluster(acl.DescribeConfigs) {
		return serve()
	}
	resp := fresh[*kmsg.ListConfigResourcesResponse](req)
	resp.ErrorCode = codeClusterDenied
	return resp
}

func guardAlterReplicaLogDirs(c *call, req *kmsg.AlterReplicaLogDirsRequest, serve func() *kmsg.AlterReplicaLogDirsResponse) *kmsg.AlterReplicaLogDirsResponse {
	if c.onCluster(acl.Alter) {
		return serve()
	}
	resp := fresh[*kmsg.AlterReplicaLogDirsResponse](req)
	for _, d := range req.Dirs {
		for _, t := range d.Topics {
			rt := kmsg.NewAlterReplicaLogDirsResponseTopic()
			rt.Topic = t.Topic
			for _, p := range t.Partitions {
				rp := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
				rp.Partition, rp.ErrorCode = p, codeClusterDenied
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
	}
	return resp
}

// guardDescribeLogDirs: before version 3 there is no place for an error, and the
// answer is empty, as in Kafka.
func guardDescribeLogDirs(c *call, req *kmsg.DescribeLogDirsRequest, serve func() *kmsg.DescribeLogDirsResponse) *kmsg.DescribeLogDirsResponse {
	if c.onCluster(acl.Describe) {
		return serve()
	}
	resp := fresh[*kmsg.DescribeLogDirsResponse](req)
	resp.ErrorCode = codeClusterDenied
	return resp
}

func guardElectLeaders(c *call, req *kmsg.ElectLeadersRequest, serve func() *kmsg.ElectLeadersResponse) *kmsg.ElectLeadersResponse {
	if c.onCluster(acl.Alter) {
		return serve()
	}
	resp := fresh[*kmsg.ElectLeadersResponse](req)
	resp.ErrorCode = codeClusterDenied
	for _, t := range req.Topics {
		rt := kmsg.NewElectLeadersResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewElectLeadersResponseTopicPartition()
			rp.Partition, rp.ErrorCode, rp.ErrorMessage = p, codeClusterDenied, &errDenied
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func guardAlterReassignments(c *call, req *kmsg.AlterPartitionAssignmentsRequest, serve func() *kmsg.AlterPartitionAssignmentsResponse) *kmsg.AlterPartitionAssignmentsResponse {
	if c.onCluster(acl.Alter) {
		return serve()
	}
	resp := fresh[*kmsg.AlterPartitionAssignmentsResponse](req)
	resp.ErrorCode, resp.ErrorMessage = codeClusterDenied, &errDenied
	return resp
}

func guardListReassignments(c *call, req *kmsg.ListPartitionReassignmentsRequest, serve func() *kmsg.ListPartitionReassignmentsResponse) *kmsg.ListPartitionReassignmentsResponse {
	if c.onCluster(acl.Describe) {
		return serve()
	}
	resp := fresh[*kmsg.ListPartitionReassignmentsResponse](req)
	resp.ErrorCode, resp.ErrorMessage = codeClusterDenied, &errDenied
	return resp
}

func guardDescribeQuotas(c *call, req *kmsg.DescribeClientQuotasRequest, serve func() *kmsg.DescribeClientQuotasResponse) *kmsg.DescribeClientQuotasResponse {
	if c.onCluster(acl.DescribeConfigs) {
		return serve()
	}
	resp := fresh[*kmsg.DescribeClientQuotasResponse](req)
	resp.ErrorCode, resp.ErrorMessage = codeClusterDenied, &errDenied
	return resp
}

func guardAlterQuotas(c *call, req *kmsg.AlterClientQuotasRequest, serve func() *kmsg.AlterClientQuotasResponse) *kmsg.AlterClientQuotasResponse {
	if c.onCluster(acl.AlterConfigs) {
		return serve()
	}
	resp := fresh[*kmsg.AlterClientQuotasResponse](req)
	for _, e := range req.Entries {
		r := kmsg.NewAlterClientQuotasResponseEntry()
		r.ErrorCode, r.ErrorMessage = codeClusterDenied, &errDenied
		for _, p := range e.Entity {
			part := kmsg.NewAlterClientQuotasResponseEntryEntity()
			part.Type, part.Name = p.Type, p.Name
			r.Entity = append(r.Entity, part)
		}
		resp.Entries = append(resp.Entries, r)
	}
	return resp
}

func guardDescribeScram(c *call, req *kmsg.DescribeUserSCRAMCredentialsRequest, serve func() *kmsg.DescribeUserSCRAMCredentialsResponse) *kmsg.DescribeUserSCRAMCredentialsResponse {
	if c.onCluster(acl.Describe) {
		return serve()
	}
	resp := fresh[*kmsg.DescribeUserSCRAMCredentialsResponse](req)
	resp.ErrorCode, resp.ErrorMessage = codeClusterDenied, &errDenied
	return resp
}

func guardAlterScram(c *call, req *kmsg.AlterUserSCRAMCredentialsRequest, serve func() *kmsg.AlterUserSCRAMCredentialsResponse) *kmsg.AlterUserSCRAMCredentialsResponse {
	if c.onCluster(acl.Alter) {
		return serve()
	}
	resp := fresh[*kmsg.AlterUserSCRAMCredentialsResponse](req)
	seen := map[string]bool{}
	deny := func(user string) {
		if !seen[user] {
			seen[user] = true
			r := kmsg.NewAlterUserSCRAMCredentialsResponseResult()
			r.User, r.ErrorCode, r.ErrorMessage = user, codeClusterDenied, &errDenied
			resp.Results = append(resp.Results, r)
		}
	}
	for _, d := range req.Deletions {
		deny(d.Name)
	}
	for _, u := range req.Upsertions {
		deny(u.Name)
	}
	return resp
}

func guardDescribeQuorum(c *call, req *kmsg.DescribeQuorumRequest, serve func() *kmsg.DescribeQuorumResponse) *kmsg.DescribeQuorumResponse {
	if c.onCluster(acl.Describe) {
		return serve()
	}
	resp := fresh[*kmsg.DescribeQuorumResponse](req)
	resp.ErrorCode = codeClusterDenied
	return resp
}

func guardUpdateFeatures(c *call, req *kmsg.UpdateFeaturesRequest, serve func() *kmsg.UpdateFeaturesResponse) *kmsg.UpdateFeaturesResponse {
	if c.onCluster(acl.Alter) {
		return serve()
	}
	resp := fresh[*kmsg.UpdateFeaturesResponse](req)
	resp.ErrorCode, resp.ErrorMessage = codeClusterDenied, &errDenied
	return resp
}

func guardDescribeCluster(c *call, req *kmsg.DescribeClusterRequest, serve func() *kmsg.DescribeClusterResponse) *kmsg.DescribeClusterResponse {
	resp := serve()
	if req.IncludeClusterAuthorizedOperations && resp.ErrorCode == codeNone {
		resp.ClusterAuthorizedOperations = c.clusterOperations()
	}
	return resp
}
