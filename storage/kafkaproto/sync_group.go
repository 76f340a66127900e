package kafkaproto

// SyncGroup (14), versions 0 to 5: the leader hands in the assignment of each
// member, the others wait for theirs.
//
//   - 3 adds static members, 4 is flexible, 5 checks the protocol and its type.

import "github.com/twmb/franz-go/pkg/kmsg"

func serveSyncGroup(c *call, req *kmsg.SyncGroupRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.SyncGroupResponse)
	assignments := make(map[string][]byte, len(req.GroupAssignment))
	for _, a := range req.GroupAssignment {
		assignments[a.MemberID] = a.MemberAssignment
	}
	answer := c.s.groups.sync(req.Group, req.MemberID, req.InstanceID, req.Generation, req.ProtocolType, req.Protocol, assignments)
	c.settled()
	var got synced
	select {
	case got = <-answer:
	case <-c.ctx.Done():
		got.code = codeCoordinatorNotAvailable
	}
	resp.ErrorCode, resp.MemberAssignment = got.code, got.assignment
	if got.code == codeNone {
		resp.ProtocolType, resp.Protocol = &got.typ, &got.protocol
	}
	if resp.MemberAssignment == nil {
		resp.MemberAssignment = []byte{}
	}
	return resp
}
