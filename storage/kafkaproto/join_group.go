package kafkaproto

// JoinGroup (11), versions 0 to 9: makes a client a member of a group, and waits
// until the group's next generation begins.
//
//   - Version 0 has no rebalance timeout: the session timeout takes its place.
//   - From 4 a member without an id is first given one (error 79) and joins with
//     it; 5 adds static members, which take the place of their former self.
//   - 6 is flexible, 7 tells the protocol's type, 9 tells a static member that
//     comes back as the leader of a stable group to skip the assignment.
//   - The group of a job takes no other members (error 23).
//   - The answer names the protocol that all members support and most prefer; the
//     leader gets everybody's metadata and assigns in SyncGroup. The server does
//     not look into metadata, so every assignor works.

import (
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Kafka's bounds of a session timeout.
const (
	minSession = 6 * time.Second
	maxSession = 30 * time.Minute
)

func serveJoinGroup(c *call, req *kmsg.JoinGroupRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
	j := c.join(req)
	resp.ErrorCode, resp.Generation, resp.LeaderID, resp.MemberID = j.code, j.generation, j.leader, j.member
	resp.Protocol, resp.SkipAssignment = &j.protocol, j.skip
	if c.version >= 7 {
		if j.code != codeNone {
			resp.Protocol = nil
		} else {
			resp.ProtocolType = &j.protocolType
		}
	}
	for _, m := range j.members {
		rm := kmsg.NewJoinGroupResponseMember()
		rm.MemberID, rm.InstanceID, rm.ProtocolMetadata = m.id, m.instance, m.metadata
		resp.Members = append(resp.Members, rm)
	}
	return resp
}

func (c *call) join(req *kmsg.JoinGroupRequest) joined {
	session := time.Duration(req.SessionTimeoutMillis) * time.Millisecond
	rebalance := time.Duration(req.RebalanceTimeoutMillis) * time.Millisecond
	if c.version == 0 {
		rebalance = session
	}
	refused := joined{generation: -1, member: req.MemberID}
	switch {
	case req.Group == "" || len(req.Group) > maxGroupName:
		refused.code = codeInvalidGroupID
		return refused
	case session < minSession || session > maxSession:
		refused.code = codeInvalidSessionTimeout
		return refused
	case subscribedByJob(c.s.opts.Store, req.Group):
		refused.code = codeInconsistentProtocol
		return refused
	}
	m := &member{id: req.MemberID, instance: req.InstanceID, clientID: c.clientID, host: c.clientHost(), session: session,
		rebalance: min(max(rebalance, 0), maxSession)}
	for _, p := range req.Protocols {
		// Its bytes are the request's, which is not used again.
		m.protocols = append(m.protocols, groupProtocol{p.Name, p.Metadata})
	}
	answer := c.s.groups.join(req.Group, req.ProtocolType, m, c.version >= 4, c.version >= 9)
	c.settled()
	select {
	case j := <-answer:
		return j
	case <-c.ctx.Done():
		refused.code = codeCoordinatorNotAvailable
		return refused
	}
}

// clientHost is where a client is, as Kafka writes it.
func (c *call) clientHost() string {
	host, _, err := net.SplitHostPort(c.conn.RemoteAddr().String())
	if err != nil {
		host = "localhost" // a Unix socket
	}
	return "/" + host
}
