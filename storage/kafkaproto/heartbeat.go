package kafkaproto

// Heartbeat (12), versions 0 to 4: a member lives, and learns of a rebalance
// (error 27).
//
//   - 3 adds static members, 4 is flexible.

import "github.com/twmb/franz-go/pkg/kmsg"

func serveHeartbeat(c *call, req *kmsg.HeartbeatRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
	resp.ErrorCode = c.s.groups.heartbeat(req.Group, req.MemberID, req.InstanceID, req.Generation)
	return resp
}
