package kafkaproto

// LeaveGroup (13), versions 0 to 5: members leave and the others share their work.
//
//   - 3 removes many members at once, static ones by their instance; 4 is flexible,
//     5 adds a reason, which is not used.

import "github.com/twmb/franz-go/pkg/kmsg"

func serveLeaveGroup(c *call, req *kmsg.LeaveGroupRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.LeaveGroupResponse)
	if c.version < 3 {
		resp.ErrorCode = c.s.groups.leave(req.Group, req.MemberID, nil)
		return resp
	}
	for _, m := range req.Members {
		rm := kmsg.NewLeaveGroupResponseMember()
		rm.MemberID, rm.InstanceID = m.MemberID, m.InstanceID
		rm.ErrorCode = c.s.groups.leave(req.Group, m.MemberID, m.InstanceID)
		resp.Members = append(resp.Members, rm)
	}
	return resp
}
