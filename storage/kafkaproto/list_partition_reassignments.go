package kafkaproto

// ListPartitionReassignments (46), version 0: moves that are under way. There are
// none, on one node.

import "github.com/twmb/franz-go/pkg/kmsg"

func serveListPartitionReassignments(_ *call, req *kmsg.ListPartitionReassignmentsRequest) kmsg.Response {
	return req.ResponseKind()
}
